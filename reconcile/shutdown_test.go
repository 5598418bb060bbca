package reconcile_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
)

var byPriority = []plan.ShutdownGroup{{Priority: 0, Grace: 20 * time.Second}, {Priority: 2000000000, Grace: 10 * time.Second}}

// nodePods returns the pods of a node: two pods that stop slowly, and a system pod.
func nodePods(t *testing.T) []*manifest.Pod {
	slow := "terminationGracePeriodSeconds: %s\n" + `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`
	with := func(grace, more string) string {
		return more + slow[:len("terminationGracePeriodSeconds: ")] + grace + slow[len("terminationGracePeriodSeconds: %s"):]
	}
	return []*manifest.Pod{pod(t, "quick", with("5", "")), pod(t, "slow", with("600", "")), pod(t, "system", with("600", "priorityClassName: system-node-critical\n"))}
}

// shutDown begins a node shutdown. Its result is sent on the channel.
func (m *machine) shutDown() <-chan error {
	done := make(chan error, 1)
	life := m.current()
	if err := life.router.Shutdown(life.ctx, byPriority); err != nil {
		m.t.Fatal(err)
	}
	go func() { done <- life.router.AwaitShutdown(life.ctx) }()
	return done
}

// TestShutdown checks that pods stop in the order of their priority. The grace period of each pod
// is the shorter of its own and that of its group. Nothing is started in the meantime, and a
// restarted podd continues the shutdown.
func TestShutdown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		pods := nodePods(t)
		m.setPods(pods...)
		m.settle()
		done := m.shutDown()
		m.advance(6 * time.Second)
		m.wantState("quick 0 dead", "quick/app 0 exited 137", "slow 0 ready", "slow/app 0 running", "system 0 ready", "system/app 0 running")
		st := m.report("quick").Pod.Status
		if st.Phase != v1.PodFailed || st.Reason != "Terminated" || st.Message != plan.TerminatedMessage || !disrupted(st) {
			t.Errorf("status of quick: got %+v, want Failed with reason Terminated and a DisruptionTarget condition", st)
		}
		m.setPods(append(slices.Clone(pods), pod(t, "late", web))...)
		m.advance(time.Second)
		if r := m.report("late"); r.Decision.Reason != "NodeShutdown" {
			t.Errorf("decision about late: got %s, want reason NodeShutdown", r.Decision)
		}
		m.options = func(o *reconcile.Options) { o.ShutdownGroups = byPriority }
		m.kill()
		if err := <-done; err == nil {
			t.Error("AwaitShutdown while a pod is being stopped: got no error, want one")
		}
		m.start()
		done = m.shutDown()
		m.advance(14 * time.Second) // the grace period of 20 seconds of pod "slow" began before the restart, and has passed
		m.wantState("quick 0 dead", "quick/app 0 exited 137", "slow 0 dead", "slow/app 0 exited 137", "system 0 ready", "system/app 0 running")
		m.advance(9 * time.Second)
		if err := <-done; err != nil {
			t.Error(err)
		}
		all := []string{"quick 0 dead", "quick/app 0 exited 137", "slow 0 dead", "slow/app 0 exited 137", "system 0 dead", "system/app 0 exited 137"}
		m.wantState(all...)
		m.restart()
		m.wantState(all...)
		// The node has started again.
		m.options = nil
		m.restart()
		for _, name := range []string{"quick", "slow", "system", "late"} {
			if st := m.report(name).Pod.Status; st.Phase != v1.PodRunning || st.Reason != "" || disrupted(st) {
				t.Errorf("status of %s after the boot: got %+v, want Running without a reason\n%s", name, st, m.state())
			}
		}
	})
}

func disrupted(st v1.PodStatus) bool {
	return slices.ContainsFunc(st.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == "TerminationByKubelet"
	})
}

// TestShutdownCancelled cancels a shutdown while two pods are being stopped. These pods stop and then
// run again. The other pods keep running.
func TestShutdownCancelled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(nodePods(t)...)
		m.settle()
		done := m.shutDown()
		m.advance(6 * time.Second)
		if err := m.current().router.CancelShutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, reconcile.ErrShutdownCancelled) {
			t.Errorf("AwaitShutdown: got error %v, want %v", err, reconcile.ErrShutdownCancelled)
		}
		m.advance(time.Second)
		if st := m.report("quick").Pod.Status; st.Phase != v1.PodRunning {
			t.Errorf("status of quick: got %+v, want Running\n%s", st, m.state())
		}
		m.advance(time.Minute)
		if st := m.report("slow").Pod.Status; st.Phase != v1.PodRunning {
			t.Errorf("status of slow: got %+v, want Running\n%s", st, m.state())
		}
		if st := m.report("system").Pod.Status; st.Phase != v1.PodRunning || st.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("status of system: got %+v, want Running without a restart", st)
		}
	})
}

// TestShutdown_APIPod checks that a pod of the API stays Failed, because its controller
// creates another one.
func TestShutdown_APIPod(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		m.setClusterPods(true, clusterPod("web", nil))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if err := <-m.shutDown(); err != nil {
			t.Fatal(err)
		}
		if err := m.current().router.CancelShutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.restart()
		if st := m.report("web").Pod.Status; st.Phase != v1.PodFailed || st.Reason != "Terminated" {
			t.Errorf("status: got %+v, want Failed with reason Terminated", st)
		}
	})
}

// TestShutdown_Stopping checks a pod that is already being stopped when a shutdown begins. It gets at
// most the grace period of its group, and at most the rest of its own grace period.
func TestShutdown_Stopping(t *testing.T) {
	long := func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }
	for _, test := range []struct {
		note  string
		leave func(t *testing.T, m *machine)
		most  time.Duration
	}{
		{"removed", func(t *testing.T, m *machine) {
			m.setPods(nodePods(t)...)
			m.settle()
			m.setPods()
		}, 33 * time.Second},
		{"edited", func(t *testing.T, m *machine) {
			m.setPods(nodePods(t)...)
			m.settle()
			var edited []*manifest.Pod
			for _, p := range nodePods(t) {
				edited = append(edited, pod(t, p.Object.Name, `containers: [{name: app, image: "job:1", command: [sleep, "1000"]}]`))
			}
			m.setPods(edited...)
		}, 33 * time.Second},
		{"deleted from a cluster", func(_ *testing.T, m *machine) {
			m.setClusterPods(true, clusterPod("web", long))
			m.settle()
			m.setClusterPods(true, clusterPod("web", allOf(long, withDeletion(300))))
		}, 23 * time.Second},
		{"almost gone", func(_ *testing.T, m *machine) {
			m.setClusterPods(true, clusterPod("web", long))
			m.settle()
			m.setClusterPods(true, clusterPod("web", allOf(long, withDeletion(60))))
			m.advance(55 * time.Second)
		}, 9 * time.Second},
	} {
		t.Run(test.note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = useCluster
				m.start()
				test.leave(t, m)
				m.advance(time.Second)
				began := time.Now()
				if err := <-m.shutDown(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > test.most {
					t.Errorf("duration of the shutdown: got %s, want at most %s\n%s", took, test.most, m.state())
				}
			})
		})
	}
}
