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

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime/runtimetest"
)

// sizedPod has one container that may have so much memory.
func sizedPod(t *testing.T, name, memory, more string) *manifest.Pod {
	t.Helper()
	return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", resources: {limits: {memory: %s, cpu: 1}, requests: {cpu: 100m}}%s}]`, memory, more))
}

// memoryOf is the limit that the runtime has of a container.
func (m *machine) memoryOf(name string) int64 {
	m.t.Helper()
	c := m.report(name).Observed[0].Containers
	r, err := m.Client.ContainerResources(m.t.Context(), c[len(c)-1].ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return r.Memory
}

// has fails the test unless the pod runs in its first container with so much
// memory, as the runtime and the status say.
func (m *machine) has(name, memory string, bytes int64) {
	m.t.Helper()
	m.is(name+" 0 ready", name+"/app 0 running")
	if got := m.memoryOf(name); got != bytes {
		m.t.Fatalf("the runtime has %d bytes, want %d\n%s", got, bytes, m.story())
	}
	st := m.report(name).Pod.Status.ContainerStatuses[0]
	if got := st.Resources.Limits.Memory().String(); got != memory || st.RestartCount != 0 {
		m.t.Fatalf("the status has %s and %d restarts, want %s\n%s", got, st.RestartCount, memory, m.story())
	}
}

// condition is "reason: message" of a condition that is true, "" for none.
func (m *machine) condition(name string, kind v1.PodConditionType) string {
	for _, c := range m.report(name).Pod.Status.Conditions {
		if c.Type == kind && c.Status == v1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// TestResizeIsLogged: once all of the pod has its size, and once.
func TestResizeIsLogged(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var talk bytes.Buffer
		m.log = slog.NewTextHandler(&talk, nil)
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		if text := talk.String(); strings.Contains(text, "resized") {
			t.Errorf("a start is no resize:\n%s", text)
		}
		for n, memory := range []string{"128Mi", "256Mi"} {
			m.want(sizedPod(t, "web", memory, ""))
			m.settle()
			m.settle()
			if text := talk.String(); strings.Count(text, "msg=resized") != n+1 || !strings.Contains(text, "container app") {
				t.Errorf("%d. resize:\n%s", n+1, text)
			}
		}
	})
}

// TestResize: another size restarts nothing, whether podd runs when it comes or
// not; what is another version restarts.
func TestResize(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.has("web", "64Mi", 64<<20)
		m.Forget()
		m.want(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.has("web", "128Mi", 128<<20)
		m.did("UpdateContainerResources web/app")
		if r := m.report("web"); r.Unsized || len(r.Held) != 1 {
			t.Errorf("unsized %t, held %v", r.Unsized, r.Held)
		}
		m.restart()
		m.did("UpdateContainerResources web/app")
		m.kill()
		m.want(sizedPod(t, "web", "32Mi", ""))
		m.start()
		m.settle()
		m.has("web", "32Mi", 32<<20)
		m.want(pod(t, "web", `containers: [{name: app, image: "web:1", resources: {limits: {cpu: 1}, requests: {cpu: 100m}}}]`))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if m.memoryOf("web") != 0 {
			t.Error("it has a limit still")
		}
	})
}

// TestResizeKilled: podd dies after the runtime resized the container and before
// it is remembered: it is done once more.
func TestResizeKilled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		p := sizedPod(t, "web", "64Mi", "")
		m.want(p)
		m.settle()
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", After: true, Hang: true})
		m.want(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.kill()
		remove()
		if text, err := os.ReadFile(m.journal(p)); err != nil || strings.Contains(string(text), "128Mi") {
			t.Errorf("the journal says %s, %v", text, err)
		}
		m.Forget()
		m.start()
		m.settle()
		m.has("web", "128Mi", 128<<20)
		m.did("UpdateContainerResources web/app")
		var j struct{ Sizes map[string]string }
		if text, err := os.ReadFile(m.journal(p)); err != nil || json.Unmarshal(text, &j) != nil || len(j.Sizes) != 2 {
			t.Errorf("the journal says %s, %v", text, err)
		}
	})
}

// TestResizeFails: it is tried again, and the container runs on.
func TestResizeFails(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		remove := m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
		m.want(sizedPod(t, "web", "16Mi", ""))
		m.settle()
		m.has("web", "64Mi", 64<<20)
		step := m.report("web").Decision.Steps[0]
		if want := "device or resource busy; it runs on with cpu=100m/1 memory=64Mi/64Mi"; !step.Problem || !strings.HasSuffix(step.Why, want) || step.Until.IsZero() {
			t.Errorf("%+v, want a problem that ends with %q", step, want)
		}
		if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") {
			t.Errorf("the condition says %q", got)
		}
		remove()
		m.pass(time.Minute)
		m.has("web", "16Mi", 16<<20)
		if got := m.condition("web", v1.PodResizeInProgress); got != "" {
			t.Errorf("the condition says %q", got)
		}
	})
}

// TestResizeBelowUse: where the kernel would kill for it, podd refuses to.
func TestResizeBelowUse(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Render.CgroupV2 = true }
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.Use("default/web/app", 40<<20)
		m.want(sizedPod(t, "web", "32Mi", ""))
		m.settle()
		m.has("web", "64Mi", 64<<20)
		if got := m.condition("web", v1.PodResizeInProgress); !strings.Contains(got, "it uses 40Mi of memory; it runs on with") {
			t.Errorf("the condition says %q", got)
		}
		m.Use("default/web/app", 20<<20)
		m.pass(2 * time.Minute)
		m.has("web", "32Mi", 32<<20)
	})
}

// TestResizeByRestart: who reads its memory only once is started anew in its new
// size, with its own grace.
func TestResizeByRestart(t *testing.T) {
	const policy = `, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]`
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(sizedPod(t, "web", "64Mi", policy))
		m.settle()
		m.Forget()
		m.want(sizedPod(t, "web", "128Mi", policy))
		m.settle()
		m.did("StopContainer web/app", "CreateContainer web/app", "StartContainer web/app")
		m.is("web 0 ready", "web/app 0 exited 143", "web/app 1 running")
		if m.memoryOf("web") != 128<<20 {
			t.Error("it has not its new size")
		}
		if r := m.report("web"); r.Unsized {
			t.Error("it is not done")
		}
	})
}

// TestResizeWithoutRoom: what the node has no room for changes nothing, also in
// another life of podd and when the container crashes; it is done when another
// pod leaves. The pod's cgroup has its new size at the end.
func TestResizeWithoutRoom(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var mu sync.Mutex // guards pods
		var pods []render.Cgroup
		m.options = func(o *reconcile.Options) {
			o.Limits = plan.Limits{Amounts: plan.Amounts{v1.ResourceMemory: 256 << 20}}
			o.Effects.MakeCgroup = func(c render.Cgroup) error {
				mu.Lock()
				defer mu.Unlock()
				pods = append(pods, c)
				return nil
			}
		}
		m.start()
		other, small, large := sizedPod(t, "other", "128Mi", ""), sizedPod(t, "web", "64Mi", ""), sizedPod(t, "web", "192Mi", "")
		m.want(other, small)
		m.settle()
		m.want(other, large)
		for range 2 {
			m.settle()
			if got := m.memoryOf("web"); got != 64<<20 {
				t.Fatalf("it has %d bytes\n%s", got, m.story())
			}
			if d := m.report("web").Decision; !d.Problem || !strings.Contains(d.Why, "asks for 192Mi of memory") {
				t.Errorf("got %s", d)
			}
			if got := m.condition("web", v1.PodResizePending); !strings.HasPrefix(got, "Deferred: ") {
				t.Errorf("the condition says %q", got)
			}
			m.restart()
		}
		m.Exit("default/web/app", 1)
		m.settle()
		m.is("other 0 ready", "other/app 0 running", "web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		if got := m.memoryOf("web"); got != 64<<20 {
			t.Fatalf("started again it has %d bytes\n%s", got, m.story())
		}
		m.want(other, sizedPod(t, "web", "1Gi", ""))
		m.settle()
		if got := m.condition("web", v1.PodResizePending); !strings.HasPrefix(got, "Infeasible: ") {
			t.Errorf("the condition says %q", got)
		}
		m.want(large)
		m.settle()
		m.is("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		if got := m.memoryOf("web"); got != 192<<20 {
			t.Fatalf("it has %d bytes\n%s", got, m.story())
		}
		mu.Lock()
		if got := pods[len(pods)-1].Memory; got != 192<<20 {
			t.Errorf("the pod's cgroup has %d bytes", got)
		}
		mu.Unlock()
		m.want(large, sizedPod(t, "third", "128Mi", ""))
		m.settle()
		if m.rule("third") != "not admitted" {
			t.Errorf("there is no room for the third\n%s", m.story())
		}
		m.want(small, sizedPod(t, "third", "128Mi", ""))
		m.settle()
		m.is("third 0 ready", "third/app 0 running", "web 0 ready", "web/app 0 exited 1", "web/app 1 running")
	})
}

// TestSizeOutlivesSandbox: what is not admitted is not given because a new sandbox
// has no container yet that tells of the old size.
func TestSizeOutlivesSandbox(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) {
			o.Limits = plan.Limits{Amounts: plan.Amounts{v1.ResourceMemory: 256 << 20}}
		}
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		m.want(sizedPod(t, "web", "1Gi", ""))
		m.settle()
		m.Inject(runtimetest.Fault{Method: "CreateContainer", Nth: 1, Err: errors.New("not now")})
		m.KillSandbox(m.report("web").Observed[0].ID)
		m.settle()
		if got := m.memoryOf("web"); got != 64<<20 {
			t.Errorf("it has %d bytes\n%s", got, m.story())
		}
	})
}

// TestResizeKeepsStart: a pod is as old after it was resized as before, and so is
// its deadline.
func TestResizeKeepsStart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		was := m.report("web").Pod.Status.StartTime
		m.pass(10 * time.Second)
		m.want(sizedPod(t, "web", "96Mi", ""))
		m.settle()
		m.has("web", "96Mi", 96<<20)
		if now := m.report("web").Pod.Status.StartTime; !now.Equal(was) {
			t.Errorf("it began at %s, now at %s", was, now)
		}
	})
}

// TestResizeTakenBack: the pod's cgroup, which was given room for both sizes, is
// brought back when the resize fails and is taken back.
func TestResizeTakenBack(t *testing.T) {
	for _, killed := range []bool{false, true} {
		run(t, func(t *testing.T, m *machine) {
			var limit atomic.Int64
			m.options = func(o *reconcile.Options) {
				o.Effects.MakeCgroup = func(c render.Cgroup) error { limit.Store(c.Memory); return nil }
			}
			m.start()
			m.want(sizedPod(t, "web", "64Mi", ""))
			m.settle()
			m.Inject(runtimetest.Fault{Method: "UpdateContainerResources", Err: errors.New("device or resource busy")})
			m.want(sizedPod(t, "web", "128Mi", ""))
			m.settle()
			if got := limit.Load(); got != 128<<20 {
				t.Errorf("amid the resize the pod may have %d bytes", got)
			}
			if killed {
				m.restart()
			}
			m.want(sizedPod(t, "web", "64Mi", ""))
			m.settle()
			m.has("web", "64Mi", 64<<20)
			if got := limit.Load(); got != 64<<20 {
				t.Errorf("killed %t: taken back, the pod may have %d bytes", killed, got)
			}
		})
	}
}
