package meter

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/reconcile/eviction/pressure"
	"podd/runtime"
	"podd/runtime/stats"
	"podd/server"
)

// TestPodUsage_UnresponsiveRuntime checks that the memory and the processes of pods are measured while
// the runtime does not respond, and that each call measures again. The container has no cgroup, like a
// container that was killed during this time.
func TestPodUsage_UnresponsiveRuntime(t *testing.T) {
	for _, resource := range []v1.ResourceName{v1.ResourceMemory, pressure.ResourcePIDs} {
		synctest.Test(t, func(t *testing.T) {
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
				t.Errorf("%s: got usage %+v, error %v, context error %v; want the memory of the pod's cgroup, no errors", resource, usage, err, ctx.Err())
			}
			pods = append(pods, stats.Pod{UID: "u2", Cgroups: []string{"/"}})
			if usage, err = m.PodUsage(ctx, resource); err != nil || usage["u2"] == nil {
				t.Errorf("second call for %s: got usage %+v, error %v; want no error, and also the usage of the new pod \"u2\"", resource, usage, err)
			}
		})
	}
}

// newCgroup returns a cgroup with a working set in bytes and a number of processes.
func newCgroup(workingSet, processes uint64) *stats.Cgroup {
	return &stats.Cgroup{Info: &model.ContainerInfo{Stats: []*model.ContainerStats{{
		Memory: &model.MemoryStats{Usage: workingSet + 1000, WorkingSet: workingSet}, Processes: &model.ProcessStats{ProcessCount: processes},
	}}}}
}

// TestProcessUsage checks that the memory of a pod is that of its cgroup or, if it has none, the sum of
// its containers. The number of processes is always the sum of the containers. A pod with neither a
// cgroup nor containers is omitted.
func TestProcessUsage(t *testing.T) {
	withoutProcesses := newCgroup(30, 0)
	withoutProcesses.Stats().Processes = nil
	newSample := func(name string, c *stats.Cgroup) stats.ContainerSample {
		return stats.ContainerSample{Container: stats.Container{Name: name}, Cgroup: c}
	}
	got := processUsage(&stats.Sample{Pods: []stats.PodSample{
		{Pod: stats.Pod{UID: "with-cgroup"}, Cgroup: newCgroup(100, 99), Containers: []stats.ContainerSample{newSample("app", newCgroup(50, 3)), newSample("killed", nil), newSample("side", newCgroup(20, 2))}},
		{Pod: stats.Pod{UID: "without-cgroup"}, Containers: []stats.ContainerSample{newSample("app", newCgroup(50, 3)), newSample("side", withoutProcesses)}},
		{Pod: stats.Pod{UID: "sandbox"}, Cgroup: newCgroup(10, 1)},
		{Pod: stats.Pod{UID: "unknown"}},
	}})
	want := map[types.UID]*pressure.Usage{
		"with-cgroup":    {MemoryBytes: 100, Processes: 5, Containers: []pressure.ContainerUsage{{Name: "app", MemoryBytes: 50}, {Name: "side", MemoryBytes: 20}}},
		"without-cgroup": {MemoryBytes: 80, Processes: 3, Containers: []pressure.ContainerUsage{{Name: "app", MemoryBytes: 50}, {Name: "side", MemoryBytes: 30}}},
		"sandbox":        {MemoryBytes: 10},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// newFilesystem returns the usage of a file system.
func newFilesystem(bytes, inodes uint64) stats.Filesystem {
	return stats.Filesystem{UsedBytes: &bytes, InodesUsed: &inodes}
}

// newRunningPod returns a pod with the running container "app". The ID of this container is the UID of
// the pod with the suffix "-app".
func newRunningPod(name string, uid types.UID) *server.PodView {
	p := poddtest.NewPod(name+".yaml", 1, name, "app")
	p.Pod.UID, p.SandboxID = uid, string(uid)
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://" + string(uid) + "-app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}
	return p
}

// TestDiskUsage checks that the disk usage of a pod includes the ephemeral volumes, the files that podd
// manages, and the logs and layers of all containers, also of exited ones. The claim with 9000 bytes
// must not be included.
func TestDiskUsage(t *testing.T) {
	logs, managed, huge := newFilesystem(20, 2), newFilesystem(3, 1), newFilesystem(math.MaxUint64, math.MaxUint64)
	d := &stats.Disk{
		Pods: map[types.UID]stats.PodDisk{
			"all": {
				Volumes: []stats.Volume{
					{Name: "empty", Ephemeral: true, Filesystem: newFilesystem(100, 10)},
					{Name: "config", Ephemeral: true, Filesystem: newFilesystem(50, 5)},
					{Name: "claim", Filesystem: newFilesystem(9000, 900)},
					{Name: "unknown", Ephemeral: true},
					{Name: "many-files-in-a-claim", Filesystem: stats.Filesystem{IsLowerBound: true}},
				},
				Logs:         map[string]stats.Filesystem{"app": logs, "side": newFilesystem(40, 4)},
				Layers:       map[string]stats.Filesystem{"all-app": newFilesystem(7, 4), "crashed": newFilesystem(200, 20), "earlier": newFilesystem(1000, 1)},
				ManagedFiles: &managed,
			},
			"huge":    {ManagedFiles: &huge},
			"many":    {Volumes: []stats.Volume{{Name: "empty", Ephemeral: true, Filesystem: stats.Filesystem{IsLowerBound: true}}}},
			"stopped": {Logs: map[string]stats.Filesystem{"app": logs}, Layers: map[string]stats.Filesystem{"stopped-app": newFilesystem(300, 30)}},
			"removed": {ManagedFiles: &managed},
		},
		Unreached: map[types.UID]bool{"unreached": true},
	}
	stopped := newRunningPod("stopped", "stopped")
	stopped.Pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	all := newRunningPod("all", "all")
	all.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{ContainerID: "containerd://crashed"}
	got := diskUsage(d, poddtest.NewView(all, newRunningPod("huge", "huge"), newRunningPod("many", "many"), stopped, newRunningPod("unreached", "unreached"), newRunningPod("new", "new")))
	unused := []pressure.ContainerUsage{{Name: "app"}}
	want := map[types.UID]*pressure.Usage{
		"all": {
			Volumes: pressure.DiskUsage{Bytes: 153, Inodes: 16}, Logs: pressure.DiskUsage{Bytes: 60, Inodes: 6}, Layers: pressure.DiskUsage{Bytes: 1207, Inodes: 25},
			Containers: []pressure.ContainerUsage{{Name: "app", DiskBytes: 227}},
		},
		"huge": {Volumes: pressure.DiskUsage{Bytes: 1 << 62, Inodes: 1 << 62}, Containers: unused},
		"many": {Volumes: pressure.DiskUsage{IsLowerBound: true}, Containers: unused},
		"stopped": {
			Logs: pressure.DiskUsage{Bytes: 20, Inodes: 2}, Layers: pressure.DiskUsage{Bytes: 300, Inodes: 30}, Containers: []pressure.ContainerUsage{{Name: "app", DiskBytes: 320}},
		},
		"new": {Containers: unused},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
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
				t.Errorf("call %d: got %+v, error %v; want 100 bytes of layers", i, usage, err)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// TestPodUsage_StartedAfterMeasurement checks that the result includes a pod that was started after the
// last measurement of the disk, and omits a pod that this measurement did not reach.
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
				t.Errorf("got the usage of pods %v, error %v; want %v", got, err, want)
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
