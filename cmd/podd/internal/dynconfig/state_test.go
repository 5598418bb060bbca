package dynconfig

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	a = Version{Digest: "a"}
	b = Version{Digest: "b"}
	c = Version{Digest: "c"}

	now = facts{poddVersion: "v1", now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// onTrial returns a trial in the first process.
func onTrial(v Version) *Trial { return &Trial{Version: v, Starts: 1} }

// rejected returns the rejection of a version for a reason.
func rejected(v Version, reason string) *Rejection {
	return &Rejection{Version: v, Reason: reason, At: now.now, PoddVersion: "v1"}
}

// TestState_WithCandidate checks each rule for a candidate.
func TestState_WithCandidate(t *testing.T) {
	invalid := errors.New("invalid")
	for name, test := range map[string]struct {
		before    State
		candidate candidate
		want      State
	}{
		"the first configuration is on trial":             {State{}, candidate{version: a}, State{Trial: onTrial(a)}},
		"an invalid first configuration":                  {State{}, candidate{a, invalid}, State{Rejection: rejected(a, "invalid")}},
		"an unchanged configuration":                      {State{LastKnownGood: a}, candidate{version: a}, State{LastKnownGood: a}},
		"a changed configuration is on trial":             {State{LastKnownGood: a}, candidate{version: b}, State{LastKnownGood: a, Trial: onTrial(b)}},
		"an invalid change changes nothing":               {State{LastKnownGood: a}, candidate{b, invalid}, State{LastKnownGood: a, Rejection: rejected(b, "invalid")}},
		"an invalid change during a trial":                {State{LastKnownGood: a, Trial: onTrial(b)}, candidate{c, invalid}, State{LastKnownGood: a, Trial: onTrial(b), Rejection: rejected(c, "invalid")}},
		"an undone change":                                {State{LastKnownGood: a, Rejection: rejected(b, "invalid")}, candidate{version: a}, State{LastKnownGood: a}},
		"an undone change during a trial":                 {State{LastKnownGood: a, Trial: onTrial(b)}, candidate{version: a}, State{LastKnownGood: a}},
		"a second change during a trial":                  {State{LastKnownGood: a, Trial: onTrial(b)}, candidate{version: c}, State{LastKnownGood: a, Trial: onTrial(c)}},
		"a rejected configuration stays out":              {State{LastKnownGood: a, Rejection: rejected(b, "crashed")}, candidate{version: b}, State{LastKnownGood: a, Rejection: rejected(b, "crashed")}},
		"a rejected configuration without an alternative": {State{Rejection: rejected(b, "crashed")}, candidate{version: b}, State{Trial: onTrial(b)}},
		"a rejected configuration with another podd": {
			State{LastKnownGood: a, Rejection: &Rejection{Version: b, PoddVersion: "v0"}}, candidate{version: b}, State{LastKnownGood: a, Trial: onTrial(b)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkState(t, test.before.withCandidate(test.candidate, now), test.want)
		})
	}
}

// TestState_WithLostTrial checks the rules for a configuration whose trial has ended because a peer was
// unreachable.
func TestState_WithLostTrial(t *testing.T) {
	before := Health{Runtime: true, HasCluster: true, APIServer: true}
	first := State{LastKnownGood: a, Trial: &Trial{Version: b, Starts: 2, Before: before}}
	waiting := first.withLostTrial("unreachable")
	checkState(t, waiting, State{LastKnownGood: a, Retry: &Retry{Trial: *first.Trial, Reason: "unreachable"}})
	if got := waiting.inUse(); got != a {
		t.Errorf("configuration in use while podd waits: got %v, want %v", got, a)
	}
	cleared := waiting.withClearedRetry()
	suspected := &Trial{Version: b, Starts: 1, Before: before, Losses: 1, Suspicions: 1}
	for name, test := range map[string]struct{ got, want State }{
		"podd waits":                  {waiting.withCandidate(candidate{version: b}, now), waiting},
		"another change":              {waiting.withCandidate(candidate{version: c}, now), State{LastKnownGood: a, Trial: &Trial{Version: c, Starts: 1, Before: before}}},
		"another change if cleared":   {cleared.withCandidate(candidate{version: c}, now), State{LastKnownGood: a, Trial: onTrial(c)}},
		"an undone change":            {waiting.withCandidate(candidate{version: a}, now), State{LastKnownGood: a}},
		"an invalid change":           {waiting.withCandidate(candidate{c, errors.New("invalid")}, now), State{LastKnownGood: a, Rejection: rejected(c, "invalid")}},
		"it becomes invalid":          {waiting.withCandidate(candidate{b, errors.New("invalid")}, now), State{LastKnownGood: a, Rejection: rejected(b, "invalid")}},
		"the peers respond twice":     {waiting.withReadyRetry(now).withReadyRetry(now), waiting.withReadyRetry(now)},
		"an invalid change before":    {State{LastKnownGood: a, Trial: first.Trial, Rejection: rejected(c, "invalid")}.withLostTrial("unreachable"), State{LastKnownGood: a, Rejection: rejected(c, "invalid")}},
		"a lost checkpoint":           {waiting.withoutVersion(a).withCandidate(candidate{version: b}, now), State{Trial: &Trial{Version: b, Starts: 1, Before: before}}},
		"the next trial":              {waiting.withReadyRetry(now).withCandidate(candidate{version: b}, now), State{LastKnownGood: a, Trial: suspected}},
		"the next trial if cleared":   {cleared.withReadyRetry(now).withCandidate(candidate{version: b}, now), State{LastKnownGood: a, Trial: &Trial{Version: b, Starts: 1, Before: before, Losses: 1}}},
		"the last suspicion":          {State{LastKnownGood: a, Trial: suspected}.withLostTrial("unreachable").withReadyRetry(now), State{LastKnownGood: a, Rejection: rejected(b, "unreachable, in 2 trials")}},
		"a suspicion that is cleared": {State{LastKnownGood: a, Trial: suspected}.withLostTrial("unreachable").withClearedRetry().withReadyRetry(now).withCandidate(candidate{version: b}, now), State{LastKnownGood: a, Trial: &Trial{Version: b, Starts: 1, Before: before, Losses: 2, Suspicions: 1}}},
	} {
		t.Run(name, func(t *testing.T) { checkState(t, test.got, test.want) })
	}

	s := first
	for range maxLosses {
		s = s.withLostTrial("unreachable").withClearedRetry().withReadyRetry(now).withCandidate(candidate{version: b}, now)
	}
	checkState(t, s, State{LastKnownGood: a, Rejection: rejected(b, "unreachable, in 10 trials")})
}

// TestState_WithStart checks that processes that start are counted, and that too many of them end a trial
// if there is another configuration.
func TestState_WithStart(t *testing.T) {
	s := State{LastKnownGood: a, Trial: onTrial(b)}
	for range maxStarts - 1 {
		s = s.withStart(now)
	}
	checkState(t, s, State{LastKnownGood: a, Trial: &Trial{Version: b, Starts: maxStarts}})
	checkState(t, s.withStop().withStart(now), s)
	checkState(t, s.withStart(now), State{LastKnownGood: a, Rejection: rejected(b, "podd crashed 3 times with this configuration")})

	first := State{Trial: &Trial{Version: a, Starts: maxStarts}}
	checkState(t, first.withStart(now), State{Trial: &Trial{Version: a, Starts: maxStarts + 1}})
	checkState(t, State{LastKnownGood: a}.withStart(now), State{LastKnownGood: a})
}

// TestState_Before checks that a trial records the peers that responded before, also before an earlier
// trial that it replaces.
func TestState_Before(t *testing.T) {
	at := now
	at.health = Health{Runtime: true}
	s := State{LastKnownGood: a}.withCandidate(candidate{version: b}, at)
	s = s.withCandidate(candidate{version: c}, now)
	if got := s.Trial.Before; got != at.health {
		t.Errorf("peers before the second trial: got %+v, want %+v", got, at.health)
	}
}

// TestState_Laws checks these laws for random changes: an invalid candidate does not change the
// configuration in use. There is always a configuration in use after the first valid candidate. Only a
// passed trial changes the last known good configuration. A rejected or lost trial restores it.
func TestState_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		hadValid := false
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := s
			switch rapid.SampledFrom([]string{"valid", "valid", "invalid", "start", "stop", "pass", "fail", "lose", "clear", "respond"}).Draw(t, "step") {
			case "valid":
				s = s.withCandidate(candidate{version: rapid.SampledFrom([]Version{a, b, c}).Draw(t, "version")}, now)
				hadValid = true
			case "invalid":
				s = s.withCandidate(candidate{Version{Digest: "broken"}, errors.New("invalid")}, now)
				if s.inUse() != before.inUse() {
					t.Fatalf("configuration in use after an invalid candidate: got %v, want %v", s.inUse(), before.inUse())
				}
			case "start":
				s = s.withStart(now)
			case "stop":
				s = s.withStop()
			case "pass":
				if s.Trial == nil {
					continue
				}
				if s = s.withPassedTrial(now); s.LastKnownGood != before.Trial.Version || s.Trial != nil {
					t.Fatalf("state after a passed trial of %v: got %+v", before.Trial.Version, s)
				}
				continue
			case "fail":
				if !s.canFallBack() {
					continue
				}
				if s = s.withRejectedTrial("failed", now); s.inUse() != before.LastKnownGood {
					t.Fatalf("configuration in use after a rejected trial: got %v, want %v", s.inUse(), before.LastKnownGood)
				}
				if again := s.withCandidate(candidate{version: before.Trial.Version}, now); again.Trial != nil && before.Trial.Version != s.LastKnownGood {
					t.Fatalf("the rejected configuration is on trial again: %+v", again)
				}
			case "lose":
				if !s.canFallBack() {
					continue
				}
				if s = s.withLostTrial("lost"); s.inUse() != before.LastKnownGood {
					t.Fatalf("configuration in use after a lost trial: got %v, want %v", s.inUse(), before.LastKnownGood)
				}
			case "clear":
				if s.Retry != nil {
					s = s.withClearedRetry()
				}
			case "respond":
				if s.Retry != nil {
					s = s.withReadyRetry(now)
				}
			}
			if s.Trial != nil && s.Retry != nil {
				t.Fatalf("podd waits for another trial during a trial: %+v", s)
			}
			if s.Trial != nil && (s.Trial.Losses >= maxLosses || s.Trial.Suspicions >= maxSuspicions) {
				t.Fatalf("too many trials: %+v", s)
			}
			if s.LastKnownGood != before.LastKnownGood {
				t.Fatalf("last known good configuration: got %v, want %v", s.LastKnownGood, before.LastKnownGood)
			}
			if hadValid && s.inUse() == (Version{}) {
				t.Fatalf("no configuration is in use: %+v", s)
			}
		}
	})
}

// checkState compares two states by their content.
func checkState(t *testing.T, got, want State) {
	t.Helper()
	if diff := diffJSON(t, want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
