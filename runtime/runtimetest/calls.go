package runtimetest

import (
	"slices"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A Call is a call to which the runtime has responded.
type Call struct {
	Method string
	// Subject is "namespace/pod", "namespace/pod/container", an image, or "".
	Subject string
	At      time.Time // time at which the call arrived
	// Request is the CRI message; it must not be modified.
	Request any
	Err     error
}

// String returns a text like "StartContainer default/web/app".
func (c Call) String() string {
	if c.Subject == "" {
		return c.Method
	}
	return c.Method + " " + c.Subject
}

// Calls returns the calls of the given methods since the start or the last ForgetCalls, in the
// order of the responses. Without methods, it returns all calls.
func (r *Runtime) Calls(methods ...string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if len(methods) == 0 || slices.Contains(methods, c.Method) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Effects returns the successful calls that changed something, in the format of Call.String.
func (r *Runtime) Effects() []string {
	var effects []string
	for _, c := range r.Calls("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer",
		"StopContainer", "RemoveContainer", "PullImage", "RemoveImage", "UpdateContainerResources", "UpdatePodSandboxResources") {
		if c.Err == nil {
			effects = append(effects, c.String())
		}
	}
	return effects
}

// ForgetCalls clears the log of calls.
func (r *Runtime) ForgetCalls() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

func (r *Runtime) record(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
}

// subjectLocked returns the value of Call.Subject for a request.
func (r *Runtime) subjectLocked(request any) string {
	switch q := request.(type) {
	case *api.RunPodSandboxRequest:
		return podSubject(q.GetConfig())
	case *api.CreateContainerRequest:
		return podSubject(q.GetSandboxConfig()) + "/" + q.GetConfig().GetMetadata().GetName()
	case interface{ GetPodSandboxId() string }:
		if sb := r.sandboxes[q.GetPodSandboxId()]; sb != nil {
			return podSubject(sb.config)
		}
		return q.GetPodSandboxId()
	case interface{ GetContainerId() string }:
		if c := r.containers[q.GetContainerId()]; c != nil {
			return c.subject()
		}
		return q.GetContainerId()
	case interface{ GetImage() *api.ImageSpec }:
		return q.GetImage().GetImage()
	}
	return ""
}

func podSubject(c *api.PodSandboxConfig) string {
	return c.GetMetadata().GetNamespace() + "/" + c.GetMetadata().GetName()
}
