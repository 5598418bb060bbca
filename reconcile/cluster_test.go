package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/event"
	"podd/reconcile/plan"
)

const clusterSource = "the cluster"

// clusterPod returns a pod as an API server returns it.
func clusterPod(name string, change func(*v1.Pod)) *manifest.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = "node", new(int64(30))
	p.Spec.Containers = []v1.Container{{Name: "app", Image: "job:1", Command: []string{"sleep", "inf"}}}
	p.Status.Phase = v1.PodPending
	if change != nil {
		change(p)
	}
	return decode.FromAPI(p, decode.Options{Kind: manifest.KindAPI, Source: clusterSource, Path: clusterSource, NodeName: "node"})
}

func withDeletion(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, &seconds
	}
}

// useCluster configures podd for a cluster.
func useCluster(o *reconcile.Options) {
	o.SourceKinds = map[string]string{source: manifest.KindFile, clusterSource: manifest.KindAPI}
}

// setClusterPods sets the pods that the cluster has bound to the node. complete reports whether
// these are all pods of the node.
func (m *machine) setClusterPods(complete bool, pods ...*manifest.Pod) {
	known := manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}}
	set := merge.Batches([]manifest.Batch{
		{Source: source, Kind: manifest.KindFile, IsComplete: true},
		{Source: clusterSource, Kind: manifest.KindAPI, Pods: pods, IsComplete: complete, Objects: known},
	})
	for _, p := range pods {
		if m.shared[p] == nil {
			m.shared[p] = p.Object.DeepCopy()
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

// TestClusterDeletes checks that a deleted pod stops with the requested grace period and the hooks
// of its spec. A shorter grace period may be requested later, and podd may be restarted in the
// meantime.
func TestClusterDeletes(t *testing.T) {
	hooked := func(p *v1.Pod) {
		p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 2}}}
	}
	for _, test := range []struct {
		note   string
		run    func(m *machine)
		killed time.Duration
	}{
		{"its own grace, forgotten at once", func(m *machine) { m.setClusterPods(true) }, 30 * time.Second},
		{"asked for", func(m *machine) { m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(12)))) }, 12 * time.Second},
		{"a longer one", func(m *machine) { m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(50)))) }, 50 * time.Second},
		{"at once", func(m *machine) { m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(0)))) }, 3 * time.Second},
		{"less, later", func(m *machine) {
			m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(25))))
			m.advance(5 * time.Second)
			m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(4))))
		}, 9 * time.Second},
		{"while podd was away", func(m *machine) {
			m.kill()
			m.setClusterPods(false, clusterPod("web", allOf(hooked, withDeletion(12))))
			m.start()
		}, 12 * time.Second},
		{"and it was killed meanwhile", func(m *machine) {
			m.setClusterPods(true, clusterPod("web", allOf(hooked, withDeletion(12))))
			m.advance(4 * time.Second)
			m.kill()
			m.advance(2 * time.Second)
			m.start()
		}, 12 * time.Second},
	} {
		t.Run(test.note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = useCluster
				m.start()
				m.setClusterPods(true, clusterPod("web", hooked))
				m.settle()
				m.wantState("web 0 ready", "web/app 0 running")
				m.ForgetCalls()
				began := time.Now()
				test.run(m)
				m.advance(time.Minute)
				m.wantState()
				if r := m.report("web"); r != nil || len(m.dirs()) > 0 {
					t.Errorf("after the deletion: got report %v and directories %v, want none", r, m.dirs())
				}
				stops := m.Calls("StopContainer")
				if len(stops) == 0 {
					t.Fatal("stops of the container: got none, want at least one")
				}
				if first := stops[0].At.Sub(began); first < 2*time.Second && test.note != "at once" {
					t.Errorf("time until the first stop of the container: got %s, want at least the 2s of the preStop hook", first)
				}
				if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < test.killed-time.Second || took > test.killed+3*time.Second {
					t.Errorf("time until the stop of the sandbox: got %s, want %s", took, test.killed)
				}
			})
		})
	}
}

func allOf(changes ...func(*v1.Pod)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// TestClusterUnreachable checks that pods keep running while the cluster does not report them. Pods
// that were deleted while podd did not run are removed once the cluster has reported all pods.
func TestClusterUnreachable(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		web, lost := clusterPod("web", nil), clusterPod("lost", nil)
		m.setClusterPods(true, web, lost)
		m.settle()
		m.ForgetCalls()
		m.setClusterPods(false)
		m.kill()
		m.start()
		m.advance(time.Hour)
		m.wantCalls()
		m.setClusterPods(true, web)
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// TestClusterDeletes_OtherUID checks that the deletion of a cluster's pod does not stop another
// pod of that name whose manifest podd has not read yet.
func TestClusterDeletes_OtherUID(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		static := pod(t, "web", web)
		m.setPods(static)
		m.settle()
		m.ForgetCalls()
		m.kill()
		set := merge.Batches([]manifest.Batch{
			{Source: source, Kind: manifest.KindFile},
			{Source: clusterSource, Kind: manifest.KindAPI, IsComplete: true, Pods: []*manifest.Pod{clusterPod("web", withDeletion(1))}},
		})
		m.set = set
		m.start()
		m.advance(time.Minute)
		m.wantCalls()
		m.setPods(static)
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// TestClusterEdits checks that the changes that an API server permits restart nothing but a
// container with a new image.
func TestClusterEdits(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		two := func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "side", Image: "side:1", Command: []string{"sleep", "inf"}})
		}
		m.start()
		m.setClusterPods(true, clusterPod("web", two))
		m.settle()
		m.ForgetCalls()
		m.setClusterPods(true, clusterPod("web", allOf(two, func(p *v1.Pod) {
			p.Labels, p.Spec.ActiveDeadlineSeconds, p.Generation = map[string]string{"a": "b"}, new(int64(10000)), 2
		})))
		m.settle()
		m.wantCalls()
		if p := m.report("web").Pod; p.Labels["a"] != "b" || p.Status.ObservedGeneration != 2 || p.Status.Conditions[0].ObservedGeneration != 2 {
			t.Errorf("published pod: got %v, want label a=b and observedGeneration 2", p)
		}
		m.setClusterPods(true, clusterPod("web", allOf(two, func(p *v1.Pod) { p.Spec.Containers[0].Image = "web:2" })))
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 1 running", "web/side 0 running", "web/app 0 exited 137")
		// Another pod with this name waits only until the first pod has stopped.
		m.setClusterPods(true, clusterPod("web", func(p *v1.Pod) { p.UID, p.Spec.Containers[0].Image = "other", "absent:1" }))
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready")
	})
}

// TestClusterRejects checks that a pod that does not fit on the node fails permanently, even if it
// would fit later and podd is restarted.
func TestClusterRejects(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { useCluster(o); o.Limits.MaxPods = 1 }
		m.start()
		first, second := clusterPod("first", nil), clusterPod("second", nil)
		m.setClusterPods(true, first)
		m.settle()
		m.setClusterPods(true, first, second)
		m.settle()
		rejected := func() {
			t.Helper()
			s := m.report("second").Pod.Status
			if s.Phase != v1.PodFailed || s.Reason != "OutOfpods" || s.Message != "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1" || len(s.Conditions) > 0 || s.StartTime == nil {
				t.Errorf("status of the rejected pod: got %+v, want Failed with reason OutOfpods, a start time and no conditions", s)
			}
		}
		rejected()
		m.setClusterPods(true, second)
		m.advance(2 * time.Minute)
		rejected()
		m.wantState()
		if len(m.dirs()) > 0 {
			t.Errorf("directories of rejected pods: got %v, want none", m.dirs())
		}
		// The cluster has received the final status of the pod by now.
		m.kill()
		m.setClusterPods(true, clusterPod("second", func(p *v1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = v1.PodFailed, "OutOfpods", "Pod was rejected: so"
		}))
		m.start()
		m.settle()
		m.wantState()
		if s := m.report("second").Pod.Status; s.Phase != v1.PodFailed || s.Message != "Pod was rejected: so" {
			t.Errorf("status of the rejected pod: got %+v, want Failed with message %q", s, "Pod was rejected: so")
		}
		m.setClusterPods(true)
		m.settle()
		if r := m.report("second"); r != nil {
			t.Errorf("report of the deleted pod: got %v, want none", r)
		}
	})
}

// TestClusterTakesOver checks that a new pod waits for resources that another pod is about to free,
// however its deletion was requested. A rejected pod would fail permanently.
func TestClusterTakesOver(t *testing.T) {
	onPort := func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80, ContainerPort: 80}} }
	for note, first := range map[string][]*manifest.Pod{
		"forgotten at once": nil,
		"deleted":           {clusterPod("first", allOf(onPort, withDeletion(20)))},
		"over":              {clusterPod("first", allOf(onPort, func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }))},
	} {
		t.Run(note, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.options = useCluster
				m.start()
				m.setClusterPods(true, clusterPod("first", onPort))
				m.settle()
				m.setClusterPods(true, append(first, clusterPod("second", onPort))...)
				m.advance(2 * time.Minute)
				if s := m.report("second").Pod.Status; s.Phase != v1.PodRunning {
					t.Errorf("status of the second pod: got %+v, want Running\n%s", s, m.state())
				}
			})
		})
	}
}

// TestClusterEvicts checks that an evicted pod has the phase Failed and the condition
// DisruptionTarget. The condition shows controllers that the node evicted the pod.
func TestClusterEvicts(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		web := clusterPod("web", nil)
		m.setClusterPods(true, web)
		m.settle()
		if err := m.current().router.Evict(context.Background(), key("web"), plan.Eviction{
			UID: web.UID, Hash: web.Hash, Message: "The node was low on resource: memory. ",
			Shortage: plan.Shortage{Signal: "memory.available", Available: "50Mi", Threshold: "100Mi"},
		}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		s := m.report("web").Pod.Status
		if c := s.Conditions[0]; s.Phase != v1.PodFailed || s.Reason != "Evicted" || !hasDisruption(s.Conditions) {
			t.Errorf("status of the evicted pod: got %+v with first condition %v, want Failed with reason Evicted and a DisruptionTarget condition", s, c)
		}
	})
}

// TestClusterEvicts_Terminating checks the eviction of a pod that is being deleted with a long grace period:
// the pod stops earlier, and its status and one event contain the reason, as those of other evicted pods.
func TestClusterEvicts_Terminating(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		m.start()
		m.setClusterPods(true, clusterPod("web", nil))
		m.settle()
		m.setClusterPods(true, clusterPod("web", withDeletion(300)))
		m.settle()
		uid := m.report("web").Pod.UID
		evict := func() {
			t.Helper()
			if err := m.current().router.Evict(t.Context(), key("web"), plan.Eviction{
				UID: uid, Message: "The node was low on resource: memory. ", Grace: time.Minute,
				Shortage:         plan.Shortage{Signal: "memory.available", Available: "50Mi", Threshold: "100Mi"},
				EventAnnotations: map[string]string{"starved_resource": "memory"},
			}); err != nil {
				t.Fatal(err)
			}
			m.settle()
		}
		m.takeEvents()
		evict()
		evict()
		r := m.report("web")
		if s := r.Pod.Status; s.Phase != v1.PodRunning || s.Reason != "Evicted" || !hasDisruption(s.Conditions) {
			t.Errorf("status of the evicted pod: got %+v, want Running with reason Evicted and a DisruptionTarget condition", s)
		}
		if e := r.TerminatingEviction; e == nil || e.Shortage.Signal != "memory.available" {
			t.Errorf("got eviction %+v in the report, want one because of memory.available", e)
		}
		m.mu.Lock()
		events := slices.Clone(m.events)
		m.mu.Unlock()
		var evictions []event.Event
		for _, e := range events {
			if e.Reason == plan.ReasonEvicted {
				evictions = append(evictions, e)
			}
		}
		if len(evictions) != 1 || evictions[0].Type != v1.EventTypeWarning || evictions[0].UID != uid || evictions[0].Annotations["starved_resource"] != "memory" {
			t.Errorf("got events %+v, want one warning event Evicted of the pod with its annotations", evictions)
		}
		m.advance(time.Minute)
		m.wantState()
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

// TestClusterFinished checks that a pod that is finished in the cluster is never started,
// and is stopped if it runs.
func TestClusterFinished(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		over := func(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodFailed, "Preempted" }
		m.start()
		m.setClusterPods(true, clusterPod("never", over), clusterPod("runs", nil))
		m.settle()
		m.wantState("runs 0 ready", "runs/app 0 running")
		m.setClusterPods(true, clusterPod("never", over), clusterPod("runs", over))
		m.advance(2 * time.Minute)
		m.wantState("runs 0 dead", "runs/app 0 exited 137")
		if s := m.report("runs").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempted" || s.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("status of the finished pod: got %+v, want Failed with reason Preempted and a terminated container", s)
		}
		m.restart()
		m.wantState("runs 0 dead", "runs/app 0 exited 137")
	})
}

// TestClusterResizes checks that a pod of a cluster is resized in place, although its containers are
// never restarted.
func TestClusterResizes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = useCluster
		sized := func(amount string) func(*v1.Pod) {
			return func(p *v1.Pod) {
				p.Spec.RestartPolicy = v1.RestartPolicyNever
				p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
			}
		}
		m.start()
		m.setClusterPods(true, clusterPod("web", sized("100m")))
		m.settle()
		m.setClusterPods(true, clusterPod("web", sized("200m")))
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if got := m.report("web").Pod.Status.ContainerStatuses[0].AllocatedResources.Cpu().String(); got != "200m" {
			t.Errorf("allocated CPU in the status: got %s, want 200m", got)
		}
	})
}

// TestClusterPreempts checks that other pods stop with their grace periods to make room for a
// critical pod, and that the critical pod is started afterwards.
func TestClusterPreempts(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { useCluster(o); o.Limits.MaxPods = 2 }
		one, two := clusterPod("one", nil), clusterPod("two", nil)
		critical := clusterPod("critical", func(p *v1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) })
		m.start()
		m.setClusterPods(true, one, two)
		m.settle()
		m.setClusterPods(true, one, two, critical)
		m.advance(10 * time.Second)
		m.wantState("one 0 ready", "one/app 0 running", "two 0 ready", "two/app 0 running")
		m.advance(time.Minute)
		m.wantState("critical 0 ready", "critical/app 0 running", "one 0 dead", "one/app 0 exited 137", "two 0 ready", "two/app 0 running")
		if s := m.report("one").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempting" || s.Message != "Preempted in order to admit critical pod" || !hasDisruption(s.Conditions) {
			t.Errorf("status of the preempted pod: got %+v, want Failed with reason Preempting and a DisruptionTarget condition", s)
		}
		if got := m.report("one").Finished.Resource; got != v1.ResourcePods {
			t.Errorf("resource of the preempted pod: got %q, want pods", got)
		}
	})
}

// TestStaticPreempts_SmallDiskChange checks a pod of a file that is larger than the disk of the node.
// After a small growth of the disk, the pod fits if it preempts another pod. podd must preempt that
// pod, although the growth alone changes the Answer of no verdict.
func TestStaticPreempts_SmallDiskChange(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		const gib = 1 << 30
		m.options = func(o *reconcile.Options) {
			useCluster(o)
			o.Limits.Allocatable = admission.Amounts{v1.ResourceEphemeralStorage: 100 * gib}
			o.RenderNode.Capacity.EphemeralStorage, o.RenderNode.Allocatable.EphemeralStorage = 100*gib, 100*gib
		}
		m.start()
		one := clusterPod("one", nil)
		request := v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("50Gi")}
		one.Object.Spec.Containers[0].Resources.Requests = request
		static := pod(t, "static", `containers: [{name: app, image: "web:1", resources: {requests: {ephemeral-storage: 105Gi}}}]`)
		api := manifest.Batch{Source: clusterSource, Kind: manifest.KindAPI, IsComplete: true, Pods: []*manifest.Pod{one}}
		api.Objects = manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}}
		set := merge.Batches([]manifest.Batch{{Source: source, Kind: manifest.KindFile, Pods: []*manifest.Pod{static}, IsComplete: true}, api})
		m.mu.Lock()
		m.set = set
		m.mu.Unlock()
		send(m.current().ctx, m.current().sets, set)
		m.settle()
		m.wantState("one 0 ready", "one/app 0 running")
		if err := m.current().router.SetDiskCapacity(t.Context(), 106*gib, 106*gib); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Minute)
		m.wantState("one 0 dead", "one/app 0 exited 137", "static 0 ready", "static/app 0 running")
	})
}

// TestStaticPreempts checks that a pod of a file starts on a full node, even before its cluster was
// read. The pod may run the API server of the cluster.
func TestStaticPreempts(t *testing.T) {
	full := func(o *reconcile.Options) { useCluster(o); o.Limits.MaxPods = 2 }
	one, two := clusterPod("one", nil), clusterPod("two", nil)
	setBoth := func(m *machine, static *manifest.Pod, seen bool) {
		api := manifest.Batch{Source: clusterSource, Kind: manifest.KindAPI, IsComplete: seen}
		if seen {
			api.Pods = []*manifest.Pod{one, two}
			api.Objects = manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}}
		}
		set := merge.Batches([]manifest.Batch{{Source: source, Kind: manifest.KindFile, Pods: []*manifest.Pod{static}, IsComplete: true}, api})
		m.mu.Lock()
		m.set = set
		m.mu.Unlock()
		if d := m.current(); d.ctx.Err() == nil {
			send(d.ctx, d.sets, set)
		}
	}
	t.Run("seen", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = full
			m.start()
			m.setClusterPods(true, one, two)
			m.settle()
			setBoth(m, pod(t, "static", web), true)
			m.advance(time.Minute)
			m.wantState("one 0 dead", "one/app 0 exited 137", "static 0 ready", "static/app 0 running", "two 0 ready", "two/app 0 running")
			if s := m.report("one").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "Preempting" {
				t.Errorf("status of the preempted pod: got %+v, want Failed with reason Preempting", s)
			}
		})
	})
	t.Run("not seen", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.options = full
			m.start()
			m.setClusterPods(true, one, two)
			m.settle()
			m.kill()
			setBoth(m, pod(t, "static", web), false)
			m.start()
			m.settle()
			all := []string{"one 0 ready", "one/app 0 running", "static 0 ready", "static/app 0 running", "two 0 ready", "two/app 0 running"}
			m.wantState(all...)
			setBoth(m, pod(t, "static", web), true)
			m.advance(time.Minute)
			m.wantState(all...)
		})
	})
}

// TestClusterAdmitsOnce checks that an admitted pod has its reservations even before it is started,
// so that no other pod is admitted with them.
func TestClusterAdmitsOnce(t *testing.T) {
	made := func(seconds int64) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000+seconds, 0)) }
	}
	for range 20 {
		run(t, func(t *testing.T, m *machine) {
			m.options = func(o *reconcile.Options) { useCluster(o); o.Limits.MaxPods = 1 }
			m.start()
			m.setClusterPods(true)
			m.settle()
			younger := clusterPod("younger", made(9))
			m.setClusterPods(true, younger)
			m.setClusterPods(true, younger, clusterPod("older", made(1)))
			m.settle()
			m.wantState("younger 0 ready", "younger/app 0 running")
			if s := m.report("older").Pod.Status; s.Reason != "OutOfpods" {
				t.Errorf("status of the rejected pod: got %+v, want reason OutOfpods", s)
			}
		})
	}
}

// TestClusterRebooted checks a pod of which only the directory is left, as after a boot of the node.
// podd checks its admission again, as a kubelet does for all pods, and rejects it.
func TestClusterRebooted(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := clusterPod("web", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} })
		m.options = func(o *reconcile.Options) { useCluster(o); o.Limits.Features.Labels = map[string]string{"disk": "ssd"} }
		m.start()
		m.setClusterPods(true, web)
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		m.kill()
		for _, inc := range m.report("web").Observed {
			if err := m.RemovePodSandbox(t.Context(), inc.ID); err != nil {
				t.Fatal(err)
			}
		}
		if len(m.dirs()) != 1 {
			t.Fatalf("pod directories: got %v, want one", m.dirs())
		}
		m.options = useCluster
		m.start()
		m.advance(time.Minute)
		m.wantState()
		if s := m.report("web").Pod.Status; s.Phase != v1.PodFailed || s.Reason != "NodeAffinity" {
			t.Errorf("status after the restart: got %+v, want Failed with reason NodeAffinity", s)
		}
	})
}
