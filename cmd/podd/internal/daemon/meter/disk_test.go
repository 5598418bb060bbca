package meter

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/cmd/podd/internal/rootdir"
	"podd/runtime/cri"
	"podd/runtime/stats"
	"podd/server"
)

// TestPodDisk_LowerBound checks that the usage of a volume that cannot be counted completely is a lower
// bound. Its directories are nested too deeply.
func TestPodDisk_LowerBound(t *testing.T) {
	root := t.TempDir()
	volume := filepath.Join(rootdir.PodsPath(root), "u1/volumes/kubernetes.io~empty-dir/data")
	if err := os.MkdirAll(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(volume, unix.O_PATH, 0)
	for range 5000 {
		if err == nil {
			err = unix.Mkdirat(at, "d", 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		var next int
		next, err = unix.Openat(at, "d", unix.O_PATH, 0)
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	p := poddtest.NewPod("a.yaml", 1, "one", "app").Pod
	p.UID, p.Spec.Volumes = "u1", []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	m := &diskMeter{rootDir: root, onVolumeMeasured: func(string, time.Duration) {}}
	d := m.podDisk(t.Context(), &stats.Pod{UID: p.UID}, p, nil, stats.Filesystem{})
	if len(d.Volumes) != 1 || !d.Volumes[0].IsLowerBound || *d.Volumes[0].InodesUsed < 4000 {
		t.Errorf("got volumes %+v, want one whose usage is a lower bound", d.Volumes)
	}
}

// TestMeasure_Timeout checks that measure omits the pods that it cannot measure in time. If
// the runtime does not respond, measure omits the layers.
func TestMeasure_Timeout(t *testing.T) {
	dir := t.TempDir()
	unresponsive, err := net.Listen("unix", filepath.Join(dir, "cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unresponsive.Close()
	client, err := cri.Dial(cri.Options{Endpoint: "unix://" + unresponsive.Addr().String(), Timeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	one, two := poddtest.NewPod("a.yaml", 1, "one", "app"), poddtest.NewPod("b.yaml", 1, "two", "app")
	one.Pod.UID, two.Pod.UID = "u1", "u2"
	m := &diskMeter{rootDir: dir, runtime: client, state: server.NewLatestView(poddtest.NewView(one, two)), onVolumeMeasured: func(string, time.Duration) {}}
	var pods []stats.Pod
	for _, p := range []*v1.Pod{one.Pod, two.Pod} {
		pods = append(pods, stats.Pod{Key: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, UID: p.UID})
	}
	d, err := m.measure(t.Context(), pods)
	if err != nil || len(d.Pods) != 2 || d.Pods["u1"].Layers != nil || d.Pods["u1"].Incomplete || d.Pods["u1"].At.IsZero() {
		t.Errorf("unresponsive runtime: got %+v, error %v; want both pods without layers", d, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err = m.measure(canceled, pods); err != nil || len(d.Pods) > 0 || d.Root.Space == nil {
		t.Errorf("canceled context: got %+v, error %v; want the usage of the root file system and no pods", d, err)
	}
	if p := m.podDisk(canceled, &pods[0], one.Pod, nil, d.Root); !p.Incomplete {
		t.Errorf("canceled context: got pod %+v, want Incomplete to be true", p)
	}
}
