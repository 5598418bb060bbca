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
	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/stats"
	"podd/server"
)

// TestPodDisk_ExitedContainer checks that the logs and the layers of exited containers are measured, and
// that the metrics contain only the logs of running containers.
func TestPodDisk_ExitedContainer(t *testing.T) {
	root, logs := t.TempDir(), t.TempDir()
	view := newRunningPod("web", "u1")
	view.Pod.Status.ContainerStatuses = append(view.Pod.Status.ContainerStatuses, v1.ContainerStatus{
		Name: "hog", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "containerd://hog-1"}},
	})
	m := &diskMeter{rootDir: root, node: render.Node{LogsDir: logs}, onVolumeMeasured: func(string, time.Duration) {}}
	sampled := &sampledPods(poddtest.NewView(view), "")[0]
	for _, name := range []string{"app", "hog"} {
		dir := filepath.Join(m.node.PodLogDir(sampled.Key, "u1"), name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "0.log"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layers := map[string]runtime.Usage{
		"u1-app": {WritableLayer: &runtime.Filesystem{UsedBytes: 1}}, "hog-1": {WritableLayer: &runtime.Filesystem{UsedBytes: 9 << 30}}, "unknown": {},
	}
	d := m.podDisk(t.Context(), sampled, view.Pod, layers, stats.Filesystem{})
	if len(d.Layers) != 2 || *d.Layers["hog-1"].UsedBytes != 9<<30 {
		t.Errorf("layers: got %+v, want those of both containers", d.Layers)
	}
	if len(d.Logs) != 2 || *d.Logs["hog"].UsedBytes == 0 {
		t.Errorf("logs: got %+v, want those of both containers", d.Logs)
	}
	metrics := diskMetrics(&stats.Disk{Pods: map[types.UID]stats.PodDisk{"u1": d}}, poddtest.NewView(view))
	if len(metrics.Logs) != 1 || metrics.Logs[0].Container != "app" {
		t.Errorf("metrics: got %+v, want only the logs of the running container", metrics.Logs)
	}
}

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
