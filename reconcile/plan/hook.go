package plan

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// RunPostStart runs the postStart hook of a running container.
type RunPostStart struct {
	Container string
	ID        string
	Attempt   uint32
	IsExec    bool // whether the hook is a command in the container
}

// RunPreStop runs the preStop hook of a container that is about to be stopped, for at most Grace.
type RunPreStop struct {
	Container string
	ID        string
	Grace     time.Duration
	IsExec    bool // whether the hook is a command in the container
}

// Subject implements Action.
func (a RunPostStart) Subject() string { return "postStart/" + a.ID }

// Subject implements Action.
func (a RunPreStop) Subject() string { return "preStop/" + a.ID }

// Verb implements Action.
func (RunPostStart) Verb() string { return "run hook" }

// Verb implements Action.
func (RunPreStop) Verb() string { return "run hook" }

// String implements Action.
func (a RunPostStart) String() string { return "run the postStart hook of " + a.Container }

// String implements Action.
func (a RunPreStop) String() string {
	return fmt.Sprintf("run the preStop hook of %s within %s", a.Container, a.Grace.Round(time.Second))
}

func (RunPostStart) sealed() {}
func (RunPreStop) sealed()   {}

// IsHook reports whether an action is a hook. The result of a hook is ignored if no decision
// contains the hook any more.
func IsHook(a Action) bool {
	switch a.(type) {
	case RunPostStart, RunPreStop:
		return true
	}
	return false
}

// PostStartState is the state of the postStart hook of one container. The zero value means that no
// hook is due, or that the hook has succeeded. So if the journal is lost, the hook does not run
// again. The state is recorded before the container is started, so that the hook runs again if podd
// is killed before the hook is done. Fields with a JSON name survive a restart of podd.
type PostStartState struct {
	// Attempt is the attempt number of the container.
	Attempt uint32 `json:"attempt"`
	// Failed reports whether the hook failed. Message is the error of the failed hook.
	Failed  bool   `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
	// Due reports whether the hook must still run or is running.
	Due bool `json:"owed,omitempty"`
	// Since is the time at which the container was first observed to run, with a monotonic clock
	// reading. The duration of a hook that sleeps is counted from Since.
	Since time.Time `json:"-"`
}

// IsPending reports whether container c does not count as started. This is the case if its
// postStart hook is not done, or if the hook failed and the container is being stopped. c may be
// nil.
func (h PostStartState) IsPending(spec *v1.Container, c *runtime.Container, now time.Time) bool {
	if c == nil || h.Attempt != c.Attempt || !HasPostStart(spec) {
		return false
	}
	return h.Failed || h.Due && h.remaining(spec, c, now) > 0
}

// remaining returns the remaining duration of a hook that sleeps. For other hooks it returns
// MaxGrace, because their duration is unknown.
func (h PostStartState) remaining(spec *v1.Container, c *runtime.Container, now time.Time) time.Duration {
	sleep := spec.Lifecycle.PostStart.Sleep
	if sleep == nil {
		return MaxGrace
	}
	since := h.Since
	if since.IsZero() {
		since = now
	}
	// The part of the sleep before the first observation is measured by the runtime's clock.
	sleptBefore := max(since.Sub(c.StartedAt), 0)
	return GraceDuration(sleep.Seconds) - sleptBefore - max(now.Sub(since), 0)
}

// HasPostStart reports whether a container has a postStart hook.
func HasPostStart(c *v1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

// A Termination is the stop of one container. Fields with a JSON name survive a restart of
// podd.
type Termination struct {
	// If only this container is stopped, Since is when the termination began, and Grace is its
	// grace period. If the container stops with its pod, Since is zero; see History.Stopping.
	Since time.Time     `json:"since,omitzero"`
	Grace time.Duration `json:"grace,omitempty"`
	Why   string        `json:"why,omitempty"`
	// WillRestart reports whether the container is restarted after it has exited.
	WillRestart bool `json:"again,omitempty"`
	// HasFailedProbe reports whether the container is stopped because its startup or liveness probe
	// failed. After that, it is restarted even if its exit code is 0, unless its restart policy is
	// Never.
	HasFailedProbe bool `json:"unhealthy,omitempty"`
	// HookDone reports whether the preStop hook has finished, successfully or not.
	HookDone bool `json:"hooked,omitempty"`
}

// RecordedPreStop returns the preStop hook in the annotations of a container; nil if there is none.
// The hook is read from the annotations because podd may no longer have the manifest.
func RecordedPreStop(c *runtime.Container) *v1.LifecycleHandler {
	text := c.Annotations[runtime.AnnotationPreStopHandler]
	if text == "" {
		return nil
	}
	h := &v1.LifecycleHandler{}
	if err := json.Unmarshal([]byte(text), h); err != nil {
		return nil
	}
	return h
}
