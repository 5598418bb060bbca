package podlog

import (
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// newNoLogError returns the error for a container that has no log. p is nil if the pod was deleted.
// The error has the kubelet's status and message, because clients that wait for a log compare
// them.
func newNoLogError(p *server.PodView, req server.LogRequest) error {
	if p == nil {
		return NewNoPodError(req.Pod)
	}
	message := fmt.Sprintf("container %q in pod %q is waiting to start - no logs yet", req.Container, req.Pod.Name)
	s := containerStatus(p, req.Container)
	switch {
	case req.Previous:
		message = fmt.Sprintf("previous terminated container %q in pod %q not found", req.Container, req.Pod.Name)
	case s == nil:
	case s.State.Running != nil || s.State.Terminated != nil:
		message = fmt.Sprintf("unable to retrieve container logs for %s: the log of container %q in pod %q was removed", s.ContainerID, req.Container, req.Pod.Name)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		message = fmt.Sprintf("container %q in pod %q is waiting to start: %s", req.Container, req.Pod.Name, waitReason(s.State.Waiting.Reason))
	}
	return &server.Error{Status: http.StatusBadRequest, Message: message, Reason: server.ReasonNoLog}
}

// NewNoPodError returns the error for a pod that does not exist.
func NewNoPodError(name types.NamespacedName) error {
	return server.NewNotFoundError(fmt.Sprintf("there is no pod %s", name))
}

// waitReason returns the text with which the kubelet describes the reason of a waiting
// container.
func waitReason(reason string) string {
	switch reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

// containerStatus returns the status of a container of any kind, or nil.
func containerStatus(p *server.PodView, container string) *v1.ContainerStatus {
	if p == nil {
		return nil
	}
	for s := range server.ContainerStatuses(p.Pod) {
		if s.Name == container {
			return s
		}
	}
	return nil
}
