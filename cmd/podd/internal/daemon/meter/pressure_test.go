package meter

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/reconcile/eviction/pressure"
	"podd/runtime"
	"podd/runtime/stats"
	"podd/server"
)

// TestPodUsage_UnresponsiveRuntime checks that the memory and the processes of pods are measured
// without the runtime, and that no measurement is reused. The container has no cgroup, like
// a container that was killed while the runtime does not respond.
func TestPodUsage_UnresponsiveRuntime(t *testing.T) {
	for _, resource := range []v1.ResourceName{v1.ResourceMemory, pressure.ResourcePIDs} {
		pods := []stats.Pod{{UID: "u1", Cgroups: []string{"/"}, Containers: []stats.Container{{ID: "c1", Name: "app"}}}}
		m := &Meter{sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod { return pods },
			RuntimeUsage: func(ctx context.Context) (map[string]runtime.Usage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		usage, err := m.PodUsage(ctx, resource)
		if err != nil || ctx.Err() != nil || usage["u1"] == nil || usage["u1"].MemoryBytes == 0 {
			t.Errorf("%s: got %+v, error %v, context %v; want the memory of the pod's cgroup before the timeout", resource, usage, err, ctx.Err())
		}
		pods = append(pods, stats.Pod{UID: "u2", Cgroups: []string{"/"}})
		if usage, err = m.PodUsage(ctx, resource); err != nil || usage["u2"] == nil {
			t.Errorf("%s: got %+v, error %v, want the new pod", resource, usage, err)
		}
	}
}

// newFilesystem returns the usage of a file system.
func newFilesystem(bytes, inodes uint64) stats.Filesystem {
	return stats.Filesystem{UsedBytes: &bytes, InodesUsed: &inodes}
}

// newRunningPod returns a pod with a container "app". Its CRI ID is the UID of the pod with the
// suffix "-app".
func newRunningPod(name string, uid types.UID) *server.PodView {
	p := poddtest.NewPod(name+".yaml", 1, name, "app")
	p.Pod.UID, p.SandboxID = uid, string(uid)
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://" + string(uid) + "-app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}
	return p
}

// TestPodUsage_SlowDisk checks that the previous usage is returned if the disk is not measured
// within the timeout.
func TestPodUsage_SlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view, isSlow := poddtest.NewView(newRunningPod("web", "u1")), false
		m := &Meter{state: server.NewLatestView(view), sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod { return sampledPods(view, "") },
			MeasureDisk: func(context.Context, []stats.Pod) (*stats.Disk, error) {
				if isSlow {
					time.Sleep(time.Hour) // does not end with ctx, like a system call on a disk that does not respond
				}
				isSlow = true // after the first measurement
				return &stats.Disk{At: time.Now(), Pods: map[types.UID]stats.PodDisk{"u1": {
					At: time.Now(), Layers: map[string]stats.Filesystem{"u1-app": newFilesystem(100, 1)},
				}}}, nil
			},
		})}
		defer m.Close()
		for i := range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			usage, err := m.PodUsage(ctx, v1.ResourceEphemeralStorage)
			cancel()
			if err != nil || usage["u1"] == nil || usage["u1"].Layers.Bytes != 100 || usage["u1"].Containers[0].DiskBytes != 100 {
				t.Errorf("call %d: got %+v, error %v, want 100 bytes", i, usage, err)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// TestPodUsage_StartedAfterMeasurement checks that a pod that was started after the last measurement
// of the disk uses nothing, and that a pod that the measurement did not reach is omitted.
func TestPodUsage_StartedAfterMeasurement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		measured, unreached, started := newRunningPod("measured", "u1"), newRunningPod("unreached", "u2"), newRunningPod("started", "u3")
		views := server.NewLatestView(poddtest.NewView(measured, unreached))
		m := &Meter{state: views, sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod { return sampledPods(views.View(), "") },
			MeasureDisk: func(context.Context, []stats.Pod) (*stats.Disk, error) {
				time.Sleep(10 * time.Second)
				return &stats.Disk{At: time.Now(), Pods: map[types.UID]stats.PodDisk{"u1": {At: time.Now(), Layers: map[string]stats.Filesystem{}}}}, nil
			},
		})}
		defer m.Close()
		check := func(want ...types.UID) {
			t.Helper()
			usage, err := m.PodUsage(t.Context(), v1.ResourceEphemeralStorage)
			if got := slices.Sorted(maps.Keys(usage)); err != nil || !slices.Equal(got, want) {
				t.Errorf("got the usage of pods %v, error %v, want %v", got, err, want)
			}
		}
		check("u1")
		next := poddtest.NewView(measured, unreached, started)
		next.Revision++
		views.Publish(next)
		check("u1", "u3")
		time.Sleep(time.Minute) // after the next measurement, which does not reach the new pod either
		check("u1")
	})
}
