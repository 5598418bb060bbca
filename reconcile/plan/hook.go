package plan

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// PostStart runs the postStart hook of a running container.
type PostStart struct {
	Container string
	ID        string
	Attempt   uint32
	Exec      bool // the hook is a command in the container
}

// PreStop runs the preStop hook of a container that is about to be stopped, within the rest
// of its grace period.
type PreStop struct {
	Container string
	ID        string
	Grace     time.Duration
	Exec      bool // the hook is a command in the container
}

// Subject implements Action.
func (a PostStart) Subject() string { return "postStart/" + a.ID }

// Subject implements Action.
func (a PreStop) Subject() string { return "preStop/" + a.ID }

// Verb implements Action.
func (PostStart) Verb() string { return "run hook" }

// Verb implements Action.
func (PreStop) Verb() string { return "run hook" }

func (a PostStart) String() string { return "run the postStart hook of " + a.Container }

func (a PreStop) String() string {
	return fmt.Sprintf("run the preStop hook of %s within %s", a.Container, a.Grace.Round(time.Second))
}

func (PostStart) sealed() {}
func (PreStop) sealed()   {}

// IsHook reports whether an action is a hook. Once no decision names it any more, nothing
// waits for it and its result is ignored.
func IsHook(a Action) bool {
	switch a.(type) {
	case PostStart, PreStop:
		return true
	}
	return false
}

// Hook is the state of the postStart hook of one container. The zero value means that none
// is due, or that it succeeded. It is recorded before the container is started: if podd is
// killed in between, the hook runs again; if the journal is lost, it does not. Fields with
// a JSON name survive a restart of podd.
type Hook struct {
	// Attempt is the attempt number of the container.
	Attempt uint32 `json:"attempt"`
	// Failed reports that the hook ran and failed with Message.
	Failed  bool   `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
	// Due reports that the hook is not done.
	Due bool `json:"owed,omitempty"`
	// Since is when the container was first observed running, monotonic. A sleep is
	// measured from it.
	Since time.Time `json:"-"`
}

// Pending reports whether a container with this hook has not started yet: the hook is not
// done, or it failed and the container is being stopped.
func (h Hook) Pending(spec *v1.Container, c *runtime.Container, now time.Time) bool {
	if c == nil || h.Attempt != c.Attempt || !HasPostStart(spec) {
		return false
	}
	return h.Failed || h.Due && h.remaining(spec, c, now) > 0
}

// rest returns the remaining time of the hook. For a hook other than a sleep it is unknown,
// and MaxGrace is returned.
func (h Hook) remaining(spec *v1.Container, c *runtime.Container, now time.Time) time.Duration {
	sleep := spec.Lifecycle.PostStart.Sleep
	if sleep == nil {
		return MaxGrace
	}
	since := h.Since
	if since.IsZero() {
		since = now
	}
	// Minus the time that had passed by the runtime's clock before podd started.
	before := max(since.Sub(c.StartedAt), 0)
	return GraceDuration(sleep.Seconds) - before - max(now.Sub(since), 0)
}

// HasPostStart reports whether a container has a postStart hook.
func HasPostStart(c *v1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

// A Termination is the stop of one container. Fields with a JSON name survive a restart of
// podd.
type Termination struct {
	// Since is when it began for a reason of the container itself, with Grace; zero: it
	// stops with its pod, see Stopping.
	Since time.Time     `json:"since,omitzero"`
	Grace time.Duration `json:"grace,omitempty"`
	Why   string        `json:"why,omitempty"`
	// Restart reports that the container must be restarted after it has exited.
	Restart bool `json:"again,omitempty"`
	// HookDone reports that its preStop hook is done, successfully or not.
	HookDone bool `json:"hooked,omitempty"`
}

// RecordedPreStop returns the hook with which a container was created, or nil if there is none.
// It is read from the container because the manifest may no longer exist.
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
