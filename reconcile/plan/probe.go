package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ProbeKind is what it means that a probe fails: Startup and Liveness restart
// the container, Readiness takes its word that it can serve. Until Startup has
// passed the two others wait.
type ProbeKind string

// The kinds.
const (
	Startup   ProbeKind = "startup"
	Liveness  ProbeKind = "liveness"
	Readiness ProbeKind = "readiness"
)

// ProbeOf is a container's probe of a kind, nil for none.
func ProbeOf(c *v1.Container, kind ProbeKind) *v1.Probe {
	switch kind {
	case Startup:
		return c.StartupProbe
	case Liveness:
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// HasProbes tells whether a container has a probe of any kind.
func HasProbes(c *v1.Container) bool {
	return c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil
}

// Probe makes one attempt of a probe of a running container.
type Probe struct {
	Container string
	ID        string
	Kind      ProbeKind
}

// Subject implements Action: one attempt of a container and kind at a time.
func (a Probe) Subject() string { return "probe/" + a.Container + "/" + string(a.Kind) }

// Verb implements Action.
func (Probe) Verb() string { return "probe" }

func (a Probe) String() string { return fmt.Sprintf("probe the %s of %s", a.Kind, a.Container) }

func (Probe) sealed() {}

// Probed is what is remembered of the probes of one container. It dies with
// the container's ID; what has a JSON name outlives podd.
type Probed struct {
	// Since is when the container was first seen to run, monotonic: first
	// attempts are measured from it.
	Since time.Time `json:"-"`
	// Adopted says that it ran already when podd came.
	Adopted   bool  `json:"-"`
	Startup   Trial `json:"startup,omitzero"`
	Liveness  Trial `json:"liveness,omitzero"`
	Readiness Trial `json:"readiness,omitzero"`
}

// Of is what is remembered of one kind.
func (p Probed) Of(kind ProbeKind) Trial { return *p.at(kind) }

// With is p with another memory of one kind.
func (p Probed) With(kind ProbeKind, t Trial) Probed {
	*p.at(kind) = t
	return p
}

func (p *Probed) at(kind ProbeKind) *Trial {
	switch kind {
	case Startup:
		return &p.Startup
	case Liveness:
		return &p.Liveness
	}
	return &p.Readiness
}

// Health is what enough attempts in a row say of a container. The zero value
// is that there were not enough yet: neither ready nor started, and alive.
type Health string

// The verdicts of a probe.
const (
	Passed Health = "passed"
	Failed Health = "failed"
)

// Trial is what the attempts of one probe have come to.
type Trial struct {
	Health Health `json:"health,omitempty"`
	// Message is the failure that Health rests on or, before there is any, the
	// first one: a line fit for users. It stands still until Health changes.
	Message string `json:"message,omitempty"`
	// Began is when the last attempt began, monotonic; zero: none was made.
	Began time.Time `json:"-"`
	// Passing is how the last attempts went, InRow how many of them; Errors is
	// how many have since come to nothing.
	Passing bool `json:"-"`
	InRow   int  `json:"-"`
	Errors  int  `json:"-"`
	// Warned says that a warning was told.
	Warned bool `json:"-"`
}

// Outcome is what came of one attempt.
type Outcome struct {
	Began  time.Time
	Passed bool
	// Errored says that the attempt could not be made: it counts for nothing.
	Errored bool
	Message string
}

// probeTries is how often an attempt that could not be made is made again at
// once.
const probeTries = 3

// After is what one more attempt of probe p makes of t.
func (t Trial) After(p *v1.Probe, o Outcome) Trial {
	t.Began = o.Began
	if o.Errored {
		t.Errors++
		t.remark("cannot be made: " + o.Message)
		return t
	}
	if t.InRow > 0 && t.Passing == o.Passed {
		t.InRow++
	} else {
		t.InRow = 1
	}
	t.Passing, t.Errors = o.Passed, 0
	switch {
	case o.Passed && t.InRow >= int(p.SuccessThreshold):
		t.Health, t.Message = Passed, ""
	case !o.Passed && t.InRow >= int(p.FailureThreshold) && t.Health != Failed:
		t.Health, t.Message = Failed, "failed: "+o.Message
	case !o.Passed:
		t.remark("failed: " + o.Message)
	}
	return t
}

// remark keeps the first thing there is to say before there is a verdict.
func (t *Trial) remark(message string) {
	if t.Health == "" && t.Message == "" {
		t.Message = message
	}
}

// hopeless says that somebody has something to mend: it failed, or was never
// made for all that was tried.
func (t Trial) hopeless() bool { return t.Health == Failed || t.Health == "" && t.Errors >= probeTries }

// why is what there is to say of a probe that has not passed.
func (t Trial) why(kind ProbeKind) string {
	if t.Message == "" {
		return ""
	}
	return string(kind) + " probe " + t.Message
}
