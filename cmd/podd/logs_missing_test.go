package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

func TestNoLog(t *testing.T) {
	waits := func(reason string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
	p := &server.PodView{Pod: &v1.Pod{Status: v1.PodStatus{
		InitContainerStatuses: []v1.ContainerStatus{{Name: "init", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "new", State: waits("ContainerCreating")}, {Name: "pulled", State: waits("ErrImagePull")},
			{Name: "again", State: waits("ImagePullBackOff")}, {Name: "silent", State: waits("")},
		},
	}}}
	for _, c := range []struct {
		pod       *server.PodView
		container string
		previous  bool
		want      string
	}{
		{p, "new", false, `container "new" in pod "web-n1" is waiting to start: ContainerCreating`},
		{p, "pulled", false, `container "pulled" in pod "web-n1" is waiting to start: image can't be pulled`},
		{p, "again", false, `container "again" in pod "web-n1" is waiting to start: trying and failing to pull image`},
		{p, "silent", false, `container "silent" in pod "web-n1" is waiting to start - no logs yet`},
		{p, "init", false, `container "init" in pod "web-n1" is waiting to start - no logs yet`},
		{p, "new", true, `previous terminated container "new" in pod "web-n1" not found`},
		{nil, "new", false, `container "new" in pod "web-n1" is waiting to start - no logs yet`},
	} {
		err := noLog(c.pod, server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "web-n1"}, Container: c.container, Previous: c.previous})
		if err.Error() != c.want || server.StatusOf(err) != 400 {
			t.Errorf("%s: %d %v, want %s", c.container, server.StatusOf(err), err, c.want)
		}
	}
}
