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

// The pods of a node: two that take their time to end, one of the system.
func nodePods(t *testing.T) []*manifest.Pod {
	slow := "terminationGracePeriodSeconds: %s\n" + `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`
	with := func(grace, more string) string {
		return more + slow[:len("terminationGracePeriodSeconds: ")] + grace + slow[len("terminationGracePeriodSeconds: %s"):]
	}
	return []*manifest.Pod{pod(t, "quick", with("5", "")), pod(t, "slow", with("600", "")), pod(t, "system", with("600", "priorityClassName: system-node-critical\n"))}
}

// shutDown begins one; the result comes on the channel.
func (m *machine) shutDown() <-chan error {
	done := make(chan error, 1)
	life := m.life()
	if err := life.router.Shutdown(life.ctx, byPriority); err != nil {
		m.t.Fatal(err)
	}
	go func() { done <- life.router.AwaitShutdown(life.ctx) }()
	return done
}

// TestShutdown: pods end in the order of their priority, each with its own grace or
// its group's; nothing is begun meanwhile, and a podd that comes in between goes on.
func TestShutdown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		pods := nodePods(t)
		m.want(pods...)
		m.settle()
		done := m.shutDown()
		m.pass(6 * time.Second)
		m.is("quick 0 dead", "quick/app 0 exited 137", "slow 0 ready", "slow/app 0 running", "system 0 ready", "system/app 0 running")
		st := m.report("quick").Pod.Status
		if st.Phase != v1.PodFailed || st.Reason != "Terminated" || st.Message != plan.TerminatedMessage || !disrupted(st) {
			t.Errorf("quick: %+v", st)
		}
		m.want(append(slices.Clone(pods), pod(t, "late", web))...)
		m.pass(time.Second)
		if r := m.report("late"); r.Decision.Reason != "NodeShutdown" {
			t.Errorf("late: %s", r.Decision)
		}
		m.options = func(o *reconcile.Options) { o.Shutdown = byPriority }
		m.kill()
		if err := <-done; err == nil {
			t.Error("a podd that stops has not ended all")
		}
		m.start()
		done = m.shutDown()
		m.pass(14 * time.Second) // slow has had its 20 seconds, from before the restart
		m.is("quick 0 dead", "quick/app 0 exited 137", "slow 0 dead", "slow/app 0 exited 137", "system 0 ready", "system/app 0 running")
		m.pass(9 * time.Second)
		if err := <-done; err != nil {
			t.Error(err)
		}
		all := []string{"quick 0 dead", "quick/app 0 exited 137", "slow 0 dead", "slow/app 0 exited 137", "system 0 dead", "system/app 0 exited 137"}
		m.is(all...)
		m.restart()
		m.is(all...)
		// The machine is up again.
		m.options = nil
		m.restart()
		for _, name := range []string{"quick", "slow", "system", "late"} {
			if st := m.report(name).Pod.Status; st.Phase != v1.PodRunning || st.Reason != "" || disrupted(st) {
				t.Errorf("%s after the boot: %+v\n%s", name, st, m.story())
			}
		}
	})
}

func disrupted(st v1.PodStatus) bool {
	return slices.ContainsFunc(st.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == "TerminationByKubelet"
	})
}

// TestShutdownCancelled: what has begun to end comes to its end and runs again, the
// others never notice.
func TestShutdownCancelled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(nodePods(t)...)
		m.settle()
		done := m.shutDown()
		m.pass(6 * time.Second)
		if err := m.life().router.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, reconcile.ErrCancelled) {
			t.Errorf("the shutdown ended with %v", err)
		}
		m.pass(time.Second)
		if st := m.report("quick").Pod.Status; st.Phase != v1.PodRunning {
			t.Errorf("quick: %+v\n%s", st, m.story())
		}
		m.pass(time.Minute)
		if st := m.report("slow").Pod.Status; st.Phase != v1.PodRunning {
			t.Errorf("slow: %+v\n%s", st, m.story())
		}
		if st := m.report("system").Pod.Status; st.Phase != v1.PodRunning || st.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("system: %+v", st)
		}
	})
}

// TestShutdownOfTheAPI: a pod of the API stays Failed, since who made it makes
// another.
func TestShutdownOfTheAPI(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		m.start()
		m.bound(true, ofCluster("web", nil))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if err := <-m.shutDown(); err != nil {
			t.Fatal(err)
		}
		if err := m.life().router.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.restart()
		if st := m.report("web").Pod.Status; st.Phase != v1.PodFailed || st.Reason != "Terminated" {
			t.Errorf("%+v", st)
		}
	})
}

// TestShutdownOfLeaving: what ends already gets no more than its group does, whatever
// was asked for it, and no more than it had left.
func TestShutdownOfLeaving(t *testing.T) {
	long := func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) }
	for _, test := range []struct {
		note  string
		leave func(t *testing.T, m *machine)
		most  time.Duration
	}{
		{"removed", func(t *testing.T, m *machine) {
			m.want(nodePods(t)...)
			m.settle()
			m.want()
		}, 33 * time.Second},
		{"edited", func(t *testing.T, m *machine) {
			m.want(nodePods(t)...)
			m.settle()
			var edited []*manifest.Pod
			for _, p := range nodePods(t) {
				edited = append(edited, pod(t, p.Spec.Name, `containers: [{name: app, image: "job:1", command: [sleep, "1000"]}]`))
			}
			m.want(edited...)
		}, 33 * time.Second},
		{"deleted from a cluster", func(_ *testing.T, m *machine) {
			m.bound(true, ofCluster("web", long))
			m.settle()
			m.bound(true, ofCluster("web", both(long, deleted(300))))
		}, 23 * time.Second},
		{"almost gone", func(_ *testing.T, m *machine) {
			m.bound(true, ofCluster("web", long))
			m.settle()
			m.bound(true, ofCluster("web", both(long, deleted(60))))
			m.pass(55 * time.Second)
		}, 9 * time.Second},
	} {
		t.Run(test.note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = inCluster
				m.start()
				test.leave(t, m)
				m.pass(time.Second)
				began := time.Now()
				if err := <-m.shutDown(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > test.most {
					t.Errorf("it took %s\n%s", took, m.story())
				}
			})
		})
	}
}
