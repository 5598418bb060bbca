package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
)

// setPressure sets the pressure conditions of the node.
func (m *machine) setPressure(c pressure.Conditions) {
	m.t.Helper()
	if err := m.current().router.SetPressure(m.t.Context(), c, true); err != nil {
		m.t.Fatal(err)
	}
}

// wantPhase checks the phase and the reason of a pod.
func (m *machine) wantPhase(when, name string, phase v1.PodPhase, reason string) {
	m.t.Helper()
	if st := m.report(name).Pod.Status; st.Phase != phase || st.Reason != reason {
		m.t.Errorf("pod %s %s: got phase %s and reason %q (message %q), want phase %s and reason %q; decision: %s", name, when, st.Phase, st.Reason, st.Message, phase, reason, m.report(name).Decision)
	}
}

// TestPressure_Admission checks that a pod that is added under node pressure starts when the
// pressure is over, that running pods keep running, and that an edit of a running pod waits.
func TestPressure_Admission(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		early := pod(t, "early", web)
		m.setPods(early)
		m.settle()
		m.setPressure(pressure.Conditions{Disk: true})
		m.setPods(early, pod(t, "late", web))
		m.settle()
		m.wantPhase("under pressure", "early", v1.PodRunning, "")
		m.wantPhase("under pressure", "late", v1.PodPending, "NodePressure")
		edited := pod(t, "early", `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
		m.setPods(edited, pod(t, "late", web))
		m.settle()
		m.wantPhase("edited under pressure", "early", v1.PodRunning, "")
		if r := m.report("early"); r.Successor == nil {
			t.Errorf("edited pod: got no successor, want the earlier version to keep running\n%s", m.state())
		}
		m.setPressure(pressure.Conditions{})
		m.settle()
		m.wantPhase("after the pressure", "late", v1.PodRunning, "")
		if r := m.report("early"); r.Successor != nil || r.Pod.Status.Phase != v1.PodRunning {
			t.Errorf("edited pod after the pressure: got decision %s, want the new version to run", r.Decision)
		}
	})
}

// TestPressure_Awaited checks that no pod starts before podd has observed the pressure conditions.
// After two seconds without an observation, pods start anyway. A restart of podd stops no pod.
func TestPressure_Awaited(t *testing.T) {
	await := func(o *reconcile.Options) { o.AwaitPressure = true }
	soon := 100 * time.Millisecond
	t.Run("pressure", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = await
			m.start()
			m.setPods(pod(t, "web", web), pod(t, "critical", "priorityClassName: system-node-critical\n"+web))
			time.Sleep(soon)
			m.wantPhase("before the observation", "web", v1.PodPending, "NodePressure")
			m.setPressure(pressure.Conditions{Disk: true})
			m.settle()
			m.wantPhase("under pressure", "web", v1.PodPending, "NodePressure")
			m.wantPhase("under pressure", "critical", v1.PodRunning, "")
		})
	})
	t.Run("no pressure", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = await
			m.start()
			m.setPods(pod(t, "web", web))
			if err := m.current().router.SetPressure(t.Context(), pressure.Conditions{}, false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(soon)
			m.wantPhase("after an incomplete observation", "web", v1.PodPending, "NodePressure")
			m.setPressure(pressure.Conditions{})
			time.Sleep(soon)
			m.wantPhase("after the observation", "web", v1.PodRunning, "")
			m.kill()
			m.start()
			time.Sleep(soon)
			m.wantPhase("after a restart of podd", "web", v1.PodRunning, "")
			m.wantState("web 0 ready", "web/app 0 running")
		})
	})
	t.Run("no observation", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = await
			m.start()
			m.setPods(pod(t, "web", web))
			time.Sleep(2 * time.Second)
			m.wantPhase("after two seconds", "web", v1.PodRunning, "")
		})
	})
}

// evict evicts the current version of a pod because of a shortage of memory.
func (m *machine) evict(name string) {
	m.t.Helper()
	m.evictFor(name, 0)
}

// evictFor evicts a pod like evict. transition is the transition period of the node.
func (m *machine) evictFor(name string, transition time.Duration) {
	m.t.Helper()
	v := m.report(name).Version
	err := m.current().router.Evict(m.t.Context(), v.Key, plan.Eviction{
		UID: v.UID, Hash: v.Hash, Message: "The node was low on resource: memory. ", Restarts: true,
		Shortage:         plan.Shortage{Signal: "memory.available", Available: "50Mi", Threshold: "100Mi"},
		EventAnnotations: map[string]string{"starved_resource": "memory"}, Transition: transition,
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestPressure_Restart checks that an evicted pod of a file starts again after a back-off, and only
// when the pressure is over. The back-off doubles with each eviction, also if podd is restarted.
func TestPressure_Restart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		once := pod(t, "once", "restartPolicy: Never\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
		m.setPods(pod(t, "web", web), once)
		m.settle()
		m.setPressure(pressure.Conditions{Memory: true})
		m.evict("web")
		m.evict("once")
		m.advance(15 * time.Second)
		m.wantPhase("under pressure", "web", v1.PodFailed, "Evicted")
		for _, e := range m.events {
			if isEviction := e.Reason == plan.ReasonEvicted; isEviction != (e.Annotations["starved_resource"] == "memory") {
				t.Errorf("event %s of %s: got annotations %q, want starved_resource \"memory\" exactly if the reason is %s", e.Reason, e.Pod, e.Annotations, plan.ReasonEvicted)
			}
		}
		if why := m.report("web").Decision.Why; !strings.Contains(why, "memory.available: 50Mi available, threshold 100Mi; the pod waits to start again: the node has the condition [MemoryPressure]") {
			t.Errorf("reason under pressure: got %q, want the shortage and the condition for which the pod waits", why)
		}
		m.options = func(o *reconcile.Options) { o.Limits.Pressure.Memory = true } // podd observes the node as soon as it starts
		m.restart()
		m.options = nil
		m.advance(time.Minute)
		m.wantPhase("after a restart of podd", "web", v1.PodFailed, "Evicted")
		m.setPressure(pressure.Conditions{})
		m.advance(2 * time.Second)
		m.wantPhase("after the pressure", "web", v1.PodRunning, "")
		m.wantPhase("after the pressure", "once", v1.PodFailed, "Evicted")
		for _, backoff := range []time.Duration{20 * time.Second, 40 * time.Second} {
			m.evict("web")
			m.advance(backoff - time.Second)
			m.wantPhase("during the back-off", "web", v1.PodFailed, "Evicted")
			if d := m.report("web").Decision; !strings.HasSuffix(d.Why, "; the pod starts again after a back-off") || !d.NeedsUser {
				t.Errorf("decision during the back-off: got %s, want a problem whose reason ends with \"the pod starts again after a back-off\"", d)
			}
			m.restart()
			m.advance(5 * time.Second)
			m.wantPhase("after the back-off", "web", v1.PodRunning, "")
		}
		m.advance(11 * time.Minute)
		m.evict("web")
		m.advance(12 * time.Second)
		m.wantPhase("after an eviction and a long run", "web", v1.PodRunning, "")
	})
}

// TestPressure_TransitionPeriod checks that a pod waits for the whole transition period after its
// eviction, even if podd is restarted and then finds no pressure.
func TestPressure_TransitionPeriod(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.setPressure(pressure.Conditions{Memory: true})
		m.evictFor("web", 5*time.Minute)
		m.advance(time.Minute)
		m.restart()
		m.advance(3 * time.Minute)
		m.wantPhase("after a restart of podd", "web", v1.PodFailed, "Evicted")
		m.advance(time.Minute + 10*time.Second)
		m.wantPhase("after the transition period", "web", v1.PodRunning, "")
	})
}

// TestPressure_RestartReservations checks that an evicted pod releases its host port during the
// pressure, and is admitted again with its port, so that two pods never use the same port.
func TestPressure_RestartReservations(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		withPort := `containers: [{name: app, image: "web:1", ports: [{containerPort: 80, hostPort: 80}]}]`
		m.start()
		m.setPods(pod(t, "a", withPort))
		m.settle()
		m.evict("a")
		m.advance(5 * time.Second)
		m.setPods(pod(t, "a", withPort), pod(t, "b", withPort))
		m.advance(time.Minute)
		running := 0
		for _, name := range []string{"a", "b"} {
			if m.report(name).Pod.Status.Phase == v1.PodRunning {
				running++
			}
		}
		if running != 1 {
			t.Errorf("running pods with the host port: got %d, want 1\n%s", running, m.state())
		}
	})
}

// TestPressure_RestartRequest checks that a request to restart an evicted pod explains that the pod
// starts again without a request.
func TestPressure_RestartRequest(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.evict("web")
		m.advance(5 * time.Second)
		if err := m.current().router.Restart(t.Context(), key("web"), ""); err == nil || !strings.Contains(err.Error(), "starts again without a request") {
			t.Errorf("Restart: got error %v, want one with \"starts again without a request\"", err)
		}
	})
}

// TestPressure_RuntimeHangs checks an evicted pod whose runtime does not respond: podd kills the
// containers of the pod once, and the pod waits until the runtime responds again. Then its sandbox is
// stopped, and the pod starts again. The first kill finds no container, and the second one finds the
// containers but fails, so the third one need not find them.
func TestPressure_RuntimeHangs(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var mu sync.Mutex // guards killed and found
		var killed []string
		var found []bool // the argument wereFound of each call
		wantKilled := func(when string, want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(killed, want) {
				t.Errorf("killed sandboxes and containers %s: got %q, want %q", when, killed, want)
			}
		}
		m.options = func(o *reconcile.Options) {
			o.Effects.KillContainers = func(_ context.Context, _ types.UID, ids []string, wereFound bool) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, wereFound)
				if !wereFound {
					return len(found) == 2, errors.New("1 processes remain")
				}
				killed = append(killed, ids...)
				m.KillSandbox(ids[0])
				return true, nil
			}
		}
		m.start()
		m.setPods(pod(t, "web", web), pod(t, "other", web))
		m.settle()
		inc := m.report("web").Observed[0]
		resume := m.Inject(runtimetest.Fault{Hangs: true})
		m.evict("web")
		m.advance(7 * time.Second)
		wantKilled("7 s after the eviction")
		m.advance(5 * time.Minute)
		wantKilled("5 minutes after the eviction", inc.ID, inc.Containers[0].ID)
		if d := m.report("web").Decision; !strings.HasSuffix(d.Why, "; no process remains in its cgroup") || !d.NeedsUser {
			t.Errorf("decision after the kill: got %s, want a problem whose reason ends with the kill", d)
		}
		mu.Lock()
		if want := []bool{false, false, true}; !slices.Equal(found, want) {
			t.Errorf("argument wereFound of each kill: got %v, want %v", found, want)
		}
		mu.Unlock()
		resume()
		m.advance(5 * time.Minute)
		m.wantPhase("after the runtime has responded", "web", v1.PodRunning, "")
		m.wantState("other 0 ready", "other/app 0 running", "web 1 ready", "web/app 1 running")
		wantKilled("after the runtime has responded", inc.ID, inc.Containers[0].ID)
	})
}
