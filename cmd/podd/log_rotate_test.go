package main

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestWrittenLogs: of every container that ran, whatever kind it is of.
func TestWrittenLogs(t *testing.T) {
	ran := func(name string) []v1.ContainerStatus {
		return []v1.ContainerStatus{{Name: name, ContainerID: "containerd://" + name}, {Name: "never"}}
	}
	p := podAt("web.yaml", 1, "web")
	p.Pod.UID = "u"
	p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses = ran("init"), ran("main")
	p.Pod.Status.EphemeralContainerStatuses = ran("debugger")
	var got []string
	for _, l := range writtenLogs(viewOf(p)) {
		got = append(got, l.Dir)
	}
	if want := []string{"default_web-n1_u/init", "default_web-n1_u/main", "default_web-n1_u/debugger"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
