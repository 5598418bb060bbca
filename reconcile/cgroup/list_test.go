package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestListPods(t *testing.T) {
	root, points := newTestRoot(t)
	if uids, err := ListPods(root); len(uids) > 0 || err != nil {
		t.Errorf("no cgroups: got UIDs %q and error %v, want none", sets.List(uids), err)
	}
	// Other names in the same directories do not belong to pods, and a pod's cgroup below another one is
	// not created by podd.
	for _, name := range []string{"podu-1", "burstable/podu2", "besteffort/podu3", "other", "pod", "pod_x", "kubepods-podu4.slice", "podu-1/podu5"} {
		if err := os.MkdirAll(filepath.Join(points[0], root, "kubepods", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	last := points[len(points)-1]
	slice := filepath.Join(last, AllPodsPaths(root, driverSystemd)[0])
	prefix := filepath.Base(slice)[:len(filepath.Base(slice))-len(sliceSuffix)]
	t.Cleanup(func() { removeForce(t, filepath.Dir(slice)) })
	for _, name := range []string{prefix + "-podu_6.slice", prefix + "-burstable.slice/" + prefix + "-burstable-podu7.slice", "podu8", "other-podu9.slice"} {
		if err := os.MkdirAll(filepath.Join(slice, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uids, err := ListPods(root)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]types.UID{"u-1", "u-6", "u2", "u3", "u7"}, sets.List(uids)); diff != "" {
		t.Errorf("UIDs of pods with cgroups (-want +got):\n%s", diff)
	}
}
