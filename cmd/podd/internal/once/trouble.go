package once

import (
	"fmt"
	"net/http"
	"time"

	"podd/reconcile/plan"
)

// How much a run puts up with before it ends. A daemon would try on.
const (
	maxPulls      = 3 // of one image
	maxFailures   = 5 // of anything else podd does for a pod, 15 s in all
	maxCrashes    = 3 // of a container that should go on
	maxRetries    = 6 // of one that restarts until it succeeds
	startPatience = 30 * time.Second
	// runPatience: a runtime may be restarted under pods that run.
	runPatience = 2 * time.Minute
)

// Trouble is what cannot come right about a pod.
type Trouble struct {
	Pod       *Pod
	Container string // "" when it is about the whole pod
	// Code is the container's own when its crashes are the trouble of a pod that
	// should have ended, else CodeOwn.
	Code int
	// Exit is the container's last, when it crashed too often.
	Exit *plan.Exit
	Why  string
}

// pullReasons are the waiting reasons that speak of an image.
var pullReasons = map[string]bool{
	"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "RegistryUnavailable": true,
	"SignatureValidationFailed": true, "ErrImageNeverPull": true, "ImageInspectError": true,
}

// trouble tells whether the pod cannot come right, else when a wait of it has
// lasted long enough to be one.
func (p *Pod) trouble(now time.Time) (t Trouble, wake time.Time, found bool) {
	if p.Report == nil || p.ended() {
		return Trouble{}, time.Time{}, false
	}
	d := &p.Report.Decision
	own := Trouble{Pod: p, Code: CodeOwn, Why: d.Why + tried(d.Failure.Count)}
	if d.Failure.Final || d.Failure.Count >= maxFailures {
		return own, time.Time{}, true
	}
	for _, s := range d.Steps {
		if futile(s.Failure) {
			own.Container, own.Why = s.Container, s.Failure.Message+tried(s.Failure.Count)
			return own, time.Time{}, true
		}
	}
	if t, found := p.crashed(); found {
		return t, time.Time{}, true
	}
	if d.Phase != plan.PhaseWait || p.Report.Since.IsZero() {
		return Trouble{}, time.Time{}, false
	}
	until := p.Report.Since.Add(p.patience())
	if now.Before(until) {
		return Trouble{}, until, false
	}
	if own.Why == "" {
		own.Why = d.Rule
	}
	return own, time.Time{}, true
}

func tried(n int) string {
	if n < 2 {
		return ""
	}
	return ", tried " + times(n)
}

// futile says that trying again is no use in a run.
func futile(f plan.Failure) bool {
	switch {
	case f.Final:
		return true
	case !pullReasons[f.Reason]:
		return f.Count >= maxFailures
	}
	switch f.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return true
	}
	return f.Count >= maxPulls
}

// patience is how long the pod may wait for the machine.
func (p *Pod) patience() time.Duration {
	if len(p.Report.Observed) > 0 {
		return runPatience
	}
	return startPatience
}

// crashed finds a container that crashes again and again. Sidecars of pods that
// end only support the others, which tell by themselves whether they can do
// without.
func (p *Pod) crashed() (Trouble, bool) {
	limit := maxRetries
	if p.goesOn() {
		limit = maxCrashes
	}
	for _, m := range p.members() {
		n := m.crashes()
		if !m.again || n < limit || m.kind == plan.Sidecar && !p.goesOn() {
			continue
		}
		t := Trouble{Pod: p, Container: m.spec.Name, Code: CodeOwn, Exit: m.exit}
		t.Why = fmt.Sprintf("crashed %d times", n)
		if !p.goesOn() {
			t.Code = code(m.exit.Code)
		}
		return t, true
	}
	return Trouble{}, false
}
