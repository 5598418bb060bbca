package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodPaths(t *testing.T) {
	want := []string{
		"/a-b/kubepods/podu-1", "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-podu_1.slice",
		"/a-b/kubepods/burstable/podu-1", "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-burstable.slice/a_b-kubepods-burstable-podu_1.slice",
		"/a-b/kubepods/besteffort/podu-1", "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-besteffort.slice/a_b-kubepods-besteffort-podu_1.slice",
	}
	if diff := cmp.Diff(want, PodPaths("/a-b", "u-1")); diff != "" {
		t.Errorf("paths of the pod (-want +got):\n%s", diff)
	}
}

func TestQOSPaths(t *testing.T) {
	kubepods, classes := QOSPaths("")
	got := [][]string{kubepods, classes}
	if diff := cmp.Diff([][]string{{"/kubepods", "/kubepods.slice"}, {
		"/kubepods/burstable", "/kubepods.slice/kubepods-burstable.slice",
		"/kubepods/besteffort", "/kubepods.slice/kubepods-besteffort.slice",
	}}, got); diff != "" {
		t.Errorf("paths of kubepods and of the QoS classes (-want +got):\n%s", diff)
	}
}

func TestAllPodsPaths(t *testing.T) {
	for driver, want := range map[string][]string{
		"cgroupfs": {"/a/kubepods", "/a.slice/a-kubepods.slice"},
		"":         {"/a/kubepods", "/a.slice/a-kubepods.slice"},
		"systemd":  {"/a.slice/a-kubepods.slice", "/a/kubepods"},
	} {
		if diff := cmp.Diff(want, AllPodsPaths("/a", driver)); diff != "" {
			t.Errorf("driver %q (-want +got):\n%s", driver, diff)
		}
	}
}
