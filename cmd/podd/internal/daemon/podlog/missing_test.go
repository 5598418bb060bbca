package podlog

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// TestNewNoLogError checks the status and message of the error for containers in all states, for a
// previous run and for a missing pod.
func TestNewNoLogError(t *testing.T) {
	newWaiting := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	p := &server.PodView{Pod: &v1.Pod{Status: v1.PodStatus{
		InitContainerStatuses: []v1.ContainerStatus{
			{Name: "init", ContainerID: "containerd://1", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
			{Name: "side", ContainerID: "containerd://2", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "new", State: newWaiting("ContainerCreating")}, {Name: "pulled", State: newWaiting("ErrImagePull")},
			{Name: "again", State: newWaiting("ImagePullBackOff")}, {Name: "silent", State: newWaiting("")},
		},
	}}}
	for _, c := range []struct {
		pod       *server.PodView
		container string
		previous  bool
		status    int
		want      string
	}{
		{p, "new", false, 400, `container "new" in pod "web-n1" is waiting to start: ContainerCreating`},
		{p, "pulled", false, 400, `container "pulled" in pod "web-n1" is waiting to start: image can't be pulled`},
		{p, "again", false, 400, `container "again" in pod "web-n1" is waiting to start: trying and failing to pull image`},
		{p, "silent", false, 400, `container "silent" in pod "web-n1" is waiting to start - no logs yet`},
		{p, "unknown", false, 400, `container "unknown" in pod "web-n1" is waiting to start - no logs yet`},
		{p, "init", false, 400, `unable to retrieve container logs for containerd://1: the log of container "init" in pod "web-n1" was removed`},
		{p, "side", false, 400, `unable to retrieve container logs for containerd://2: the log of container "side" in pod "web-n1" was removed`},
		{p, "new", true, 400, `previous terminated container "new" in pod "web-n1" not found`},
		{nil, "new", false, 404, `there is no pod default/web-n1`},
	} {
		err := newNoLogError(c.pod, server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, Container: c.container, Previous: c.previous})
		if err.Error() != c.want || server.HTTPStatus(err) != c.status {
			t.Errorf("%s: got status %d, error %q; want status %d, error %q", c.container, server.HTTPStatus(err), err, c.status, c.want)
		}
		// If the error has this reason, "podd logs" adds a hint to run "podd why".
		if e := (*server.Error)(nil); c.pod != nil && (!errors.As(err, &e) || e.Reason != server.ReasonNoLog) {
			t.Errorf("%s: got error %#v, want one with the reason %s", c.container, err, server.ReasonNoLog)
		}
	}
}
