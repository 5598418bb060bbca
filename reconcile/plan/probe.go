package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A ProbeKind is the purpose of a probe.
type ProbeKind string

// The kinds. If a StartupProbe or LivenessProbe fails, the container is restarted. If a
// ReadinessProbe fails, the container is not ready. The LivenessProbe and the ReadinessProbe begin
// when the StartupProbe has passed.
const (
	StartupProbe   ProbeKind = "startup"
	LivenessProbe  ProbeKind = "liveness"
	ReadinessProbe ProbeKind = "readiness"
)

// FindProbe returns the probe of container c with this kind; nil if there is none.
func FindProbe(c *v1.Container, kind ProbeKind) *v1.Probe {
	switch kind {
	case StartupProbe:
		return c.StartupProbe
	case LivenessProbe:
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// HasProbes reports whether a container has a probe of any kind.
func HasProbes(c *v1.Container) bool {
	return c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil
}

// RunProbe carries out one attempt of a probe of a running container.
type RunProbe struct {
	Container string
	ID        string
	Kind      ProbeKind
}

// Subject implements Action. A container and a kind identify a RunProbe, because at most one attempt of
// each kind is in progress for a container.
func (a RunProbe) Subject() string { return "probe/" + a.Container + "/" + string(a.Kind) }

// Verb implements Action.
func (RunProbe) Verb() string { return "probe" }

// String implements Action.
func (a RunProbe) String() string { return fmt.Sprintf("run the %s probe of %s", a.Kind, a.Container) }

func (RunProbe) sealed() {}

// ContainerProbes is the state of the probes of the container with one ID. Fields with a JSON name
// survive a restart of podd.
type ContainerProbes struct {
	// Since is the time at which the container was first observed to run, with a monotonic clock
	// reading. The initial delay of the probes is counted from it.
	Since time.Time `json:"-"`
	// RanBeforeStart reports whether the container already ran when podd started.
	RanBeforeStart bool       `json:"-"`
	Startup        ProbeState `json:"startup,omitzero"`
	Liveness       ProbeState `json:"liveness,omitzero"`
	Readiness      ProbeState `json:"readiness,omitzero"`
}

// State returns the state of the probe of this kind.
func (p ContainerProbes) State(kind ProbeKind) ProbeState { return *p.at(kind) }

// With returns p with the state s for the probe of this kind.
func (p ContainerProbes) With(kind ProbeKind, s ProbeState) ContainerProbes {
	*p.at(kind) = s
	return p
}

func (p *ContainerProbes) at(kind ProbeKind) *ProbeState {
	switch kind {
	case StartupProbe:
		return &p.Startup
	case LivenessProbe:
		return &p.Liveness
	}
	return &p.Readiness
}

// Health is the result of a probe. It changes when the number of consecutive attempts with the same
// result reaches the threshold of the probe. The zero value means that there were not enough
// attempts yet. Until then, the container counts as alive, but not as started or ready.
type Health string

// Results of a probe.
const (
	ProbePassed Health = "passed"
	ProbeFailed Health = "failed"
)

// A ProbeState is the state of one probe.
type ProbeState struct {
	Health Health `json:"health,omitempty"`
	// Message is one line for users: the failure that caused Health or, while Health is "", the
	// first failure. After Health is set, Message changes only when Health changes.
	Message string `json:"message,omitempty"`
	// Began is the time at which the last attempt began, with a monotonic clock reading; zero if
	// there was none.
	Began time.Time `json:"-"`
	// Passing is the result of the last attempt that could be carried out. Consecutive is the
	// number of consecutive attempts with this result. Errors is the number of later attempts,
	// which could not be carried out.
	Passing     bool `json:"-"`
	Consecutive int  `json:"-"`
	Errors      int  `json:"-"`
	// Warned reports whether a warning was published.
	Warned bool `json:"-"`
}

// A ProbeResult is the result of one attempt.
type ProbeResult struct {
	Began  time.Time
	Passed bool
	// Errored reports whether the attempt could not be carried out. Such an attempt neither passes
	// nor fails.
	Errored bool
	Message string
}

// maxImmediateTries is the number of attempts that are made without a delay if they cannot be
// carried out. After that number, the next attempt waits for the period of the probe.
const maxImmediateTries = 3

// WithResult returns the state of probe p after an attempt. t is the state before the attempt, and
// result is the result of the attempt.
func (t ProbeState) WithResult(p *v1.Probe, result ProbeResult) ProbeState {
	t.Began = result.Began
	if result.Errored {
		t.Errors++
		t.keepFirstMessage("could not be carried out: " + result.Message)
		return t
	}
	if t.Consecutive > 0 && t.Passing == result.Passed {
		t.Consecutive++
	} else {
		t.Consecutive = 1
	}
	t.Passing, t.Errors = result.Passed, 0
	switch {
	case result.Passed && t.Consecutive >= int(p.SuccessThreshold):
		t.Health, t.Message = ProbePassed, ""
	case !result.Passed && t.Consecutive >= int(p.FailureThreshold) && t.Health != ProbeFailed:
		t.Health, t.Message = ProbeFailed, "failed: "+result.Message
	case !result.Passed:
		t.keepFirstMessage("failed: " + result.Message)
	}
	return t
}

// keepFirstMessage sets Message if Health and Message are "".
func (t *ProbeState) keepFirstMessage(message string) {
	if t.Health == "" && t.Message == "" {
		t.Message = message
	}
}

// needsUser reports whether a user must act: the probe has failed, or its attempts cannot be
// carried out.
func (t ProbeState) needsUser() bool {
	return t.Health == ProbeFailed || t.Health == "" && t.Errors >= maxImmediateTries
}

// describe returns the message with the kind of the probe; "" if there is no message.
func (t ProbeState) describe(kind ProbeKind) string {
	if t.Message == "" {
		return ""
	}
	return string(kind) + " probe " + t.Message
}
