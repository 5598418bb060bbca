package eviction

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

// A managerTest is a Manager with fakes.
type managerTest struct {
	*Manager
	node    *fakeNode
	reports map[string]*state.Report
	usage   map[types.UID]*pressure.Usage
	evicted evictions
	reclaim fakeReclaimer
	images  fakeReclaimer
	young   fakeReclaimer
	logs    fakeReclaimer
	events  []string
	log     strings.Builder

	usageErr         error
	usageHangs       bool // for resources other than memory
	memoryUsageHangs bool
	isStarting       bool
}

// fakeReclaimer makes disk space available when Reclaim is called. If isSlow is set, Reclaim is not
// finished when its time is over.
type fakeReclaimer struct {
	node          *fakeNode
	frees         int64
	hangs, isSlow bool
	calls         int
}

func (r *fakeReclaimer) Reclaim(ctx context.Context) error {
	r.calls++
	if r.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	r.node.mu.Lock()
	r.node.disk += r.frees
	r.node.mu.Unlock()
	if r.isSlow {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *managerTest) PodUsage(ctx context.Context, resource v1.ResourceName) (map[types.UID]*pressure.Usage, error) {
	if resource == v1.ResourceMemory && m.memoryUsageHangs || resource != v1.ResourceMemory && m.usageHangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.usage, m.usageErr
}

// newManagerTest returns a Manager on a node with enough of all resources and without pods.
func newManagerTest(p pressure.Policy) *managerTest {
	m := &managerTest{node: newFakeNode(), reports: map[string]*state.Report{}, usage: map[types.UID]*pressure.Usage{}, evicted: evictions{}}
	m.reclaim.node, m.images.node, m.young.node, m.logs.node = m.node, m.node, m.node, m.node
	m.Manager = NewManager(ManagerOptions{
		Policy: p, Observer: m.node, Memory: m.node, Publish: func(context.Context, Published) {}, Router: m.evicted, Usage: m, Containers: &m.reclaim, Images: &m.images, YoungImages: &m.young, Logs: &m.logs,
		Record: func(all []event.Event) {
			for _, e := range all {
				m.events = append(m.events, e.Type+" "+e.Reason+": "+e.Message)
			}
		},
		Reports: func() []*state.Report { return slices.Collect(maps.Values(m.reports)) }, IsStarting: func() bool { return m.isStarting },
		Log: slog.New(slog.NewTextHandler(&m.log, nil)),
	})
	return m
}

// run adds a running pod. The parameter used is the memory that the pod uses in bytes. Its volume
// uses as much disk space, and so does its container.
func (m *managerTest) run(name string, priority int32, used int64) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "app"}}},
	}
	key := types.NamespacedName{Namespace: "default", Name: name}
	m.reports[name] = &state.Report{
		Key: key, Pod: pod, Version: &manifest.Pod{Key: key, UID: pod.UID, Hash: "v1:a", Object: pod},
		Observed: []runtime.Incarnation{{
			Sandbox: runtime.Sandbox{ID: "s-" + name, Ready: true}, Containers: []runtime.Container{{ID: "c-" + name, Name: "app", State: runtime.Running}},
		}},
	}
	m.usage[pod.UID] = &pressure.Usage{
		MemoryBytes: used, Volumes: pressure.DiskUsage{Bytes: used}, Containers: []pressure.ContainerUsage{{Name: "app", MemoryBytes: used, DiskBytes: used}},
	}
}

// finish records that a pod has ended. The parameter phase is the phase that was decided for it.
func (m *managerTest) finish(name string, end plan.PodEnd, phase plan.Phase) {
	r := *m.reports[name]
	r.Finished, r.Decision.Phase = &end, phase
	m.reports[name] = &r
}

// checkAgain calls check, and checks the evicted pods since the last call and the time until the
// next check.
func (m *managerTest) checkAgain(t *testing.T, step string, wait time.Duration, evicted ...string) {
	t.Helper()
	clear(m.evicted)
	got := m.check(t.Context())
	if got != wait {
		t.Errorf("%s: time until the next check: got %s, want %s", step, got, wait)
	}
	if names := slices.Sorted(maps.Keys(m.evicted)); !slices.Equal(names, evicted) {
		t.Errorf("%s: evicted pods: got %v, want %v", step, names, evicted)
	}
}

// TestManager_Evicts checks that pods are evicted one after the other while memory is short. The
// next pod is evicted only after the previous one has stopped.
func TestManager_Evicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("large", 0, 300)
		m.run("small", 0, 100)
		m.run("critical", 2_000_000_000, 500)
		m.checkAgain(t, "enough memory", observeInterval)
		m.node.memory = 50
		m.checkAgain(t, "short of memory", evictionCheckInterval, "large")
		want := plan.Eviction{
			UID: "uid-large", Hash: "v1:a", Grace: time.Second, Restarts: true, Transition: time.Minute, Shortage: plan.Shortage{Signal: "memory.available", Available: "50", Threshold: "100"},
			Message:          "The node was low on resource: memory. Threshold quantity: 100, available: 50. Container app was using 300, request is 0, has larger consumption of memory. ",
			EventAnnotations: map[string]string{"starved_resource": "memory", "offending_containers": "app", "offending_containers_usage": "300"},
		}
		if diff := cmp.Diff(want, m.evicted["large"]); diff != "" {
			t.Errorf("eviction (-want +got):\n%s", diff)
		}
		if want := []string{"Warning EvictionThresholdMet: Attempting to reclaim memory"}; !slices.Equal(m.events, want) {
			t.Errorf("events: got %q, want %q", m.events, want)
		}
		time.Sleep(time.Second)
		m.checkAgain(t, "the worker has not reported yet", evictionCheckInterval)
		end := plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now(), Grace: time.Second}
		m.finish("large", end, plan.PhaseWindDown)
		m.checkAgain(t, "being stopped", evictionCheckInterval)
		time.Sleep(20 * time.Second)
		m.checkAgain(t, "still being stopped", evictionCheckInterval)
		m.finish("large", end, plan.PhaseCleanedUp)
		m.checkAgain(t, "stopped", evictionCheckInterval, "small")
		time.Sleep(31 * time.Second)
		m.checkAgain(t, "not stopped in time", evictionCheckInterval, "small")
		m.finish("small", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseCleanedUp)
		m.checkAgain(t, "only a critical pod is left", observeInterval)
		time.Sleep(observeInterval)
		m.checkAgain(t, "only a critical pod is left", observeInterval)
		if n := strings.Count(m.log.String(), "no pod can be evicted"); n != 1 {
			t.Errorf("got %d log records that no pod can be evicted, want 1:\n%s", n, m.log.String())
		}
		m.node.memory = 500
		m.checkAgain(t, "enough memory again", observeInterval)
	})
}

// TestManager_DiskInterval checks that the node is observed more often if pods could reach the threshold
// of a disk before the next observation.
func TestManager_DiskInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hardPolicy
		p.Thresholds = append(slices.Clone(p.Thresholds), pressure.Threshold{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 200}, GracePeriod: 1500 * time.Millisecond})
		m := newManagerTest(p)
		m.node.disk = 106
		m.checkAgain(t, "6 GiB left", observeInterval)
		m.node.disk = 102
		m.checkAgain(t, "2 GiB left", 4*time.Second)
		m.node.memory = 150
		m.checkAgain(t, "grace period of memory", 1500*time.Millisecond)
		m.node.disk = 100
		m.checkAgain(t, "nothing left", minObserveInterval)
		m.node.disk = 99
		m.checkAgain(t, "short of disk, but no pod", 1500*time.Millisecond)
		m.node.memory = 1000
		m.checkAgain(t, "only short of disk", observeInterval)
		m.node.memory, m.node.disk = 50, 102
		m.checkAgain(t, "short of memory, but no pod", 1500*time.Millisecond)
	})
}

// TestManager_Soft checks the grace periods of a soft threshold.
func TestManager_Soft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pressure.Policy{MaxPodGrace: 20 * time.Second, TransitionPeriod: time.Minute, Thresholds: []pressure.Threshold{
			{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 200}, GracePeriod: 13 * time.Second},
		}}
		m := newManagerTest(p)
		m.run("web", 0, 300)
		m.node.memory = 150
		m.checkAgain(t, "grace period", observeInterval)
		time.Sleep(observeInterval)
		m.checkAgain(t, "end of the grace period is near", 3*time.Second)
		time.Sleep(3 * time.Second)
		m.checkAgain(t, "grace period has passed", evictionCheckInterval, "web")
		if got := m.evicted["web"].Grace; got != 20*time.Second {
			t.Errorf("grace period of the pod: got %s, want 20s", got)
		}
		time.Sleep(49 * time.Second)
		m.checkAgain(t, "the pod uses its grace period", evictionCheckInterval)
	})
}

// TestManager_SoftGrace checks the grace period of a pod that is evicted because of a soft
// threshold, and the time for which other evictions wait for this pod. Neither is longer than the
// grace period in the spec of the pod.
func TestManager_SoftGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(pressure.Policy{MaxPodGrace: 10 * time.Minute, TransitionPeriod: time.Minute, Thresholds: []pressure.Threshold{
			{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 200}, GracePeriod: time.Second},
		}})
		m.run("large", 0, 300)
		m.reports["large"].Pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
		m.run("other", 0, 200)
		m.node.memory = 150
		m.checkAgain(t, "grace period of the threshold", time.Second)
		time.Sleep(time.Second)
		m.checkAgain(t, "short of memory", evictionCheckInterval, "large")
		if got := m.evicted["large"].Grace; got != 5*time.Second {
			t.Errorf("grace period of the pod: got %s, want 5s", got)
		}
		m.finish("large", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now(), Grace: 5 * time.Second}, plan.PhaseWindDown)
		time.Sleep(34 * time.Second)
		m.checkAgain(t, "the pod may still stop", evictionCheckInterval)
		time.Sleep(time.Second)
		m.checkAgain(t, "the pod did not stop in time", evictionCheckInterval, "other")
		if got := m.evicted["other"].Grace; got != 30*time.Second {
			t.Errorf("grace period of a pod with the default: got %s, want 30s", got)
		}
	})
}

// TestManager_HardAfterSoft checks that a hard threshold does not wait for the grace period of a pod
// that was evicted because of a soft threshold.
func TestManager_HardAfterSoft(t *testing.T) {
	p := pressure.Policy{MaxPodGrace: 10 * time.Minute, TransitionPeriod: time.Minute, Thresholds: []pressure.Threshold{
		{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 100}},
		{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 200}, GracePeriod: time.Second},
	}}
	for name, isDeleted := range map[string]bool{"other": false, "slow": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManagerTest(p)
				m.run("slow", 0, 300)
				m.reports["slow"].Pod.Spec.TerminationGracePeriodSeconds = new(int64(1000))
				m.run("other", 0, 200)
				m.node.memory = 150
				m.checkAgain(t, "grace period of the threshold", time.Second)
				time.Sleep(time.Second)
				if isDeleted {
					m.reports["slow"].Version = nil
				}
				m.checkAgain(t, "soft threshold", evictionCheckInterval, "slow")
				if !isDeleted {
					m.finish("slow", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now(), Grace: 10 * time.Minute}, plan.PhaseWindDown)
				}
				time.Sleep(30 * time.Second)
				m.node.memory = 50
				m.checkAgain(t, "hard threshold, the pod may still stop", evictionCheckInterval)
				time.Sleep(time.Second)
				m.node.memory = 150
				m.checkAgain(t, "the pod uses its grace period", evictionCheckInterval)
				m.node.memory = 50
				m.checkAgain(t, "hard threshold", evictionCheckInterval, name)
				if got := m.evicted[name].Grace; got != time.Second {
					t.Errorf("grace period of the pod: got %s, want 1s", got)
				}
			})
		})
	}
}

// TestManager_Reclaims checks that dead containers, unused images, young images and the logs of
// finished pods are removed in this order before pods are evicted, and only as far as necessary. A pod
// is evicted even if the runtime does not respond.
func TestManager_Reclaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("web", 0, 300)
		m.node.disk, m.reclaim.frees = 50, 50
		m.checkAgain(t, "dead containers are sufficient", minObserveInterval)
		m.node.disk, m.reclaim.frees, m.images.frees = 50, 10, 40
		m.checkAgain(t, "dead containers and images are sufficient", minObserveInterval)
		m.node.disk, m.images.frees, m.young.frees = 50, 10, 30
		m.checkAgain(t, "with young images it is sufficient", minObserveInterval)
		m.node.disk, m.young.frees, m.logs.frees = 50, 10, 20
		m.checkAgain(t, "with logs it is sufficient", minObserveInterval)
		m.node.disk, m.logs.frees = 50, 19
		m.checkAgain(t, "nothing is sufficient", evictionCheckInterval, "web")
		if got, want := []int{m.reclaim.calls, m.images.calls, m.young.calls, m.logs.calls}, []int{5, 4, 3, 2}; !slices.Equal(got, want) {
			t.Errorf("reclaims of containers, images, young images and logs: got %v, want %v", got, want)
		}
		m = newManagerTest(hardPolicy)
		m.run("web", 0, 300)
		m.node.disk, m.reclaim.hangs, m.images.hangs, m.young.hangs = 50, true, true, true
		began := time.Now()
		m.checkAgain(t, "the runtime does not respond", evictionCheckInterval, "web")
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("time until the eviction: got %s, want at most 15s", took)
		}
		if m.logs.calls != 1 {
			t.Errorf("runtime that does not respond: got %d reclaims of logs, want 1", m.logs.calls)
		}
		m = newManagerTest(hardPolicy)
		m.run("web", 0, 300)
		m.node.memory = 50
		m.checkAgain(t, "memory", evictionCheckInterval, "web")
		if m.reclaim.calls+m.images.calls+m.young.calls+m.logs.calls != 0 {
			t.Error("shortage of memory: got a removal of containers, images or logs, want none")
		}
	})
}

// TestManager_SlowReclaim checks that no pod is evicted while a removal of images that takes long makes
// space, and that a pod is evicted as soon as it makes none.
func TestManager_SlowReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("web", 0, 300)
		m.node.disk, m.images.frees, m.images.isSlow = 50, 20, true
		m.checkAgain(t, "some images are removed", evictionCheckInterval)
		m.checkAgain(t, "more images are removed", evictionCheckInterval)
		m.checkAgain(t, "enough images are removed", observeInterval)
		if m.images.calls != 3 || m.young.calls != 0 {
			t.Errorf("got %d reclaims of images and %d of young images, want 3 and 0", m.images.calls, m.young.calls)
		}
		m.node.disk, m.images.frees = 50, 4
		m.checkAgain(t, "too little is removed", evictionCheckInterval, "web")
	})
}

// TestManager_SlowMinReclaim checks that a slow removal of images continues only while it makes a tenth of
// the missing amount available, also if only the minimum reclaim is missing.
func TestManager_SlowMinReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hardPolicy
		p.Thresholds = slices.Clone(p.Thresholds)
		for i := range p.Thresholds {
			p.Thresholds[i].MinReclaim = pressure.Limit{Share: .2}
		}
		m := newManagerTest(p)
		m.run("web", 0, 300)
		m.node.disk, m.images.frees, m.images.isSlow = 50, 100, true
		m.checkAgain(t, "the threshold is reached", evictionCheckInterval)
		m.images.frees = 1
		m.checkAgain(t, "too little of the minimum reclaim", evictionCheckInterval, "web")
	})
}

// TestManager_AwaitsCleanup checks that no pod is evicted while a pod that has just finished is being
// cleaned up, because its volumes may be large enough. Pods are evicted even if a pod is always
// finishing or is never cleaned up, and a shortage of memory does not wait.
func TestManager_AwaitsCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *managerTest
		reset := func() {
			m = newManagerTest(hardPolicy)
			m.run("web", 0, 300)
			m.run("hog", 0, 900)
			m.node.disk = 50
		}
		finish := func(phase plan.Phase) {
			r := *m.reports["hog"]
			r.Observed, r.Decision.Phase, r.DecisionSince = nil, phase, time.Now()
			m.reports["hog"] = &r
		}
		reset()
		finish(plan.PhaseWindDown)
		m.checkAgain(t, "the pod is being cleaned up", evictionCheckInterval)
		if m.reclaim.calls > 0 {
			t.Error("the pod is being cleaned up: got a reclaim, want none")
		}
		finish(plan.PhaseCleanedUp)
		m.node.disk = 900
		m.checkAgain(t, "enough space after the cleanup", observeInterval)

		m.node.disk = 50
		for range 5 {
			finish(plan.PhaseWindDown)
			m.checkAgain(t, "pods are always finishing", evictionCheckInterval)
			time.Sleep(time.Second)
		}
		finish(plan.PhaseWindDown)
		m.checkAgain(t, "no more waits during this shortage", evictionCheckInterval, "web")

		reset()
		finish(plan.PhaseWindDown)
		time.Sleep(maxCleanup)
		m.checkAgain(t, "the cleanup hangs", evictionCheckInterval, "web")

		reset()
		m.node.disk, m.node.memory = 900, 50
		finish(plan.PhaseWindDown)
		m.checkAgain(t, "memory", evictionCheckInterval, "web")
	})
}

// TestManager_MemoryFirst checks that the node is observed while disk space is reclaimed and while
// the usage of the disk is measured. If the node becomes short of memory, the reclaim or the
// measurement must end.
func TestManager_MemoryFirst(t *testing.T) {
	for name, hang := range map[string]func(*managerTest){
		"reclaim":     func(m *managerTest) { m.reclaim.hangs = true },
		"measurement": func(m *managerTest) { m.usageHangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManagerTest(hardPolicy)
				hang(m)
				var published []pressure.Conditions
				m.o.Publish = func(_ context.Context, p Published) { published = append(published, p.Conditions) }
				m.run("web", 0, 300)
				m.node.disk = 50
				began := time.Now()
				time.AfterFunc(2500*time.Millisecond, func() { m.node.setMemory(50) })
				m.checkAgain(t, "short of memory during a "+name, 0)
				if took := time.Since(began); took != 3*time.Second {
					t.Errorf("duration of the %s: got %s, want 3s", name, took)
				}
				m.checkAgain(t, "short of memory", evictionCheckInterval, "web")
				if want := []pressure.Conditions{{Disk: true}, {Disk: true, Memory: true}}; !slices.Equal(published, want) {
					t.Errorf("published conditions: got %v, want %v", published, want)
				}
				if log := m.log.String(); strings.Contains(log, "failed") {
					t.Errorf("log: got %s, want no failure", log)
				}
			})
		})
	}
}

// TestManager_ReclaimInterval checks that a notification of the kernel does not repeat a reclaim
// that freed too little, if no pod can be evicted. When another threshold is met, the Manager
// reclaims and evicts at once.
func TestManager_ReclaimInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.node.disk = 50
		m.checkAgain(t, "no pod", observeInterval)
		time.Sleep(time.Second)
		m.checkAgain(t, "notification", 9*time.Second)
		m.run("critical", 2_000_000_000, 300)
		m.checkAgain(t, "a pod that cannot be evicted", 9*time.Second)
		m.run("web", 0, 300)
		m.node.memory = 50
		m.checkAgain(t, "short of memory, too", evictionCheckInterval, "web")
		m.finish("web", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseCleanedUp)
		m.checkAgain(t, "only short of memory", 9*time.Second)
		time.Sleep(4 * time.Second)
		m.checkAgain(t, "notification", 5*time.Second)
		time.Sleep(5 * time.Second)
		m.checkAgain(t, "end of the interval of the disk", time.Second)
		time.Sleep(time.Second)
		m.checkAgain(t, "end of the interval of memory", 9*time.Second)
		m.node.memory = 1000
		m.checkAgain(t, "only short of disk", 9*time.Second)
		if m.reclaim.calls != 2 || m.images.calls != 2 || len(m.events) != 5 {
			t.Errorf("got %d reclaims of containers, %d of images and the events %q; want 2 reclaims of containers, 2 of images and 5 events", m.reclaim.calls, m.images.calls, m.events)
		}
		m.run("new", 0, 300)
		m.checkAgain(t, "a new pod", evictionCheckInterval, "new")
	})
}

// TestManager_Unmeasured checks that a pod is evicted although the usage of pods is unknown.
func TestManager_Unmeasured(t *testing.T) {
	m := newManagerTest(hardPolicy)
	m.run("important", 1000, 900)
	m.run("other", 0, 1)
	m.usage, m.usageErr = nil, errors.New("no cgroups")
	m.node.memory = 50
	m.checkAgain(t, "unknown usage", evictionCheckInterval, "other")
}

// TestManager_UnmeasuredMemory checks that a pod is evicted because of memory even if the measurement of
// the pods' memory hangs.
func TestManager_UnmeasuredMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.memoryUsageHangs = true
		m.run("web", 0, 300)
		m.node.memory = 50
		began := time.Now()
		m.checkAgain(t, "short of memory", evictionCheckInterval, "web")
		if took := time.Since(began); took != usageTimeout {
			t.Errorf("time until the eviction: got %s, want %s", took, usageTimeout)
		}
	})
}

// TestManager_SeveralShortages checks that a pod is evicted if a reclaim of disk space ends only one of
// two shortages, and that it is the pod that uses most of the resource that is still short.
func TestManager_SeveralShortages(t *testing.T) {
	p := hardPolicy
	p.Thresholds = append(slices.Clone(p.Thresholds), pressure.Threshold{Signal: pressure.NodefsInodesFree, Limit: pressure.Limit{Amount: 100}})
	m := newManagerTest(p)
	m.run("large", 0, 300)
	m.run("files", 0, 100)
	m.usage["uid-files"].Volumes.Inodes = 800
	m.node.disk, m.node.inodes, m.reclaim.frees = 50, 50, 900
	m.checkAgain(t, "short of inodes after the reclaim", evictionCheckInterval)
	m.checkAgain(t, "short of inodes", evictionCheckInterval, "files")
	if got := m.evicted["files"].Shortage.Signal; got != "nodefs.inodesFree" {
		t.Errorf("signal: got %s, want nodefs.inodesFree", got)
	}
}

// TestManager_OtherThreshold checks that images are removed although memory, which comes first, is short
// and no pod can be evicted.
func TestManager_OtherThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("critical", 2_000_000_000, 300)
		m.node.memory, m.node.disk, m.images.frees = 50, 50, 900
		m.checkAgain(t, "memory", 0)
		m.checkAgain(t, "disk", observeInterval)
		if m.images.calls != 1 {
			t.Errorf("got %d reclaims of images, want 1", m.images.calls)
		}
	})
}

// TestHasProgress checks when a removal of images that needs more time continues.
func TestHasProgress(t *testing.T) {
	for name, test := range map[string]struct {
		before, after int64
		want          bool
	}{
		"a tenth":          {50, 60, true},
		"less than that":   {50, 59, false},
		"nothing":          {50, 50, false},
		"less than before": {50, 40, false},
		"target reached":   {150, 150, false},
	} {
		if got := hasProgress(150, test.before, test.after); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestManager_Deleted checks that a pod that is being deleted is evicted, and that pods that release
// nothing are not evicted.
func TestManager_Deleted(t *testing.T) {
	m := newManagerTest(hardPolicy)
	m.run("deleted", 0, 900)
	m.reports["deleted"].Version = nil
	m.run("waiting", 0, 1000)
	m.reports["waiting"].Observed = nil
	m.run("foreign", 0, 1000)
	m.reports["foreign"].Observed[0].Foreign = true
	m.node.memory = 50
	m.checkAgain(t, "deleted pod", evictionCheckInterval, "deleted")
	if e := m.evicted["deleted"]; e.UID != "uid-deleted" || e.Grace != time.Second || e.Shortage.Signal != "memory.available" || e.Message == "" || e.EventAnnotations == nil {
		t.Errorf("eviction of the deleted pod: got %+v, want one of uid-deleted in 1s because of memory.available, with a message and annotations", e)
	}
}

// TestManager_Undeletable checks that a pod that is being deleted and does not stop is not chosen
// again, so that it does not prevent the eviction of other pods.
func TestManager_Undeletable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("deleted", 0, 900)
		m.reports["deleted"].Version = nil
		m.run("web", 0, 500)
		m.run("small", 0, 100)
		m.node.memory = 50
		m.checkAgain(t, "deleted pod", evictionCheckInterval, "deleted")
		time.Sleep(30 * time.Second)
		m.checkAgain(t, "the deleted pod may still stop", evictionCheckInterval)
		time.Sleep(time.Second)
		m.checkAgain(t, "the deleted pod did not stop in time", evictionCheckInterval, "web")
		m.finish("web", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseCleanedUp)
		m.checkAgain(t, "web has stopped", evictionCheckInterval, "small")
		m.finish("small", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseCleanedUp)
		m.checkAgain(t, "only the deleted pod is left", observeInterval)
		time.Sleep(time.Hour)
		m.checkAgain(t, "only the deleted pod is left", observeInterval)
		if n := strings.Count(m.log.String(), "did not stop in time"); n != 1 {
			t.Errorf("got %d log records that a pod did not stop in time, want 1:\n%s", n, m.log.String())
		}
		delete(m.reports, "deleted")
		m.checkAgain(t, "the deleted pod is gone", observeInterval)
		m.run("deleted", 0, 900)
		m.checkAgain(t, "another pod with the same UID", evictionCheckInterval, "deleted")
	})
}

// TestManager_PendingResize checks that a pod is ranked by the requests with which it runs, and not by
// requests that the node has not admitted.
func TestManager_PendingResize(t *testing.T) {
	m := newManagerTest(hardPolicy)
	m.run("web", 0, 100)
	m.run("grows", 0, 900)
	r := *m.reports["grows"]
	withRequest := func(memory string) *v1.Pod {
		pod := r.Pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
		return pod
	}
	desired, allocated := *r.Version, *r.Version
	desired.Object, allocated.Object = withRequest("1Ti"), withRequest("10")
	r.Pod, r.Version, r.ReservedVersions, r.IsResizePending = desired.Object, &desired, []*manifest.Pod{&allocated}, true
	m.reports["grows"] = &r
	m.node.memory = 50
	m.checkAgain(t, "short of memory", evictionCheckInterval, "grows")
	if got, want := m.evicted["grows"].Message, "Container app was using 900, request is 10, "; !strings.Contains(got, want) {
		t.Errorf("message: got %q, want %q in it", got, want)
	}
}

// TestManager_NotEvicted checks that a pod whose eviction had no effect in time is evicted again, but
// after all other pods.
func TestManager_NotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		m.run("large", 0, 900)
		m.run("small", 0, 100)
		m.node.memory = 50
		m.checkAgain(t, "largest pod", evictionCheckInterval, "large")
		time.Sleep(31 * time.Second)
		m.checkAgain(t, "the largest pod did not stop in time", evictionCheckInterval, "small")
		m.finish("small", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseCleanedUp)
		m.checkAgain(t, "no other pod is left", evictionCheckInterval, "large")
	})
}

// TestManager_Restarted checks that a Manager waits for a pod that an earlier podd process has
// evicted.
func TestManager_Restarted(t *testing.T) {
	m := newManagerTest(hardPolicy)
	m.run("evicted", 0, 900)
	m.run("web", 0, 900)
	m.finish("evicted", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now()}, plan.PhaseWindDown)
	m.node.memory = 50
	m.checkAgain(t, "being stopped", evictionCheckInterval)
	m.finish("evicted", plan.PodEnd{Reason: plan.ReasonEvicted, At: time.Now().Add(-time.Hour)}, plan.PhaseWindDown)
	m.checkAgain(t, "does not stop", evictionCheckInterval, "web")
}

// TestManager_Start checks that no pod is evicted at the start of podd until all pods are known, because
// an unknown pod may be the first one to evict, or one that an earlier podd process has evicted. If a
// pod stays unknown, others are evicted after observeInterval.
func TestManager_Start(t *testing.T) {
	for _, isHung := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newManagerTest(hardPolicy)
			m.isStarting = true
			m.node.memory = 50
			m.checkAgain(t, "no pod is known", startCheckInterval)
			m.run("important", 10, 900)
			m.checkAgain(t, "one pod is known", startCheckInterval)
			time.Sleep(observeInterval - 1)
			m.checkAgain(t, "still starting", startCheckInterval)
			if m.events != nil {
				t.Errorf("events while podd starts: got %q, want none", m.events)
			}
			if isHung {
				time.Sleep(time.Nanosecond)
				m.checkAgain(t, "a pod stays unknown", evictionCheckInterval, "important")
				return
			}
			m.run("other", 0, 900)
			m.isStarting = false
			m.checkAgain(t, "all pods are known", evictionCheckInterval, "other")
		})
	}
}

// TestManager_OnEvict checks that the age of the observation that OnEvict gets includes the time
// for measuring pods. OnEvict must not be called if no pod is evicted.
func TestManager_OnEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManagerTest(hardPolicy)
		var got []string
		m.o.OnEvict = func(signal pressure.Signal, age time.Duration) { got = append(got, string(signal)+" "+age.String()) }
		m.node.disk = 50
		m.checkAgain(t, "no pods", observeInterval)
		if len(got) > 0 {
			t.Errorf("calls of OnEvict without pods: got %q, want none", got)
		}
		m.run("web", 0, 300)
		m.usageHangs = true
		m.checkAgain(t, "short of disk space", evictionCheckInterval, "web")
		if want := []string{"nodefs.available " + usageTimeout.String()}; !slices.Equal(got, want) {
			t.Errorf("calls of OnEvict: got %q, want %q", got, want)
		}
	})
}
