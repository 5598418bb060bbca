package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/server"
)

// TestDecide has a line for each rule, and those that look alike.
func TestDecide(t *testing.T) {
	static := staticPod(t, webManifest)
	static.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}
	edited := staticPod(t, webManifest+"  hostNetwork: true\n")
	shown := func(p *v1.Pod, change ...func(*server.PodView)) *server.PodView {
		v := &server.PodView{Pod: p.DeepCopy(), Rule: "rests", Exists: true}
		for _, f := range change {
			f(v)
		}
		return v
	}
	leaving := func(v *server.PodView) { v.Pod.DeletionTimestamp = new(metav1.Now()) }
	phase := func(p v1.PodPhase) func(*server.PodView) {
		return func(v *server.PodView) { v.Pod.Status.Phase = p; v.Pod.Status.ContainerStatuses = nil }
	}
	unspoken := func(v *server.PodView) { v.Rule = "" }
	nameless := func(v *server.PodView) { v.Pod.UID = "" }

	node, mirror := theNode("u1"), newMirror(static, theNode("u1"))
	mirror.UID, mirror.Status = "m", static.Status
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

	api := bound("app", "1")
	api.UID, api.Status = "a", v1.PodStatus{Phase: v1.PodRunning}

	for _, c := range []struct {
		name string
		f    facts
		rule string
		want verb
	}{
		{"podd does not know yet what runs", facts{mine: shown(static), node: node}, "not known yet", nothing},
		{"no worker has spoken", facts{isWhole: true, mine: shown(static, unspoken), node: node}, "not known yet", nothing},
		{"no manifest is known, with a mirror", facts{isWhole: true, complete: true, mine: shown(static, nameless), seen: mirror, node: node}, "not known yet", nothing},

		{"new", facts{isWhole: true, mine: shown(static), node: node}, "no mirror", create},
		{"new, no node yet", facts{isWhole: true, mine: shown(static)}, "no node", nothing},
		{"new, the node goes", facts{isWhole: true, mine: shown(static), node: func() *v1.Node { n := theNode("u1"); n.DeletionTimestamp = new(metav1.Now()); return n }()}, "no node", nothing},
		{"ended", facts{isWhole: true, mine: shown(static, phase(v1.PodSucceeded)), node: node}, "ended without mirror", nothing},
		{"leaves", facts{isWhole: true, mine: shown(static, leaving), node: node}, "ended without mirror", nothing},
		{"of podd's API", facts{isWhole: true, mine: shown(api), node: node}, "not the cluster's", nothing},

		{"mirrored", facts{isWhole: true, mine: shown(static), seen: mirror, node: node}, "mirror", nothing},
		{"mirrored, other status", facts{isWhole: true, mine: shown(static), seen: with(mirror, differs), node: node}, "mirror", patches},
		{"leaves, other status", facts{isWhole: true, mine: shown(static, leaving), seen: with(mirror, differs), node: node}, "mirror", patches},
		{"mirror of another version", facts{isWhole: true, mine: shown(edited), seen: mirror, node: node}, "stale mirror", remove},
		{"mirror of another node", facts{isWhole: true, mine: shown(static), seen: mirror, node: theNode("u2")}, "stale mirror", remove},
		{"mirror, no node", facts{isWhole: true, mine: shown(static), seen: mirror}, "mirror", nothing},
		{"mirror being deleted", facts{isWhole: true, mine: shown(static), seen: with(mirror, deleted), node: node}, "stale mirror", remove},
		{"mirror that finalizers hold", facts{isWhole: true, mine: shown(static), seen: with(mirror, deleted, noGrace), node: node}, "mirror let go", nothing},
		{"mirror of an earlier run", facts{isWhole: true, mine: shown(static), seen: with(mirror, ended), node: node}, "mirror of the past", remove},
		{"mirror of none", facts{isWhole: true, complete: true, seen: mirror, node: node}, "mirror of none", remove},
		{"mirror of one that was here", facts{isWhole: true, seen: mirror, last: static, node: node}, "mirror of none", remove},
		{"mirror, sources not read", facts{isWhole: true, seen: mirror, node: node}, "mirror of one to come", nothing},
		{"name taken", facts{isWhole: true, mine: shown(static), seen: with(api), node: node}, "name taken", nothing},

		{"runs", facts{isWhole: true, mine: shown(api), seen: api}, "here", nothing},
		{"runs, other status", facts{isWhole: true, mine: shown(static), seen: with(static, differs)}, "name taken", nothing},
		{"fails", facts{isWhole: true, mine: shown(api, phase(v1.PodFailed)), seen: api}, "here", patches},
		{"has ended for the cluster", facts{isWhole: true, mine: shown(api), seen: with(api, ended)}, "taken back", nothing},
		{"to come", facts{isWhole: true, complete: true, seen: api}, "to come", nothing},
		{"another uid", facts{isWhole: true, mine: shown(api), seen: with(api, func(p *v1.Pod) { p.UID = "b" })}, "to come", nothing},
		{"deleted, runs", facts{isWhole: true, mine: shown(api), seen: with(api, deleted)}, "here", nothing},
		{"deleted, leaves", facts{isWhole: true, mine: shown(api, leaving), seen: with(api, deleted)}, "here", nothing},
		{"deleted, to come", facts{isWhole: true, seen: with(api, deleted)}, "to come", nothing},
		{"deleted, gone", facts{isWhole: true, seen: with(api, deleted), last: api, ended: true}, "gone", patches},
		{"deleted, gone and told", facts{isWhole: true, seen: with(api, deleted, ended), ended: true}, "gone and told", remove},
		{"deleted, finalizers hold it", facts{isWhole: true, seen: with(api, deleted, ended, noGrace), ended: true}, "let go", nothing},
		{"deleted, finalizers hold it, not told", facts{isWhole: true, seen: with(api, deleted, noGrace), ended: true}, "gone", patches},
		{"deleted, gone, a static pod has its name", facts{isWhole: true, mine: shown(static), seen: with(api, deleted), ended: true}, "gone", patches},
		{"deleted, gone and told, a static pod has its name", facts{isWhole: true, mine: shown(static), seen: with(api, deleted, ended), ended: true}, "gone and told", remove},
		{"deleted, another is here", facts{isWhole: true, mine: shown(api), seen: with(api, deleted, ended, func(p *v1.Pod) { p.UID = "b" }), ended: true}, "gone and told", remove},
	} {
		c.f.now = metav1.NewTime(noon)
		s, rule, err := decide(&c.f)
		if err != nil || rule != c.rule || s.verb != c.want {
			t.Errorf("%s: got %s: %q %s, %v; want %s: %q", c.name, rule, s.verb, s.body, err, c.rule, c.want)
		}
	}
}

// drawFacts has a static pod or one of the cluster, or none, here and there.
func drawFacts(t *rapid.T, static *v1.Pod) *facts {
	f := &facts{isWhole: true, complete: rapid.Bool().Draw(t, "complete"), now: metav1.NewTime(noon)}
	if rapid.Bool().Draw(t, "node") {
		f.node = theNode("u1")
	}
	if rapid.Bool().Draw(t, "seen") {
		f.seen = drawCluster(t)
		if rapid.Bool().Draw(t, "mirror") {
			m := newMirror(static, theNode(types.UID(rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "owner"))))
			m.UID, m.Status = "m", f.seen.Status
			f.seen = m
		}
		if rapid.Bool().Draw(t, "deleted") {
			f.seen.DeletionTimestamp = new(metav1.NewTime(noon))
		}
	}
	if rapid.Bool().Draw(t, "here") {
		p := static.DeepCopy()
		if rapid.Bool().Draw(t, "cluster's") {
			p = drawCluster(t)
		}
		p.Status = drawStatus(t, v1.PodReady, v1.PodScheduled, v1.PodResizeInProgress)
		f.mine = &server.PodView{Pod: p, Rule: "rule"}
	}
	f.ended = (f.mine == nil || f.static()) && f.seen != nil && !isMirror(f.seen) && f.seen.DeletionTimestamp != nil && rapid.Bool().Draw(t, "ended")
	return f
}

// TestDecideFixpoint: whatever the cluster has, after a few steps nothing is to be
// done any more.
func TestDecideFixpoint(t *testing.T) {
	static := staticPod(t, webManifest)
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t, static)
		var did []string
		for {
			s, rule, err := decide(f)
			if err != nil {
				t.Fatal(err)
			}
			if s.verb == nothing {
				return
			}
			if did = append(did, rule); len(did) > 4 {
				t.Fatalf("did %q", did)
			}
			switch s.verb {
			case create:
				f.seen = s.pod
				f.seen.UID, f.seen.Status = "made", v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}
			case patches:
				f.seen = patched(t, f.seen, s.body)
			case remove:
				f.seen, f.ended = nil, false
			}
		}
	})
}
