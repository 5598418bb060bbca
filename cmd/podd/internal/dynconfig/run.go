package dynconfig

import (
	"context"
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"podd/cmd/podd/internal/config"
)

const (
	// healthInterval is the interval between checks of the health during a trial.
	healthInterval = time.Second
	// maxLostTime is how long a peer that has responded in this process may be unreachable during a trial,
	// but at most half of the trial.
	maxLostTime = time.Minute
)

// trialTimes are the times that decide a trial, and when the next trial of a configuration starts. They are
// zero until the parts start.
type trialTimes struct {
	startedAt time.Time // when the parts started
	lostAt    time.Time // when a peer became unreachable; zero if all peers respond
	// respondsSince is when all peers began to respond, while a configuration waits for another trial; zero
	// if a peer does not respond.
	respondsSince time.Time
}

// runConfig runs podd's parts with a configuration. It returns ErrReload if the parts have stopped and
// must start with another configuration.
func (m *manager) runConfig(ctx context.Context, cfg *config.Config) error {
	used := m.state.inUse()
	m.link.publish(m.status(), m.delayed...)
	m.isRunning, m.delayed, m.trial = true, nil, trialTimes{startedAt: time.Now()}
	defer func() { m.isRunning = false }()
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	warnings := m.warnings
	go func() { done <- m.o.Start(runCtx, cfg, warnings, m.link) }()
	checks := newCheckTimer(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(m.nextWake(checks.at)))
		select {
		case err := <-done:
			return m.handleExit(ctx, err)
		case event, ok := <-m.watcher.Events():
			m.forgetRemoved(event, ok)
			checks.recordEvent(time.Now())
		case _, ok := <-m.watcher.Errors(): // events were lost
			m.forgetRemoved(fsnotify.Event{}, ok)
			checks.recordEvent(time.Now())
		case <-m.link.wake:
			if m.updateConfigMap() {
				checks.at = time.Now()
			}
		case <-timer.C:
		}
		now := time.Now()
		m.recordHealth(now)
		if m.checkRetry(now) {
			checks.at = now
		}
		if !now.Before(checks.at) {
			_ = m.checkCandidate() // it has reported the error
			checks = newCheckTimer(time.Now())
		}
		if m.state.inUse().Digest == used.Digest {
			m.checkTrial(now)
		}
		if m.state.inUse().Digest != used.Digest {
			cancel(ErrReload)
			return m.handleReload(ctx, <-done)
		}
	}
}

// handleReload handles the end of podd's parts before they start again. err is their error, or nil.
func (m *manager) handleReload(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		m.apply(m.state.withStop())
		return err
	}
	if err != nil {
		m.delayed = append(m.delayed, Notice{IsWarning: true, Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd stopped with an error before it used another configuration: %s", oneLine(err.Error()))})
	}
	return ErrReload
}

// forgetRemoved stops watching a directory that was removed. ok is false if the watcher has failed.
func (m *manager) forgetRemoved(event fsnotify.Event, ok bool) {
	switch {
	case !ok:
		m.watcher.Close()
	case event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename):
		m.watcher.Forget(event.Name)
	}
}

// nextWake returns when the manager must wake up. checkAt is the time of the next check of the files.
func (m *manager) nextWake(checkAt time.Time) time.Time {
	if m.state.Trial == nil && m.state.Retry == nil {
		return checkAt
	}
	return earlier(checkAt, time.Now().Add(healthInterval))
}

// handleExit handles the end of podd's parts with the error err. If podd can return to the last known good
// configuration, handleExit rejects the one on trial and returns ErrReload.
func (m *manager) handleExit(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil || err == nil:
		m.apply(m.state.withStop())
	case m.state.canFallBack():
		m.isRunning = false
		m.apply(m.state.withRejectedTrial("podd failed: "+err.Error(), m.facts()))
		return ErrReload
	}
	return err
}

// recordHealth records which peers have responded. Parts that have just started do not count, unless all
// their peers respond.
func (m *manager) recordHealth(now time.Time) {
	h, isKnown := m.link.currentHealth()
	if !isKnown {
		return
	}
	m.reached = m.reached.or(h)
	if h.isComplete() || now.Sub(m.trial.startedAt) >= maxLostTime {
		m.before = h
	}
}

// checkTrial ends the trial if it has failed or the configuration has proved itself.
func (m *manager) checkTrial(now time.Time) {
	t, period := m.state.Trial, m.o.Flags.DynamicConfigTrial
	if t == nil {
		return
	}
	isOver := now.Sub(m.trial.startedAt) >= period
	health, isKnown := m.link.currentHealth()
	reason, isLost := m.failure(health, isKnown, now)
	switch {
	case reason != "" && m.state.canFallBack() && isLost:
		m.apply(m.state.withLostTrial(reason))
	case reason != "" && m.state.canFallBack():
		m.apply(m.state.withRejectedTrial(reason, m.facts()))
	case isOver && isKnown && m.trial.lostAt.IsZero() && health.isComplete():
		m.before = health
		m.apply(m.state.withPassedTrial(m.facts()))
	case isOver:
		m.apply(m.state.withLongRun())
	}
}

// checkRetry decides when the next trial of a configuration that waits for it starts. It reports whether
// the candidate must be checked again, because it is ready for the next trial or was rejected. The peers
// must respond for some time, because an API server may be unreachable several times during an upgrade.
func (m *manager) checkRetry(now time.Time) (mustCheck bool) {
	r := m.state.Retry
	health, isKnown := m.link.currentHealth()
	if r == nil || r.IsReady || !isKnown {
		return false
	}
	lost, _ := health.lostPeer(r.Trial.Before, Health{})
	switch {
	case lost != "":
		m.trial.respondsSince = time.Time{}
	case m.trial.respondsSince.IsZero():
		m.trial.respondsSince = now
	}
	switch {
	case lost == "" && now.Sub(m.trial.respondsSince) >= m.lostLimit():
		m.apply(m.state.withReadyRetry(m.facts()))
		return true
	case lost != "" && !r.IsCleared && now.Sub(m.trial.startedAt) >= m.lostLimit():
		m.apply(m.state.withClearedRetry())
	}
	return false
}

// lostLimit returns how long a peer that has responded in this process may be unreachable during a trial.
// It is also the time for which all peers must respond before the next trial, and in which they must begin to
// respond if the configuration is to be suspected.
func (m *manager) lostLimit() time.Duration {
	return min(maxLostTime, m.o.Flags.DynamicConfigTrial/2)
}

// failure returns the reason why the configuration on trial has failed, or "". isLost reports whether the
// reason is that a peer is unreachable. isKnown is false while podd's parts do not run. A peer that has not
// responded in this process may still be starting, so podd waits for it as long as the trial takes.
func (m *manager) failure(health Health, isKnown bool, now time.Time) (reason string, isLost bool) {
	period := m.o.Flags.DynamicConfigTrial
	if !isKnown {
		if now.Sub(m.trial.startedAt) >= period {
			return fmt.Sprintf("podd did not start within %s", period), false
		}
		return "", false
	}
	lost, hasResponded := health.lostPeer(m.state.Trial.Before, m.reached)
	switch {
	case lost == "":
		m.trial.lostAt = time.Time{}
		return "", false
	case m.trial.lostAt.IsZero():
		m.trial.lostAt = now
	}
	limit := period
	if hasResponded {
		limit = m.lostLimit()
	}
	if now.Sub(m.trial.lostAt) < limit {
		return "", false
	}
	return fmt.Sprintf("%s was unreachable for %s, and was reachable before", lost, limit), true
}

// updateConfigMap applies a change of the assignment. It reports whether the candidate may have changed.
func (m *manager) updateConfigMap() (hasChanged bool) {
	a := m.link.assigned()
	switch {
	case !a.isKnown:
		return false
	case a.err != "" || isSameConfigMap(a.configMap, m.configMap):
		m.link.publish(m.status())
		return false
	}
	m.mustStoreConfigMap = m.mustStoreConfigMap || !hasSameContent(a.configMap, m.configMap)
	m.configMap = a.configMap
	return true
}

// isSameConfigMap reports whether a and b are the same version of a ConfigMap. Both may be nil.
func isSameConfigMap(a, b *ConfigMap) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// hasSameContent reports whether a and b are the same key of a ConfigMap with the same content. Both may
// be nil.
func hasSameContent(a, b *ConfigMap) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Data == b.Data && a.Version.Namespace == b.Version.Namespace && a.Version.Name == b.Version.Name && a.Version.Key == b.Version.Key
}
