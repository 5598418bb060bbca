package reconcile_test

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
)

const clusterSource = "the cluster"

// ofCluster is a pod as an API server has it.
func ofCluster(name string, change func(*v1.Pod)) *manifest.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = "node", new(int64(30))
	p.Spec.Containers = []v1.Container{{Name: "app", Image: "job:1", Command: []string{"sleep", "inf"}}}
	p.Status.Phase = v1.PodPending
	if change != nil {
		change(p)
	}
	return manifest.FromAPI(p, manifest.Options{Kind: manifest.KindAPI, Source: clusterSource, Path: clusterSource, Node: "node"})
}

func deleted(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &seconds
	}
}

// inCluster has the machine's podd know of a cluster.
func inCluster(o *reconcile.Options) {
	o.SourceKinds = map[string]string{source: manifest.KindFile, clusterSource: manifest.KindAPI}
}

// bound is what the cluster has bound to the machine, all of it unless it is not
// complete.
func (m *machine) bound(complete bool, pods ...*manifest.Pod) {
	known := manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}}
	set := manifest.Merge([]manifest.Batch{
		{Source: source, Kind: manifest.KindFile, Complete: true},
		{Source: clusterSource, Kind: manifest.KindAPI, Pods: pods, Complete: complete, Objects: known},
	})
	for _, p := range pods {
		if m.given[p] == nil {
			m.given[p] = p.Spec.DeepCopy()
		}
	}
	m.mu.Lock()
	m.set = set
	d := m.podd
	m.mu.Unlock()
	if d != nil {
		send(d.ctx, d.sets, set)
	}
}

// TestClusterDeletes: a pod ends with the grace that was asked for, a smaller one
// later, also when podd was started meanwhile, with the hooks of its spec.
func TestClusterDeletes(t *testing.T) {
	hooked := func(p *v1.Pod) {
		p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 2}}}
	}
	for _, test := range []struct {
		note   string
		run    func(m *machine)
		killed time.Duration
	}{
		{"its own grace, forgotten at once", func(m *machine) { m.bound(true) }, 30 * time.Second},
		{"asked for", func(m *machine) { m.bound(true, ofCluster("web", both(hooked, deleted(12)))) }, 12 * time.Second},
		{"a longer one", func(m *machine) { m.bound(true, ofCluster("web", both(hooked, deleted(50)))) }, 50 * time.Second},
		{"at once", func(m *machine) { m.bound(true, ofCluster("web", both(hooked, deleted(0)))) }, 3 * time.Second},
		{"less, later", func(m *machine) {
			m.bound(true, ofCluster("web", both(hooked, deleted(25))))
			m.pass(5 * time.Second)
			m.bound(true, ofCluster("web", both(hooked, deleted(4))))
		}, 9 * time.Second},
		{"while podd was away", func(m *machine) {
			m.kill()
			m.bound(false, ofCluster("web", both(hooked, deleted(12))))
			m.start()
		}, 12 * time.Second},
		{"and it was killed meanwhile", func(m *machine) {
			m.bound(true, ofCluster("web", both(hooked, deleted(12))))
			m.pass(4 * time.Second)
			m.kill()
			m.pass(2 * time.Second)
			m.start()
		}, 12 * time.Second},
	} {
		t.Run(test.note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = inCluster
				m.start()
				m.bound(true, ofCluster("web", hooked))
				m.settle()
				m.is("web 0 ready", "web/app 0 running")
				m.Forget()
				began := time.Now()
				test.run(m)
				m.pass(time.Minute)
				m.is()
				if r := m.report("web"); r != nil || len(m.dirs()) > 0 {
					t.Errorf("something is left: %v, %v", r, m.dirs())
				}
				stops := m.Calls("StopContainer")
				if len(stops) == 0 {
					t.Fatal("it was never stopped")
				}
				if first := stops[0].At.Sub(began); first < 2*time.Second && test.note != "at once" {
					t.Errorf("stopped after %s, before its hook was over", first)
				}
				if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < test.killed-time.Second || took > test.killed+3*time.Second {
					t.Errorf("ended after %s, want %s", took, test.killed)
				}
			})
		})
	}
}

func both(changes ...func(*v1.Pod)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// TestClusterAway: what the cluster says nothing of runs on, and what it lost while
// podd was away is removed once it has told of all.
func TestClusterAway(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		m.start()
		web, lost := ofCluster("web", nil), ofCluster("lost", nil)
		m.bound(true, web, lost)
		m.settle()
		m.Forget()
		m.bound(false)
		m.kill()
		m.start()
		m.pass(time.Hour)
		m.did()
		m.bound(true, web)
		m.pass(time.Minute)
		m.is("web 0 ready", "web/app 0 running")
	})
}

// TestClusterEndsItsOwn: what the cluster says of its pod's end is not of another's by
// that name, whose manifest podd has not seen yet.
func TestClusterEndsItsOwn(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		m.start()
		static := pod(t, "web", web)
		m.want(static)
		m.settle()
		m.Forget()
		m.kill()
		set := manifest.Merge([]manifest.Batch{
			{Source: source, Kind: manifest.KindFile},
			{Source: clusterSource, Kind: manifest.KindAPI, Complete: true, Pods: []*manifest.Pod{ofCluster("web", deleted(1))}},
		})
		m.set = set
		m.start()
		m.pass(time.Minute)
		m.did()
		m.want(static)
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
	})
}

// TestClusterEdits: what an API server lets be changed restarts nothing but the
// container whose image is another.
func TestClusterEdits(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		two := func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "side", Image: "side:1", Command: []string{"sleep", "inf"}})
		}
		m.start()
		m.bound(true, ofCluster("web", two))
		m.settle()
		m.Forget()
		m.bound(true, ofCluster("web", both(two, func(p *v1.Pod) {
			p.Labels, p.Spec.ActiveDeadlineSeconds, p.Generation = map[string]string{"a": "b"}, new(int64(10000)), 2
		})))
		m.settle()
		m.did()
		if p := m.report("web").Pod; p.Labels["a"] != "b" || p.Status.ObservedGeneration != 2 || p.Status.Conditions[0].ObservedGeneration != 2 {
			t.Errorf("got %v", p)
		}
		m.bound(true, ofCluster("web", both(two, func(p *v1.Pod) { p.Spec.Containers[0].Image = "web:2" })))
		m.pass(time.Minute)
		m.is("web 0 ready", "web/app 1 running", "web/side 0 running", "web/app 0 exited 137")
		// Another pod of the name: nothing of the first is waited for but its end.
		m.bound(true, ofCluster("web", func(p *v1.Pod) { p.UID, p.Spec.Containers[0].Image = "other", "absent:1" }))
		m.pass(2 * time.Minute)
		m.is("web 0 ready")
	})
}

// TestClusterRejects: a pod that the node cannot take has failed for good, though
// there is room later and podd is started anew.
func TestClusterRejects(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { inCluster(o); o.Limits.MaxPods = 1 }
		m.start()
		first, second := ofCluster("first", nil), ofCluster("second", nil)
		m.bound(true, first)
		m.settle()
		m.bound(true, first, second)
		m.settle()
		rejected := func() {
			t.Helper()
			s := m.report("second").Pod.Status
			if s.Phase != v1.PodFailed || s.Reason != "OutOfpods" || s.Message != "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1" || len(s.Conditions) > 0 || s.StartTime == nil {
				t.Errorf("got %+v", s)
			}
		}
		rejected()
		m.bound(true, second)
		m.pass(2 * time.Minute)
		rejected()
		m.is()
		if len(m.dirs()) > 0 {
			t.Errorf("there is %v", m.dirs())
		}
		// The cluster has its end by now.
		m.kill()
		m.bound(true, ofCluster("second", func(p *v1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = v1.PodFailed, "OutOfpods", "Pod was rejected: so"
		}))
		m.start()
		m.settle()
		m.is()
		if s := m.report("second").Pod.Status; s.Phase != v1.PodFailed || s.Message != "Pod was rejected: so" {
			t.Errorf("got %+v", s)
		}
		m.bound(true)
		m.settle()
		if r := m.report("second"); r != nil {
			t.Errorf("it is left: %v", r)
		}
	})
}

// TestClusterTakesOver: what another pod gives up is waited for, however its end was
// told, for a pod that is rejected has failed for good.
func TestClusterTakesOver(t *testing.T) {
	onPort := func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}} }
	for note, first := range map[string][]*manifest.Pod{
		"forgotten at once": nil,
		"deleted":           {ofCluster("first", both(onPort, deleted(20)))},
		"over":              {ofCluster("first", both(onPort, func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }))},
	} {
		t.Run(note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = inCluster
				m.start()
				m.bound(true, ofCluster("first", onPort))
				m.settle()
				m.bound(true, append(first, ofCluster("second", onPort))...)
				m.pass(2 * time.Minute)
				if s := m.report("second").Pod.Status; s.Phase != v1.PodRunning {
					t.Errorf("got %+v\n%s", s, m.story())
				}
			})
		})
	}
}

// TestClusterEvicts: it has failed, and controllers see that the node did it.
func TestClusterEvicts(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		m.start()
		web := ofCluster("web", nil)
		m.bound(true, web)
		m.settle()
		if err := m.life().router.Evict(context.Background(), key("web"), plan.Evict{UID: web.UID, Message: "The node was low on resource: memory. "}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		s := m.report("web").Pod.Status
		if c := s.Conditions[0]; s.Phase != v1.PodFailed || s.Reason != "Evicted" || !hasDisruption(s.Conditions) {
			t.Errorf("got %+v, first %v", s, c)
		}
	})
}

func hasDisruption(all []v1.PodCondition) bool {
	for _, c := range all {
		if c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonTerminationByKubelet {
			return true
		}
	}
	return false
}

// TestClusterFinished: what is over for the cluster is never run, and what runs of it
// ends.
func TestClusterFinished(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		over := func(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodFailed, "Preempted" }
		m.start()
		m.bound(true, ofCluster("never", over), ofCluster("runs", nil))
		m.settle()
		m.is("runs 0 ready", "runs/app 0 running")
		m.bound(true, ofCluster("never", over), ofCluster("runs", over))
		m.pass(2 * time.Minute)
		m.is("runs 0 dead", "runs/app 0 exited 137")
		if s := m.report("runs").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempted" || s.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("got %+v", s)
		}
		m.restart()
		m.is("runs 0 dead", "runs/app 0 exited 137")
	})
}

// TestClusterResizes in place, what runs once too, and what has ended not at all.
func TestClusterResizes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = inCluster
		sized := func(amount string) func(*v1.Pod) {
			return func(p *v1.Pod) {
				p.Spec.RestartPolicy = v1.RestartPolicyNever
				p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
			}
		}
		m.start()
		m.bound(true, ofCluster("web", sized("100m")))
		m.settle()
		m.bound(true, ofCluster("web", sized("200m")))
		m.pass(time.Minute)
		m.is("web 0 ready", "web/app 0 running")
		if got := m.report("web").Pod.Status.ContainerStatuses[0].AllocatedResources.Cpu().String(); got != "200m" {
			t.Errorf("allocated %s", got)
		}
	})
}

// TestClusterPreempts: for a critical pod others end, with their grace, and it starts
// when there is room.
func TestClusterPreempts(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { inCluster(o); o.Limits.MaxPods = 2 }
		one, two := ofCluster("one", nil), ofCluster("two", nil)
		critical := ofCluster("critical", func(p *v1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) })
		m.start()
		m.bound(true, one, two)
		m.settle()
		m.bound(true, one, two, critical)
		m.pass(10 * time.Second)
		m.is("one 0 ready", "one/app 0 running", "two 0 ready", "two/app 0 running")
		m.pass(time.Minute)
		m.is("critical 0 ready", "critical/app 0 running", "one 0 dead", "one/app 0 exited 137", "two 0 ready", "two/app 0 running")
		if s := m.report("one").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempting" || s.Message != "Preempted in order to admit critical pod" || !hasDisruption(s.Conditions) {
			t.Errorf("got %+v", s)
		}
	})
}

// TestStaticPreempts: a pod of a file starts on a full node, and starts without its
// cluster, which its manifest may be what serves.
func TestStaticPreempts(t *testing.T) {
	full := func(o *reconcile.Options) { inCluster(o); o.Limits.MaxPods = 2 }
	one, two := ofCluster("one", nil), ofCluster("two", nil)
	both := func(m *machine, static *manifest.Pod, seen bool) {
		api := manifest.Batch{Source: clusterSource, Kind: manifest.KindAPI, Complete: seen}
		if seen {
			api.Pods = []*manifest.Pod{one, two}
			api.Objects = manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}}
		}
		set := manifest.Merge([]manifest.Batch{{Source: source, Kind: manifest.KindFile, Pods: []*manifest.Pod{static}, Complete: true}, api})
		m.mu.Lock()
		m.set = set
		m.mu.Unlock()
		if d := m.life(); d.ctx.Err() == nil {
			send(d.ctx, d.sets, set)
		}
	}
	t.Run("seen", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = full
			m.start()
			m.bound(true, one, two)
			m.settle()
			both(m, pod(t, "static", web), true)
			m.pass(time.Minute)
			m.is("one 0 dead", "one/app 0 exited 137", "static 0 ready", "static/app 0 running", "two 0 ready", "two/app 0 running")
			if s := m.report("one").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempting" {
				t.Errorf("got %+v", s)
			}
		})
	})
	t.Run("not seen", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = full
			m.start()
			m.bound(true, one, two)
			m.settle()
			m.kill()
			both(m, pod(t, "static", web), false)
			m.start()
			m.settle()
			all := []string{"one 0 ready", "one/app 0 running", "static 0 ready", "static/app 0 running", "two 0 ready", "two/app 0 running"}
			m.is(all...)
			both(m, pod(t, "static", web), true)
			m.pass(time.Minute)
			m.is(all...)
		})
	})
}

// TestClusterAdmitsOnce: what was admitted holds its place from then on, before it
// has begun to use it.
func TestClusterAdmitsOnce(t *testing.T) {
	made := func(seconds int64) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000+seconds, 0)) }
	}
	for range 20 {
		run(t, func(t *testing.T, m *machine) {
			m.options = func(o *reconcile.Options) { inCluster(o); o.Limits.MaxPods = 1 }
			m.start()
			m.bound(true)
			m.settle()
			younger := ofCluster("younger", made(9))
			m.bound(true, younger)
			m.bound(true, younger, ofCluster("older", made(1)))
			m.settle()
			m.is("younger 0 ready", "younger/app 0 running")
			if s := m.report("older").Pod.Status; s.Reason != "OutOfpods" {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// TestClusterRebooted: of what there is nothing left but its directory the node is
// asked again, as a kubelet asks for all.
func TestClusterRebooted(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := ofCluster("web", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
		m.options = func(o *reconcile.Options) { inCluster(o); o.Limits.Machine.Labels = map[string]string{"disk": "ssd"} }
		m.start()
		m.bound(true, web)
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		m.kill()
		for _, inc := range m.report("web").Observed {
			if err := m.RemovePodSandbox(t.Context(), inc.ID); err != nil {
				t.Fatal(err)
			}
		}
		if len(m.dirs()) != 1 {
			t.Fatalf("there is %v", m.dirs())
		}
		m.options = inCluster
		m.start()
		m.pass(time.Minute)
		m.is()
		if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "NodeAffinity" {
			t.Errorf("got %+v", s)
		}
	})
}
