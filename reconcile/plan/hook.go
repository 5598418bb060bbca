package plan

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// PostStart makes the postStart hook of a container that runs.
type PostStart struct {
	Container string
	ID        string
	Attempt   uint32
	Exec      bool // it is a command in the container
}

// PreStop makes the preStop hook of a container that is to be stopped, within
// what is left of its grace.
type PreStop struct {
	Container string
	ID        string
	Grace     time.Duration
	Exec      bool // it is a command in the container
}

// Subject implements Action.
func (a PostStart) Subject() string { return "postStart/" + a.ID }

// Subject implements Action.
func (a PreStop) Subject() string { return "preStop/" + a.ID }

// Verb implements Action.
func (PostStart) Verb() string { return "make" }

// Verb implements Action.
func (PreStop) Verb() string { return "make" }

func (a PostStart) String() string { return "make the postStart hook of " + a.Container }

func (a PreStop) String() string {
	return fmt.Sprintf("make the preStop hook of %s within %s", a.Container, a.Grace.Round(time.Second))
}

func (PostStart) sealed() {}
func (PreStop) sealed()   {}

// IsHook tells whether an action is a hook. Once no decision names it any more,
// nothing waits for it, and what comes of it counts for nothing.
func IsHook(a Action) bool {
	switch a.(type) {
	case PostStart, PreStop:
		return true
	}
	return false
}

// Hook is the postStart hook of one container. The zero value is that none is
// owed, or that it went well. It is written down before the container is
// started: a podd that is killed in between makes the hook again, and one whose
// memory is lost does not. What has a JSON name outlives podd.
type Hook struct {
	// Attempt is the container's.
	Attempt uint32 `json:"attempt"`
	// Failed says that the hook was made and failed, with Message.
	Failed  bool   `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
	// Owed says that it has not come to its end.
	Owed bool `json:"owed,omitempty"`
	// Since is when the container was first seen to run, monotonic: a sleep is
	// measured from it.
	Since time.Time `json:"-"`
}

// Pending says that a container with this hook has not started for others: the
// hook is not over, or it failed and the container is on its way out.
func (h Hook) Pending(spec *v1.Container, c *runtime.Container, now time.Time) bool {
	if c == nil || h.Attempt != c.Attempt || !HasPostStart(spec) {
		return false
	}
	return h.Failed || h.Owed && h.rest(spec, c, now) > 0
}

// rest is how long the hook takes yet, as far as is known: a sleep is over by
// itself, any other hook when somebody says so.
func (h Hook) rest(spec *v1.Container, c *runtime.Container, now time.Time) time.Duration {
	sleep := spec.Lifecycle.PostStart.Sleep
	if sleep == nil {
		return MaxGrace
	}
	since := h.Since
	if since.IsZero() {
		since = now
	}
	// Less what had passed by the runtime's clock when podd came.
	before := max(since.Sub(c.StartedAt), 0)
	return Grace(sleep.Seconds) - before - max(now.Sub(since), 0)
}

// HasPostStart tells whether a container has such a hook.
func HasPostStart(c *v1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

// Ending is the end of one container that is being stopped. What has a JSON name
// outlives podd.
type Ending struct {
	// Since is when it began by a reason of the container's own, with Grace; zero:
	// it ends with its pod, which Stopping tells of.
	Since time.Time     `json:"since,omitzero"`
	Grace time.Duration `json:"grace,omitempty"`
	Why   string        `json:"why,omitempty"`
	// Again says that the container is to be started again however it ends.
	Again bool `json:"again,omitempty"`
	// Hooked says that its preStop hook is over, well or not.
	Hooked bool `json:"hooked,omitempty"`
}

// PreStopOf is the hook that a container was made with, nil for none. It is read
// from the container, since the manifest may be gone.
func PreStopOf(c *runtime.Container) *v1.LifecycleHandler {
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
