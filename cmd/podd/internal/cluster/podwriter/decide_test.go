package podwriter

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/mirror"
	"podd/server"
)

// TestDecide checks the rule and the request that decideRequest returns, with at least one case for
// each rule.
func TestDecide(t *testing.T) {
	static := clustertest.NewStaticPod(t, clustertest.WebManifest)
	static.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}
	edited := clustertest.NewStaticPod(t, clustertest.WebManifest+"  hostNetwork: true\n")
	// shown returns the PodView of a pod that runs on the node, after some changes.
	shown := func(p *v1.Pod, change ...func(*server.PodView)) *server.PodView {
		v := &server.PodView{Pod: p.DeepCopy(), Rule: "rest", Exists: true}
		for _, f := range change {
			f(v)
		}
		return v
	}
	deleting := func(v *server.PodView) { v.Pod.DeletionTimestamp = new(metav1.Now()) }
	phase := func(p v1.PodPhase) func(*server.PodView) {
		return func(v *server.PodView) { v.Pod.Status.Phase = p; v.Pod.Status.ContainerStatuses = nil }
	}
	undecided := func(v *server.PodView) { v.Rule = "" }
	withoutUID := func(v *server.PodView) { v.Pod.UID = "" }
	stoppingOld := func(v *server.PodView) { v.OutdatedStoppingContainers = 1 }

	node, mirror := clustertest.NewNodeWithUID("u1"), mirror.New(static, clustertest.NewNodeWithUID("u1"))
	mirror.UID, mirror.Status = "m", static.Status
	// with returns a copy of a pod after some changes.
	with := func(p *v1.Pod, change ...func(*v1.Pod)) *v1.Pod {
		p = p.DeepCopy()
		for _, f := range change {
			f(p)
		}
		return p
	}
	deleted := func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	noGrace := func(p *v1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) }
	differs := func(p *v1.Pod) { p.Status.ContainerStatuses = nil }
	ended := func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }

	api := clustertest.NewBoundPod("app", "1")
	api.UID, api.Status = "a", v1.PodStatus{Phase: v1.PodRunning}

	for _, c := range []struct {
		name  string
		facts podFacts
		rule  string
		want  verb
	}{
		{"view not complete", podFacts{local: shown(static), node: node}, "view incomplete", verbNone},
		{"no decision yet", podFacts{isViewComplete: true, local: shown(static, undecided), node: node}, "view incomplete", verbNone},
		{"no manifest, with a mirror pod", podFacts{isViewComplete: true, areSourcesRead: true, local: shown(static, withoutUID), remote: mirror, node: node}, "view incomplete", verbNone},

		{"new static pod", podFacts{isViewComplete: true, local: shown(static), node: node}, "no mirror pod", verbCreate},
		{"new static pod, no Node", podFacts{isViewComplete: true, local: shown(static)}, "no node", verbNone},
		{"new static pod, Node being deleted", podFacts{isViewComplete: true, local: shown(static), node: func() *v1.Node {
			n := clustertest.NewNodeWithUID("u1")
			n.DeletionTimestamp = new(metav1.Now())
			return n
		}()}, "no node", verbNone},
		{"ended static pod without a mirror pod", podFacts{isViewComplete: true, local: shown(static, phase(v1.PodSucceeded)), node: node}, "terminated without a mirror pod", verbNone},
		{"static pod being deleted, without a mirror pod", podFacts{isViewComplete: true, local: shown(static, deleting), node: node}, "terminated without a mirror pod", verbNone},
		{"pod of podd's own API", podFacts{isViewComplete: true, local: shown(api), node: node}, "not in the cluster", verbNone},

		{"static pod with a mirror pod", podFacts{isViewComplete: true, local: shown(static), remote: mirror, node: node}, "mirror pod", verbNone},
		{"static pod with a mirror pod, other status", podFacts{isViewComplete: true, local: shown(static), remote: with(mirror, differs), node: node}, "mirror pod", verbPatch},
		{"static pod being deleted, mirror pod with another status", podFacts{isViewComplete: true, local: shown(static, deleting), remote: with(mirror, differs), node: node}, "mirror pod", verbPatch},
		{"mirror pod of another version", podFacts{isViewComplete: true, local: shown(edited), remote: mirror, node: node}, "outdated mirror pod", verbDelete},
		{"mirror pod of a version that is being stopped", podFacts{isViewComplete: true, local: shown(edited, stoppingOld), remote: mirror, node: node}, "mirror pod of a version that is being stopped", verbNone},
		{"deleted mirror pod of a version that is being stopped", podFacts{isViewComplete: true, local: shown(edited, stoppingOld), remote: with(mirror, deleted), node: node}, "outdated mirror pod", verbDelete},
		{"mirror pod of the version in effect, another one is being stopped", podFacts{isViewComplete: true, local: shown(static, stoppingOld), remote: mirror, node: node}, "mirror pod", verbNone},
		{"mirror pod of another Node", podFacts{isViewComplete: true, local: shown(static), remote: mirror, node: clustertest.NewNodeWithUID("u2")}, "outdated mirror pod", verbDelete},
		{"mirror pod, no Node", podFacts{isViewComplete: true, local: shown(static), remote: mirror}, "mirror pod", verbNone},
		{"mirror pod being deleted", podFacts{isViewComplete: true, local: shown(static), remote: with(mirror, deleted), node: node}, "outdated mirror pod", verbDelete},
		{"mirror pod with finalizers", podFacts{isViewComplete: true, local: shown(static), remote: with(mirror, deleted, noGrace), node: node}, "mirror pod with finalizers", verbNone},
		{"mirror pod of an earlier run", podFacts{isViewComplete: true, local: shown(static), remote: with(mirror, ended), node: node}, "mirror pod of an earlier run", verbDelete},
		{"mirror pod without a static pod", podFacts{isViewComplete: true, areSourcesRead: true, remote: mirror, node: node}, "orphaned mirror pod", verbDelete},
		{"mirror pod of a removed static pod", podFacts{isViewComplete: true, remote: mirror, lastLocal: static, node: node}, "orphaned mirror pod", verbDelete},
		{"mirror pod, sources not read", podFacts{isViewComplete: true, remote: mirror, node: node}, "mirror pod of an unread source", verbNone},
		{"another pod with the name of the mirror pod", podFacts{isViewComplete: true, local: shown(static), remote: with(api), node: node}, "name taken", verbNone},

		{"bound pod running", podFacts{isViewComplete: true, local: shown(api), remote: api}, "on this node", verbNone},
		{"copy of the static pod that is not a mirror pod", podFacts{isViewComplete: true, local: shown(static), remote: with(static, differs)}, "name taken", verbNone},
		{"bound pod failed", podFacts{isViewComplete: true, local: shown(api, phase(v1.PodFailed)), remote: api}, "on this node", verbPatch},
		{"bound pod running, but ended in the API server", podFacts{isViewComplete: true, local: shown(api), remote: with(api, ended)}, "status regression", verbNone},
		{"bound pod not on this node yet", podFacts{isViewComplete: true, areSourcesRead: true, remote: api}, "not on this node yet", verbNone},
		{"bound pod, another UID on this node", podFacts{isViewComplete: true, local: shown(api), remote: with(api, func(p *v1.Pod) { p.UID = "b" })}, "not on this node yet", verbNone},
		{"deleted, running", podFacts{isViewComplete: true, local: shown(api), remote: with(api, deleted)}, "on this node", verbNone},
		{"deleted, stopping", podFacts{isViewComplete: true, local: shown(api, deleting), remote: with(api, deleted)}, "on this node", verbNone},
		{"deleted, not on this node yet", podFacts{isViewComplete: true, remote: with(api, deleted)}, "not on this node yet", verbNone},
		{"deleted, stopped", podFacts{isViewComplete: true, remote: with(api, deleted), lastLocal: api, isRemoved: true}, "removed", verbPatch},
		{"deleted, stopped and reported", podFacts{isViewComplete: true, remote: with(api, deleted, ended), isRemoved: true}, "removed and reported", verbDelete},
		{"deleted, finalizers", podFacts{isViewComplete: true, remote: with(api, deleted, ended, noGrace), isRemoved: true}, "removed, with finalizers", verbNone},
		{"deleted, finalizers, not reported", podFacts{isViewComplete: true, remote: with(api, deleted, noGrace), isRemoved: true}, "removed", verbPatch},
		{"deleted, stopped, static pod with its name", podFacts{isViewComplete: true, local: shown(static), remote: with(api, deleted), isRemoved: true}, "removed", verbPatch},
		{"deleted, stopped and reported, static pod with its name", podFacts{isViewComplete: true, local: shown(static), remote: with(api, deleted, ended), isRemoved: true}, "removed and reported", verbDelete},
		{"deleted, another pod on this node", podFacts{isViewComplete: true, local: shown(api), remote: with(api, deleted, ended, func(p *v1.Pod) { p.UID = "b" }), isRemoved: true}, "removed and reported", verbDelete},
	} {
		c.facts.now = metav1.NewTime(clustertest.Noon)
		s, rule, err := decideRequest(&c.facts)
		if err != nil || rule != c.rule || s.verb != c.want {
			t.Errorf("%s: got rule %q, verb %q, body %s, error %v; want rule %q, verb %q", c.name, rule, s.verb, s.body, err, c.rule, c.want)
		}
	}
}

// drawFacts returns random facts about a pod. A local static pod is a copy of static.
func drawFacts(t *rapid.T, static *v1.Pod) *podFacts {
	f := &podFacts{isViewComplete: true, areSourcesRead: rapid.Bool().Draw(t, "complete"), now: metav1.NewTime(clustertest.Noon)}
	if rapid.Bool().Draw(t, "node") {
		f.node = clustertest.NewNodeWithUID("u1")
	}
	if rapid.Bool().Draw(t, "remote") {
		f.remote = drawPod(t)
		if rapid.Bool().Draw(t, "mirror") {
			m := mirror.New(static, clustertest.NewNodeWithUID(types.UID(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "owner"))))
			m.UID, m.Status = "m", f.remote.Status
			f.remote = m
		}
		if rapid.Bool().Draw(t, "deleted") {
			f.remote.DeletionTimestamp = new(metav1.NewTime(clustertest.Noon))
		}
	}
	if rapid.Bool().Draw(t, "local") {
		p := static.DeepCopy()
		if rapid.Bool().Draw(t, "bound") {
			p = drawPod(t)
		}
		p.Status = drawStatus(t, v1.PodReady, v1.PodScheduled, v1.PodResizeInProgress)
		f.local = &server.PodView{Pod: p, Rule: "rule"}
	}
	f.isRemoved = (f.local == nil || f.isStatic()) && f.remote != nil && !mirror.IsMirror(f.remote) && f.remote.DeletionTimestamp != nil && rapid.Bool().Draw(t, "ended")
	return f
}

// TestDecide_Fixpoint checks for random facts that decideRequest returns no further request after at
// most four requests.
func TestDecide_Fixpoint(t *testing.T) {
	static := clustertest.NewStaticPod(t, clustertest.WebManifest)
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, static)
		var applied []string
		for {
			s, rule, err := decideRequest(f)
			if err != nil {
				t.Fatal(err)
			}
			if s.verb == verbNone {
				return
			}
			if applied = append(applied, rule); len(applied) > 4 {
				t.Fatalf("got requests of the rules %q, want at most 4 requests", applied)
			}
			switch s.verb {
			case verbCreate:
				f.remote = s.pod
				f.remote.UID, f.remote.Status = "made", v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
			case verbPatch:
				f.remote = applyPatch(t, f.remote, s.body)
			case verbDelete:
				f.remote, f.isRemoved = nil, false
			}
		}
	})
}
