package podlog

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestNewLister checks that the logs of all init, regular and ephemeral containers that have run are
// listed.
func TestNewLister(t *testing.T) {
	ran := func(name string) []v1.ContainerStatus {
		return []v1.ContainerStatus{{Name: name, ContainerID: "containerd://" + name}, {Name: "never"}}
	}
	p := poddtest.NewPod("web.yaml", 1, "web")
	p.Pod.UID = "u"
	p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses = ran("init"), ran("main")
	p.Pod.Status.EphemeralContainerStatuses = ran("debugger")
	var got []string
	for _, l := range NewLister(server.NewLatestView(poddtest.NewView(p)))() {
		got = append(got, l.Dir)
	}
	if want := []string{"default_web-n1_u/init", "default_web-n1_u/main", "default_web-n1_u/debugger"}; !slices.Equal(got, want) {
		t.Errorf("got logs in the directories %q, want %q", got, want)
	}
}

// TestNewLister_Attempt checks that a log has the attempt number of its container. This number
// exceeds the restart count if the runtime rejected an attempt.
func TestNewLister_Attempt(t *testing.T) {
	p := poddtest.NewPod("web.yaml", 1, "web")
	p.Pod.UID = "u"
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{
		{Name: "main", ContainerID: "containerd://a", RestartCount: 2}, {Name: "side", ContainerID: "containerd://b", RestartCount: 2},
	}
	p.Attempts = map[string]uint32{"a": 3}
	all := NewLister(server.NewLatestView(poddtest.NewView(p)))()
	if len(all) != 2 || all[0].Attempt != 3 || all[1].Attempt != 2 {
		t.Errorf("got logs %+v, want attempts 3 and 2", all)
	}
}
