package once

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
)

// Input is all that a Judgement rests on.
type Input struct {
	Pods []Pod // at least one
	// Released says that an earlier Judgement started the pods that end.
	Released bool
	// Began is when the run did; Timeout bounds it, zero does not.
	Began, Now  time.Time
	Timeout     time.Duration
	Interrupted bool
	// Broken is why the output cannot be written any more, or the runtime not be
	// watched; nil: all is well.
	Broken error
}

// Judgement is what is to be done now.
type Judgement struct {
	// Start has the pods that should run by now, those already started too.
	Start []types.NamespacedName
	// Released says that Start has the pods that end.
	Released bool
	// Verdict ends the run; nil: it goes on.
	Verdict *Verdict
	// Wake is when to judge again if nothing happens; zero: no need.
	Wake time.Time
}

// Outcome is why a run ended.
type Outcome string

// The outcomes.
const (
	Ended       Outcome = "ended"       // every pod that ends did
	Ready       Outcome = "ready"       // there are none that end, and all others are ready
	Hopeless    Outcome = "hopeless"    // a pod cannot come right
	TimedOut    Outcome = "timeout"     // the run took too long
	Interrupted Outcome = "interrupted" // it was asked to end
	Broken      Outcome = "broken"      // podd cannot go on
)

// Verdict is how a run ended.
type Verdict struct {
	Outcome Outcome
	// Code is what podd exits with.
	Code int
	// Trouble is what makes a run Hopeless; its zero value otherwise.
	Trouble Trouble
	// Why says what a Broken run broke at; "" otherwise.
	Why string
}

// Judge decides. It is pure: equal inputs give equal judgements. Once it gave a
// Verdict it is not to be asked again.
func Judge(in Input) Judgement {
	j := Judgement{Released: in.Released || in.goingReady()}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.goesOn() || j.Released {
			j.Start = append(j.Start, p.Wanted.Key)
		}
	}
	j.Verdict = in.verdict(&j)
	return j
}

// goingReady says that every pod that goes on is ready.
func (in *Input) goingReady() bool {
	for i := range in.Pods {
		if p := &in.Pods[i]; p.goesOn() && !p.ready() {
			return false
		}
	}
	return true
}

// verdict is an ordered table; the first match wins.
func (in *Input) verdict(j *Judgement) *Verdict {
	ending, left := 0, 0
	for i := range in.Pods {
		if p := &in.Pods[i]; !p.goesOn() {
			ending++
			if !p.ended() {
				left++
			}
		}
	}
	trouble, hopeless := in.trouble(j)
	deadline := in.Began.Add(in.Timeout)
	switch {
	// A result that is complete stays one, whatever happens in that moment.
	case ending > 0 && left == 0:
		return &Verdict{Outcome: Ended, Code: in.code(nil)}
	case ending == 0 && j.Released:
		return &Verdict{Outcome: Ready}
	case in.Interrupted:
		return &Verdict{Outcome: Interrupted, Code: CodeInterrupted}
	case in.Broken != nil:
		return &Verdict{Outcome: Broken, Code: CodeOwn, Why: in.Broken.Error()}
	case hopeless:
		return &Verdict{Outcome: Hopeless, Code: in.code(&trouble), Trouble: trouble}
	case in.Timeout > 0 && !in.Now.Before(deadline):
		return &Verdict{Outcome: TimedOut, Code: CodeTimeout}
	case in.Timeout > 0:
		j.wakeAt(deadline)
	}
	return nil
}

// trouble is the first pod's that cannot come right.
func (in *Input) trouble(j *Judgement) (Trouble, bool) {
	for i := range in.Pods {
		t, wake, found := in.Pods[i].trouble(in.Now)
		if found {
			return t, true
		}
		j.wakeAt(wake)
	}
	return Trouble{}, false
}

// code is that of the one container that failed, and CodeSeveral of several.
// What no container is to blame for outranks them.
func (in *Input) code(t *Trouble) int {
	failed, c := 0, 0
	for i := range in.Pods {
		p := &in.Pods[i]
		if !p.ended() || p.goesOn() || !p.Report.Finished.Failed {
			continue
		}
		if p.Report.Finished.Reason == plan.DeadlineExceeded {
			failed++
			c = CodeTimeout
			continue
		}
		blamed := p.failing()
		if len(blamed) == 0 { // it was lost before it ended
			return CodeOwn
		}
		for _, m := range blamed {
			failed++
			c = code(m.exit.Code)
		}
	}
	if t != nil {
		failed++
		c = t.Code
		if c == CodeOwn {
			return CodeOwn
		}
	}
	if failed > 1 {
		return CodeSeveral
	}
	return c
}

// wakeAt keeps the earliest of all wakes.
func (j *Judgement) wakeAt(t time.Time) {
	if !t.IsZero() && (j.Wake.IsZero() || t.Before(j.Wake)) {
		j.Wake = t
	}
}
