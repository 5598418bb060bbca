package meter

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/cgroup"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/stats"
	"podd/server"
)

// TestSampledPods checks that sampledPods returns only pods with a sandbox, and only their running
// containers.
func TestSampledPods(t *testing.T) {
	began := metav1.NewTime(time.Unix(1000, 0))
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}}
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n1", UID: "u1"},
		Status: v1.PodStatus{
			StartTime: &began,
			InitContainerStatuses: []v1.ContainerStatus{
				{Name: "once", ContainerID: "containerd://c0", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
				{Name: "side", Image: "side:1", ContainerID: "containerd://c1", State: runs},
			},
			ContainerStatuses: []v1.ContainerStatus{
				{Name: "app", Image: "web:1", ContainerID: "cri-o://c2", State: runs},
				{Name: "waits", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}},
			},
		},
	}
	v := &server.View{Pods: []*server.PodView{{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rejected"}}}, {Pod: p, SandboxID: "s1"}}}
	want := []stats.Pod{{
		Key: types.NamespacedName{Namespace: "default", Name: "web-n1"}, UID: "u1",
		Cgroups: cgroup.PodPaths("/x", "u1"), SandboxID: "s1", Started: began.Time,
		Containers: []stats.Container{
			{ID: "c1", Name: "side", Image: "side:1", Started: began.Time}, {ID: "c2", Name: "app", Image: "web:1", Started: began.Time},
		},
	}}
	if diff := cmp.Diff(want, sampledPods(v, "/x")); diff != "" {
		t.Errorf("sampled pods (-want +got):\n%s", diff)
	}
}

// TestUsage checks the usage of the node and of two containers without a cgroup. The runtime reports the
// usage of the first container. The second container must be omitted, because nothing reports its usage.
func TestUsage(t *testing.T) {
	m := &Meter{sampler: stats.New(stats.Options{
		Pods: func() []stats.Pod {
			return []stats.Pod{{Key: types.NamespacedName{Namespace: "default", Name: "web-n1"}, Containers: []stats.Container{{ID: "c1", Name: "app"}, {ID: "c2", Name: "gone"}}}}
		},
		RuntimeUsage: func(context.Context) (map[string]runtime.Usage, error) {
			return map[string]runtime.Usage{"c1": {At: time.Now(), CPUNanoseconds: 7, WorkingSetBytes: 8}}, nil
		},
	})}
	u, err := m.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u.Node.NanoCores == nil || u.Node.CoreNanoSeconds == 0 || u.Node.WorkingSetBytes == 0 || u.At.IsZero() {
		t.Errorf("got usage %+v of the node at %v, want CPU, memory and a time", u.Node, u.At)
	}
	want := map[server.Key]server.PodUsage{
		{Namespace: "default", Name: "web-n1"}: {Containers: map[string]server.ResourceUsage{"app": {CoreNanoSeconds: 7, WorkingSetBytes: 8}}},
	}
	if diff := cmp.Diff(want, u.Pods, cmpopts.IgnoreFields(server.ResourceUsage{}, "NanoCores")); diff != "" {
		t.Errorf("usage of the pods (-want +got):\n%s", diff)
	}
}

// TestContainers_AllPodsCgroup checks that the cgroup of all pods that is measured is the one of the cgroup
// driver in effect, although the one of another driver exists.
func TestContainers_AllPodsCgroup(t *testing.T) {
	root := "/podd-test-" + strconv.Itoa(os.Getpid())
	drivers := []string{"cgroupfs", "systemd"}
	for _, driver := range drivers {
		createCgroup(t, cgroup.AllPodsPaths(root, driver)[0])
	}
	for _, driver := range drivers {
		m := New(Options{
			Node: render.Node{CgroupRoot: root}, CgroupDriver: func() string { return driver },
			State: emptyState{}, OnSample: func() {},
		})
		defer m.Close()
		got, err := m.Containers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paths := cgroup.AllPodsPaths(root, driver)
		if got[paths[0]] == nil || got[paths[1]] != nil {
			t.Errorf("driver %s: got cgroups %q, want %s and not %s", driver, slices.Sorted(maps.Keys(got)), paths[0], paths[1])
		}
	}
}

// An emptyState implements server.Viewer without pods.
type emptyState struct{ server.Viewer }

func (emptyState) View() *server.View { return &server.View{} }

// createCgroup creates a cgroup in all hierarchies, and removes it and its parent when the test ends.
func createCgroup(t *testing.T, name string) {
	t.Helper()
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	created := false
	for _, h := range hierarchies {
		dir := filepath.Join(h.Path, name)
		if os.MkdirAll(dir, 0o755) != nil {
			continue
		}
		created = true
		t.Cleanup(func() {
			for _, d := range []string{dir, filepath.Dir(dir)} {
				if err := os.Remove(d); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if !created {
		t.Fatalf("no cgroup hierarchy of %v is writable", hierarchies)
	}
}

// TestSummary_HugePages checks that huge pages are not available memory, unless HugePageBytes is nil.
func TestSummary_HugePages(t *testing.T) {
	for name, test := range map[string]struct {
		hugePageBytes func() int64
		wantAvailable bool
	}{
		"all memory is huge pages":      {func() int64 { return math.MaxInt64 }, false},
		"huge pages count as available": {nil, true},
	} {
		m := &Meter{hugePageBytes: test.hugePageBytes, sampler: stats.New(stats.Options{Pods: func() []stats.Pod { return nil }})}
		summary, err := m.Summary(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := *summary.Node.Memory.AvailableBytes; got > 0 != test.wantAvailable {
			t.Errorf("%s: got %d bytes of available memory, want more than 0: %t", name, got, test.wantAvailable)
		}
	}
}
