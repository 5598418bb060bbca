package dynconfig

import (
	"fmt"
	"time"
)

// maxStarts is the maximum number of processes that may start with a configuration on trial. A higher
// number means that podd crashes again and again.
const maxStarts = 3

// The maximum numbers of trials of a configuration that end because a peer is unreachable.
const (
	// maxLosses limits all of them, because a configuration can also be the cause of an outage that lasts
	// longer than its trial.
	maxLosses = 10
	// maxSuspicions limits those after which the peer responds soon. It is more than 1, because an outage
	// can end at that time by chance, for example after an upgrade of the API server.
	maxSuspicions = 2
)

// A State records which configurations podd has used. It is immutable. The zero value is the state of an
// empty directory.
type State struct {
	// LastKnownGood is the configuration that has passed its trial last. It is zero if none has.
	LastKnownGood Version `json:"lastKnownGood,omitzero"`
	// Health describes the peers that responded when LastKnownGood passed its trial.
	Health Health `json:"health"`
	// Trial is the configuration on trial, or nil.
	Trial *Trial `json:"trial,omitempty"`
	// Retry is the configuration that waits for another trial, or nil. It is nil during a trial.
	Retry *Retry `json:"retry,omitempty"`
	// Rejection is the newest rejection, or nil if podd has accepted a configuration since.
	Rejection *Rejection `json:"rejection,omitempty"`
}

// A Trial is the use of a configuration that has not proved itself yet.
type Trial struct {
	Version Version `json:"version"`
	// Starts is the number of processes of podd that have started with the configuration, without those
	// that have stopped in an orderly way or have run for the duration of a trial.
	Starts int `json:"starts"`
	// Before describes the peers that responded before the trial.
	Before Health `json:"before"`
	// Losses is the number of earlier trials of the configuration that have ended because a peer was
	// unreachable. Suspicions is the number of those after which the peer responded soon to the last known
	// good configuration.
	Losses     int `json:"losses,omitempty"`
	Suspicions int `json:"suspicions,omitempty"`
}

// A Retry is a configuration whose trial has ended because a peer was unreachable. podd uses the last known
// good configuration, and starts another trial when the peers respond, because the configuration may not be
// the cause of the outage.
type Retry struct {
	Trial  Trial  `json:"trial"`  // the trial that has ended
	Reason string `json:"reason"` // one line of limited length
	// IsCleared is set if a peer was also unreachable with the last known good configuration, so that the
	// configuration is not the cause.
	IsCleared bool `json:"isCleared,omitempty"`
	// IsReady is set if the peers respond again, so that the next trial can start.
	IsReady bool `json:"isReady,omitempty"`
}

// A Rejection is the reason why podd does not use a configuration.
type Rejection struct {
	Version     Version   `json:"version"`
	Reason      string    `json:"reason"` // one line of limited length
	At          time.Time `json:"at"`
	PoddVersion string    `json:"poddVersion"` // the version of podd that has rejected the configuration
}

// A candidate is the configuration that the user has assigned.
type candidate struct {
	version Version
	err     error // why the configuration is invalid; nil if it is valid
}

// facts are the facts on which the choice of a configuration depends.
type facts struct {
	poddVersion string
	health      Health // peers that respond with the configuration in use
	now         time.Time
}

// inUse returns the configuration that podd must use. It is zero if there is none.
func (s State) inUse() Version {
	if s.Trial != nil {
		return s.Trial.Version
	}
	return s.LastKnownGood
}

// withStart returns the state after the start of a process.
func (s State) withStart(f facts) State {
	if s.Trial == nil {
		return s
	}
	s = s.withStarts(s.Trial.Starts + 1)
	if s.Trial.Starts > maxStarts && s.canFallBack() {
		return s.withRejectedTrial(fmt.Sprintf("podd crashed %d times with this configuration", s.Trial.Starts-1), f)
	}
	return s
}

// withStop returns the state after an orderly stop of a process.
func (s State) withStop() State {
	if s.Trial == nil {
		return s
	}
	return s.withStarts(s.Trial.Starts - 1)
}

// withLongRun returns the state after a process has run for the duration of a trial. Earlier crashes no
// longer count.
func (s State) withLongRun() State {
	if s.Trial == nil || s.Trial.Starts <= 1 {
		return s
	}
	return s.withStarts(1)
}

// withStarts returns the state with another number of starts. A trial must be in progress.
func (s State) withStarts(n int) State {
	t := *s.Trial
	t.Starts = n
	s.Trial = &t
	return s
}

// withCandidate returns the state after the candidate was read. The first rule that applies wins.
func (s State) withCandidate(c candidate, f facts) State {
	if c.err == nil && s.isWaiting(c.version) {
		return s
	}
	retry := s.Retry
	s.Retry = nil
	switch {
	case c.err != nil: // an invalid configuration changes nothing
		return s.withRejection(c.version, c.err.Error(), f)
	case c.version.Digest == s.inUse().Digest: // nothing has changed, or the user has undone a rejected change
		s.Rejection = nil
		return s
	case c.version.Digest == s.LastKnownGood.Digest: // it needs no second trial
		s.Trial, s.Rejection = nil, nil
		return s
	case s.isRejected(c.version, f) && s.inUse().Digest != "":
		return s
	}
	next := Trial{Version: c.version, Starts: 1, Before: f.health}
	if s.Trial != nil { // the peers of an earlier trial may not have responded yet
		next.Before = next.Before.or(s.Trial.Before)
	}
	isRetry := retry != nil && retry.Trial.Version.Digest == c.version.Digest
	if isRetry {
		next.Losses, next.Suspicions = retry.Trial.Losses, retry.Trial.Suspicions
	}
	if isRetry || retry != nil && !retry.IsCleared { // the peers may respond with another configuration
		next.Before = next.Before.or(retry.Trial.Before)
	}
	s.Trial, s.Rejection = &next, nil
	return s
}

// isWaiting reports whether a configuration waits for another trial.
func (s State) isWaiting(v Version) bool {
	return s.Retry != nil && !s.Retry.IsReady && s.Retry.Trial.Version.Digest == v.Digest && s.inUse().Digest != ""
}

// isRejected reports whether this version of podd has already rejected a configuration.
func (s State) isRejected(v Version, f facts) bool {
	return s.Rejection != nil && s.Rejection.Version.Digest == v.Digest && s.Rejection.PoddVersion == f.poddVersion
}

// withRejection returns the state after a configuration was rejected. The time of an equal rejection
// does not change.
func (s State) withRejection(v Version, reason string, f facts) State {
	reason = oneLine(reason)
	if s.isRejected(v, f) && s.Rejection.Reason == reason {
		return s
	}
	s.Rejection = &Rejection{Version: v, Reason: reason, At: f.now.UTC(), PoddVersion: f.poddVersion}
	return s
}

// withRejectedTrial returns the state after the configuration on trial was rejected. A trial must be in
// progress.
func (s State) withRejectedTrial(reason string, f facts) State {
	v := s.Trial.Version
	s.Trial = nil
	return s.withRejection(v, reason, f)
}

// withLostTrial returns the state after a trial has ended because a peer was unreachable. There is no
// further trial if another configuration is assigned and was rejected. A trial must be in progress, and
// there must be a last known good configuration.
func (s State) withLostTrial(reason string) State {
	if s.Rejection != nil {
		s.Trial = nil
		return s
	}
	s.Retry, s.Trial = &Retry{Trial: *s.Trial, Reason: oneLine(reason)}, nil
	return s
}

// withClearedRetry returns the state after a peer was also unreachable with the last known good
// configuration. A configuration must wait for another trial.
func (s State) withClearedRetry() State {
	r := *s.Retry
	r.IsCleared = true
	s.Retry = &r
	return s
}

// withReadyRetry returns the state after the peers have responded to the last known good configuration. The
// configuration that waits for another trial is rejected if it had too many. There must be such a
// configuration.
func (s State) withReadyRetry(f facts) State {
	r := *s.Retry
	if r.IsReady {
		return s
	}
	r.IsReady = true
	r.Trial.Losses++
	if !r.IsCleared {
		r.Trial.Suspicions++
	}
	if r.Trial.Losses >= maxLosses || r.Trial.Suspicions >= maxSuspicions {
		s.Retry = nil
		return s.withRejection(r.Trial.Version, fmt.Sprintf("%s, in %d trials", r.Reason, r.Trial.Losses), f)
	}
	s.Retry = &r
	return s
}

// withPassedTrial returns the state after the configuration on trial has proved itself. A trial must be
// in progress.
func (s State) withPassedTrial(f facts) State {
	s.LastKnownGood, s.Health, s.Trial = s.Trial.Version, f.health, nil
	return s
}

// withoutVersion returns the state without a configuration whose checkpoint is lost.
func (s State) withoutVersion(v Version) State {
	if s.Trial != nil && s.Trial.Version.Digest == v.Digest {
		s.Trial = nil
	}
	if s.LastKnownGood.Digest == v.Digest {
		s.LastKnownGood = Version{}
	}
	return s
}

// canFallBack reports whether podd can return from a trial to the last known good configuration.
func (s State) canFallBack() bool { return s.Trial != nil && s.LastKnownGood.Digest != "" }
