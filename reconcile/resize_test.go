package reconcile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime/runtimetest"
)

// sizedPod returns a pod with one container that has this memory limit.
func sizedPod(t *testing.T, name, memory, more string) *manifest.Pod {
	t.Helper()
	return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", resources: {limits: {memory: %s, cpu: 1}, requests: {cpu: 100m}}%s}]`, memory, more))
}

// memoryOf returns the memory limit of a container in the runtime.
func (m *machine) memoryOf(name string) int64 {
	m.t.Helper()
	c := m.report(name).Observed[0].Containers
	r, err := m.Client.ContainerResources(m.t.Context(), c[len(c)-1].ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return r.MemoryLimitBytes
}

// wantMemory fails the test unless the first container of the pod runs with this memory limit, in
// the runtime and in the status.
func (m *machine) wantMemory(name, memory string, bytes int64) {
	m.t.Helper()
	m.wantState(name+" 0 ready", name+"/app 0 running")
	if got := m.memoryOf(name); got != bytes {
		m.t.Fatalf("memory limit of pod %s in the runtime: got %d bytes, want %d\n%s", name, got, bytes, m.state())
	}
	st := m.report(name).Pod.Status.ContainerStatuses[0]
	if got := st.Resources.Limits.Memory().String(); got != memory || st.RestartCount != 0 {
		m.t.Fatalf("status of pod %s: got memory limit %s and %d restarts, want %s and none\n%s", name, got, st.RestartCount, memory, m.state())
	}
}

// condition returns "reason: message" of a condition that is true; "" if there is none.
func (m *machine) condition(name string, kind v1.PodConditionType) string {
	for _, c := range m.report(name).Pod.Status.Conditions {
		if c.Type == kind && c.Status == v1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// TestResizeIsLogged checks that a resize is logged once, when the pod and all its containers have the
// new size.
func TestResizeIsLogged(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var talk bytes.Buffer
		m.log = slog.NewTextHandler(&talk, nil)
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		if text := talk.String(); strings.Contains(text, "resized") {
			t.Errorf("log after a start: got a resize, want none:\n%s", text)
		}
		for n, memory := range []string{"128Mi", "256Mi"} {
			m.setPods(sizedPod(t, "web", memory, ""))
			m.settle()
			m.settle()
			if text := talk.String(); strings.Count(text, `msg="pod resized"`) != n+1 || !strings.Contains(text, "container app") {
				t.Errorf("log after resize %d: got\n%s\nwant %d messages %q", n+1, text, n+1, "pod resized")
			}
		}
	})
}

// TestResize_Inherited checks that a container without a memory limit of its own is resized with its
// pod, and restarted if its resize policy requires it.
func TestResize_Inherited(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		inheriting := func(name, memory string, policy v1.ResourceResizeRestartPolicy) *manifest.Pod {
			return clusterPod(name, func(p *v1.Pod) {
				amounts := v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
				p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts, Limits: amounts}
				p.Spec.Containers[0].Image = "web:1"
				p.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: policy}}
			})
		}
		m.options = useCluster
		m.start()
		for i, memory := range []string{"64Mi", "128Mi", "32Mi"} {
			m.setClusterPods(true, inheriting("web", memory, v1.NotRequired), inheriting("restarted", memory, v1.RestartContainer))
			m.advance(time.Minute)
			q := resource.MustParse(memory)
			for name, restarts := range map[string]int32{"web": 0, "restarted": int32(i)} {
				if got := m.memoryOf(name); got != q.Value() {
					t.Errorf("memory limit of pod %s with the pod-level limit %s: got %d bytes, want %d\n%s", name, memory, got, q.Value(), m.state())
				}
				if got := m.report(name).Pod.Status.ContainerStatuses[0].RestartCount; got != restarts {
					t.Errorf("restarts of pod %s with the pod-level limit %s: got %d, want %d", name, memory, got, restarts)
				}
				if m.report(name).IsResizePending {
					t.Errorf("resize of pod %s to %s: got it pending, want it complete", name, memory)
				}
			}
		}
	})
}

// TestResize checks that a changed size restarts no container, whether or not podd runs during the
// change, and that another version restarts the pod.
func TestResize(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.wantMemory("web", "64Mi", 64<<20)
		m.ForgetCalls()
		m.setPods(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.wantMemory("web", "128Mi", 128<<20)
		m.wantCalls("UpdateContainerResources web/app")
		if r := m.report("web"); r.IsResizePending || len(r.ReservedVersions) != 1 {
			t.Errorf("got IsResizePending %t and ReservedVersions %v, want IsResizePending false and one version", r.IsResizePending, r.ReservedVersions)
		}
		m.restart()
		m.wantCalls("UpdateContainerResources web/app")
		m.kill()
		m.setPods(sizedPod(t, "web", "32Mi", ""))
		m.start()
		m.settle()
		m.wantMemory("web", "32Mi", 32<<20)
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", resources: {limits: {cpu: 1}, requests: {cpu: 100m}}}]`))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if m.memoryOf("web") != 0 {
			t.Errorf("memory limit: got %d, want none", m.memoryOf("web"))
		}
	})
}

// TestResizeKilled checks that a resize is repeated if podd is killed after the runtime resized the
// container and before the journal contains the new size.
func TestResizeKilled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		p := sizedPod(t, "web", "64Mi", "")
		m.setPods(p)
		m.settle()
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", AfterEffect: true, Hangs: true})
		m.setPods(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.kill()
		remove()
		if text, err := os.ReadFile(m.journal(p)); err != nil || strings.Contains(string(text), "128Mi") {
			t.Errorf("journal before the size is written: got %s (error %v), want one without \"128Mi\"", text, err)
		}
		m.ForgetCalls()
		m.start()
		m.settle()
		m.wantMemory("web", "128Mi", 128<<20)
		m.wantCalls("UpdateContainerResources web/app")
		var j struct{ Sizes map[string]string }
		if text, err := os.ReadFile(m.journal(p)); err != nil || json.Unmarshal(text, &j) != nil || len(j.Sizes) != 2 {
			t.Errorf("journal after the resize is repeated: got %s (error %v), want one with 2 sizes", text, err)
		}
	})
}

// TestResizeFails checks that a failed resize is retried, and that the container keeps
// running.
func TestResizeFails(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
		m.setPods(sizedPod(t, "web", "16Mi", ""))
		m.settle()
		m.wantMemory("web", "64Mi", 64<<20)
		step := m.report("web").Decision.Steps[0]
		if want := "device or resource busy; the container keeps cpu=100m/1 memory=64Mi/64Mi"; !step.NeedsUser || !strings.HasSuffix(step.Why, want) || step.Until.IsZero() {
			t.Errorf("step: got %+v, want a problem that ends with %q", step, want)
		}
		if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") {
			t.Errorf("condition PodResizeInProgress: got %q, want an error", got)
		}
		remove()
		m.advance(time.Minute)
		m.wantMemory("web", "16Mi", 16<<20)
		if got := m.condition("web", v1.PodResizeInProgress); got != "" {
			t.Errorf("condition PodResizeInProgress: got %q, want none", got)
		}
	})
}

// TestResizeBelowUse checks a resize to a memory limit below the memory in use, with both versions of
// cgroups. podd rejects it with the kubelet's message and does not call the runtime. When less memory
// is in use, podd sets the limit.
func TestResizeBelowUse(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		run(t, func(t *testing.T, m *machine) {
			m.options = func(o *reconcile.Options) { o.RenderNode.UsesCgroupV2 = v2 }
			m.start()
			m.setPods(sizedPod(t, "web", "64Mi", ""))
			m.settle()
			m.SetMemoryUsage("default/web/app", 40<<20)
			m.ForgetCalls()
			m.setPods(sizedPod(t, "web", "32Mi", ""))
			m.settle()
			m.wantMemory("web", "64Mi", 64<<20)
			m.wantCalls()
			const want = "cannot decrease memory limits: [attempting to set pod memory limit (33554432) below current usage (41943040), " +
				`attempting to set container "app" memory limit (33554432) below current usage (41943040)]; the container keeps`
			if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, want) {
				t.Errorf("cgroup v2 %t: message of condition PodResizeInProgress: got %q, want %q in it", v2, got, want)
			}
			m.SetMemoryUsage("default/web/app", 20<<20)
			m.advance(2 * time.Minute)
			m.wantMemory("web", "32Mi", 32<<20)
		})
	}
}

// TestResizeBelowUse_AffectsWholePod checks that no container of a pod is resized while the limit
// of another container cannot be changed.
func TestResizeBelowUse_AffectsWholePod(t *testing.T) {
	two := func(a, b string) *manifest.Pod {
		return pod(t, "web", fmt.Sprintf(`containers:
- {name: app, image: "web:1", resources: {limits: {memory: %s}}}
- {name: db, image: "web:1", resources: {limits: {memory: %s}}}`, a, b))
	}
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(two("64Mi", "64Mi"))
		m.settle()
		m.SetMemoryUsage("default/web/db", 40<<20)
		m.ForgetCalls()
		m.setPods(two("128Mi", "32Mi"))
		m.settle()
		m.wantCalls()
		const want = `cannot decrease memory limits: attempting to set container "db" memory limit (33554432) below current usage (41943040)`
		if got := m.condition("web", v1.PodResizeInProgress); !strings.Contains(got, want) {
			t.Errorf("message of condition PodResizeInProgress: got %q, want %q in it", got, want)
		}
		m.SetMemoryUsage("default/web/db", 0)
		m.advance(2 * time.Minute)
		m.wantCallsWith("UpdateContainerResources web/db", "UpdateContainerResources web/app")
	})
}

// TestResizeBelowUse_OfPod checks a resize of a pod whose cgroup uses more memory than the new limit,
// although its containers use less. An example is the memory of an emptyDir in memory.
func TestResizeBelowUse_OfPod(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var used, limit atomic.Int64
		m.options = func(o *reconcile.Options) {
			o.Effects.MeasureCgroupMemory = func(render.Cgroup) (int64, int64, error) { return used.Load(), limit.Load(), nil }
			o.Effects.MakeCgroup = func(c render.Cgroup) error { limit.Store(c.Memory); return nil }
		}
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		used.Store(48 << 20)
		m.setPods(sizedPod(t, "web", "32Mi", ""))
		m.settle()
		const want = "cannot decrease memory limits: attempting to set pod memory limit (33554432) below current usage (50331648)"
		if got := m.condition("web", v1.PodResizeInProgress); !strings.Contains(got, want) || limit.Load() != 64<<20 {
			t.Errorf("message of condition PodResizeInProgress: got %q, want %q in it; memory limit of the pod's cgroup: got %d, want %d", got, want, limit.Load(), 64<<20)
		}
		// The memory in use grows between the resize of the container and the resize of the pod's
		// cgroup.
		used.Store(16 << 20)
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", AfterEffect: true, Hangs: true})
		m.advance(2 * time.Minute)
		used.Store(48 << 20)
		remove()
		m.advance(10 * time.Minute)
		if limit.Load() != 64<<20 || !strings.Contains(m.condition("web", v1.PodResizeInProgress), "below current usage") {
			t.Errorf("memory limit of the pod's cgroup: got %d, want %d; condition PodResizeInProgress: got %q, want \"below current usage\" in it", limit.Load(), 64<<20, m.condition("web", v1.PodResizeInProgress))
		}
		used.Store(16 << 20)
		m.advance(10 * time.Minute)
		m.wantMemory("web", "32Mi", 32<<20)
		if limit.Load() != 32<<20 {
			t.Errorf("memory limit: got %d, want %d", limit.Load(), 32<<20)
		}
		// The page cache may fill the limit. This does not prevent other changes.
		used.Store(32 << 20)
		more := `containers: [{name: app, image: "web:1", resources: {limits: {memory: 32Mi, cpu: 2}, requests: {cpu: 100m}}}]`
		m.setPods(pod(t, "web", more))
		m.settle()
		if r := m.report("web"); r.IsResizePending {
			t.Errorf("resize of the CPU: got it pending, want it complete: %+v", r.Decision.Steps)
		}
	})
}

// TestResizeByRestart checks that a container with the resize policy RestartContainer is restarted
// with its new size, within its own grace period.
func TestResizeByRestart(t *testing.T) {
	const policy = `, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]`
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", policy))
		m.settle()
		m.ForgetCalls()
		m.setPods(sizedPod(t, "web", "128Mi", policy))
		m.settle()
		m.wantCalls("StopContainer web/app", "CreateContainer web/app", "StartContainer web/app")
		m.wantState("web 0 ready", "web/app 0 exited 143", "web/app 1 running")
		if m.memoryOf("web") != 128<<20 {
			t.Errorf("memory limit: got %d, want %d", m.memoryOf("web"), 128<<20)
		}
		if r := m.report("web"); r.IsResizePending {
			t.Error("resize: got it pending, want it complete")
		}
	})
}

// TestResizeWithoutRoom checks that a size that exceeds the resources of the node changes nothing,
// even if podd is restarted or the container crashes. The size is applied when another pod is
// removed. The pod's cgroup has its new size at the end.
func TestResizeWithoutRoom(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var mu sync.Mutex // guards pods
		var pods []render.Cgroup
		m.options = func(o *reconcile.Options) {
			o.Limits = admission.Limits{Allocatable: admission.Amounts{v1.ResourceMemory: 256 << 20}}
			o.Effects.MakeCgroup = func(c render.Cgroup) error {
				mu.Lock()
				defer mu.Unlock()
				pods = append(pods, c)
				return nil
			}
		}
		m.start()
		other, small, large := sizedPod(t, "other", "128Mi", ""), sizedPod(t, "web", "64Mi", ""), sizedPod(t, "web", "192Mi", "")
		m.setPods(other, small)
		m.settle()
		m.setPods(other, large)
		for range 2 {
			m.settle()
			if got := m.memoryOf("web"); got != 64<<20 {
				t.Fatalf("memory limit: got %d, want %d\n%s", got, 64<<20, m.state())
			}
			if d := m.report("web").Decision; !d.NeedsUser || !strings.Contains(d.Why, "requests 192Mi of memory") {
				t.Errorf("decision: got %s, want a problem about the requested memory", d)
			}
			if got := m.condition("web", v1.PodResizePending); !strings.HasPrefix(got, "Deferred: ") {
				t.Errorf("condition PodResizePending: got %q, want Deferred", got)
			}
			m.restart()
		}
		m.ExitContainer("default/web/app", 1)
		m.settle()
		m.wantState("other 0 ready", "other/app 0 running", "web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		if got := m.memoryOf("web"); got != 64<<20 {
			t.Fatalf("memory limit after a restart of podd: got %d, want %d\n%s", got, 64<<20, m.state())
		}
		m.setPods(other, sizedPod(t, "web", "1Gi", ""))
		m.settle()
		if got := m.condition("web", v1.PodResizePending); !strings.HasPrefix(got, "Infeasible: ") {
			t.Errorf("condition PodResizePending: got %q, want Infeasible", got)
		}
		m.setPods(large)
		m.settle()
		m.wantState("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		if got := m.memoryOf("web"); got != 192<<20 {
			t.Fatalf("memory limit: got %d, want %d\n%s", got, 192<<20, m.state())
		}
		mu.Lock()
		if got := pods[len(pods)-1].Memory; got != 192<<20 {
			t.Errorf("memory limit of the pod's cgroup: got %d, want %d", got, 192<<20)
		}
		mu.Unlock()
		m.setPods(large, sizedPod(t, "third", "128Mi", ""))
		m.settle()
		if m.rule("third") != plan.RuleNotAdmitted {
			t.Errorf("rule of the third pod: got %s, want %s\n%s", m.rule("third"), plan.RuleNotAdmitted, m.state())
		}
		m.setPods(small, sizedPod(t, "third", "128Mi", ""))
		m.settle()
		m.wantState("third 0 ready", "third/app 0 running", "web 0 ready", "web/app 0 exited 1", "web/app 1 running")
	})
}

// TestSizeOutlivesSandbox checks that a new sandbox gets the admitted size, not a desired size that
// was not admitted. This must hold although the sandbox has no container with the admitted size yet.
func TestSizeOutlivesSandbox(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) {
			o.Limits = admission.Limits{Allocatable: admission.Amounts{v1.ResourceMemory: 256 << 20}}
		}
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.setPods(sizedPod(t, "web", "1Gi", ""))
		m.settle()
		m.Inject(runtimetest.Fault{Method: "CreateContainer", Nth: 1, Err: errors.New("not now")})
		m.KillSandbox(m.report("web").Observed[0].ID)
		m.settle()
		if got := m.memoryOf("web"); got != 64<<20 {
			t.Errorf("memory limit: got %d, want %d\n%s", got, 64<<20, m.state())
		}
	})
}

// TestResizeKeepsStart checks that a resize changes neither the start time of a pod nor its
// deadline.
func TestResizeKeepsStart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		was := m.report("web").Pod.Status.StartTime
		m.advance(10 * time.Second)
		m.setPods(sizedPod(t, "web", "96Mi", ""))
		m.settle()
		m.wantMemory("web", "96Mi", 96<<20)
		if now := m.report("web").Pod.Status.StartTime; !now.Equal(was) {
			t.Errorf("start time: got %s, want %s", now, was)
		}
	})
}

// TestResize_Revoked checks the cgroup of a pod whose resize fails. During the resize the cgroup has
// the higher of the former and the new limit. After the resize is revoked it has the former limit.
func TestResize_Revoked(t *testing.T) {
	for _, killed := range []bool{false, true} {
		run(t, func(t *testing.T, m *machine) {
			var limit atomic.Int64
			m.options = func(o *reconcile.Options) {
				o.Effects.MakeCgroup = func(c render.Cgroup) error { limit.Store(c.Memory); return nil }
			}
			m.start()
			m.setPods(sizedPod(t, "web", "64Mi", ""))
			m.settle()
			m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
			m.setPods(sizedPod(t, "web", "128Mi", ""))
			m.settle()
			if got := limit.Load(); got != 128<<20 {
				t.Errorf("memory limit of the pod during the resize: got %d, want %d", got, 128<<20)
			}
			if killed {
				m.restart()
			}
			m.setPods(sizedPod(t, "web", "64Mi", ""))
			m.settle()
			m.wantMemory("web", "64Mi", 64<<20)
			if got := limit.Load(); got != 64<<20 {
				t.Errorf("memory limit of the pod after the resize was revoked (podd killed: %t): got %d, want %d", killed, got, 64<<20)
			}
		})
	}
}

// TestResize_InitContainers checks that a running init container is resized in place, and that the
// next init container starts with its new size. podd declares this feature to the API server.
func TestResize_InitContainers(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		sized := func(memory string) *manifest.Pod {
			return clusterPod("web", func(p *v1.Pod) {
				limits := v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}
				p.Spec.InitContainers = []v1.Container{
					{Name: "one", Image: "job:1", Command: []string{"sleep", "inf"}, Resources: limits},
					{Name: "two", Image: "job:1", Command: []string{"sleep", "inf"}, Resources: limits},
				}
			})
		}
		m.setClusterPods(true, sized("64Mi"))
		m.settle()
		m.ForgetCalls()
		m.setClusterPods(true, sized("128Mi"))
		m.settle()
		m.wantCalls("UpdateContainerResources web/one")
		m.wantState("web 0 ready", "web/one 0 running")
		if got := m.memoryOf("web"); got != 128<<20 {
			t.Errorf("memory limit of the running container: got %d, want %d", got, 128<<20)
		}
		m.ExitContainer("default/web/one", 0)
		m.settle()
		m.wantState("web 0 ready", "web/one 0 exited 0", "web/two 0 running")
		if got := m.memoryOf("web"); got != 128<<20 {
			t.Errorf("memory limit of the next container: got %d, want %d", got, 128<<20)
		}
		status := m.report("web").Pod.Status
		for _, c := range status.InitContainerStatuses {
			if got := c.Resources.Limits.Memory().String(); got != "128Mi" {
				t.Errorf("container %s: memory limit in the status: got %s, want 128Mi", c.Name, got)
			}
		}
		if r := m.report("web"); r.IsResizePending {
			t.Error("resize: got it pending, want it complete")
		}
	})
}
