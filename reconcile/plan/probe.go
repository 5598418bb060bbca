package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ProbeKind is the purpose of a probe. A failure of Startup or Liveness restarts the
// container, a failure of Readiness makes it not ready. Liveness and Readiness wait until
// Startup has passed.
type ProbeKind string

// The kinds.
const (
	Startup   ProbeKind = "startup"
	Liveness  ProbeKind = "liveness"
	Readiness ProbeKind = "readiness"
)

// FindProbe returns a container's probe of this kind, or nil if there is none.
func FindProbe(c *v1.Container, kind ProbeKind) *v1.Probe {
	switch kind {
	case Startup:
		return c.StartupProbe
	case Liveness:
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// HasProbes reports whether a container has a probe of any kind.
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

func (a Probe) String() string { return fmt.Sprintf("run the %s probe of %s", a.Kind, a.Container) }

func (Probe) sealed() {}

// Probed is the state of the probes of one container. It is discarded with the container's
// ID. Fields with a JSON name survive a restart of podd.
type Probed struct {
	// Since is when the container was first observed running, monotonic. First attempts are
	// measured from it.
	Since time.Time `json:"-"`
	// Adopted reports that it already ran when podd started.
	Adopted   bool       `json:"-"`
	Startup   ProbeState `json:"startup,omitzero"`
	Liveness  ProbeState `json:"liveness,omitzero"`
	Readiness ProbeState `json:"readiness,omitzero"`
}

// State returns the state of one kind.
func (p Probed) State(kind ProbeKind) ProbeState { return *p.at(kind) }

// With returns p with another state of one kind.
func (p Probed) With(kind ProbeKind, t ProbeState) Probed {
	*p.at(kind) = t
	return p
}

func (p *Probed) at(kind ProbeKind) *ProbeState {
	switch kind {
	case Startup:
		return &p.Startup
	case Liveness:
		return &p.Liveness
	}
	return &p.Readiness
}

// Health is the result of enough consecutive attempts. The zero value means that there were
// not enough yet: neither ready nor started, and alive.
type Health string

// Results of a probe.
const (
	Passed Health = "passed"
	Failed Health = "failed"
)

// A ProbeState is the state of one probe.
type ProbeState struct {
	Health Health `json:"health,omitempty"`
	// Message is the failure that caused Health or, while Health is "", the first failure:
	// a line for users. It changes only with Health.
	Message string `json:"message,omitempty"`
	// Began is when the last attempt began, monotonic; zero: there was none.
	Began time.Time `json:"-"`
	// Passing is the result of the last attempts, InRow their number; Errors is the number
	// of attempts since then that could not be carried out.
	Passing bool `json:"-"`
	InRow   int  `json:"-"`
	Errors  int  `json:"-"`
	// Warned reports that a warning was published.
	Warned bool `json:"-"`
}

// A ProbeResult is the result of one attempt.
type ProbeResult struct {
	Began  time.Time
	Passed bool
	// Errored reports that the attempt could not be carried out, so it does not count.
	Errored bool
	Message string
}

// probeTries is how often an attempt that could not be carried out is repeated immediately.
const probeTries = 3

// After returns the state after one more attempt of probe p.
func (t ProbeState) After(p *v1.Probe, o ProbeResult) ProbeState {
	t.Began = o.Began
	if o.Errored {
		t.Errors++
		t.keepFirstMessage("could not be carried out: " + o.Message)
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
		t.keepFirstMessage("failed: " + o.Message)
	}
	return t
}

// keepFirstMessage keeps the first message before there is a result.
func (t *ProbeState) keepFirstMessage(message string) {
	if t.Health == "" && t.Message == "" {
		t.Message = message
	}
}

// needsUser reports whether a user must act: the probe failed, or none of its attempts could
// be carried out.
func (t ProbeState) needsUser() bool {
	return t.Health == Failed || t.Health == "" && t.Errors >= probeTries
}

// why returns the message of a probe that has not passed.
func (t ProbeState) why(kind ProbeKind) string {
	if t.Message == "" {
		return ""
	}
	return string(kind) + " probe " + t.Message
}
