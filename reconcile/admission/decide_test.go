package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/state"
	"podd/runtime"
)

const source = "/manifests"

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// podWith returns a pod of a file with a host port; 0 means no host port.
func podWith(name string, port int32) *manifest.Pod {
	spec := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "i:1"}}}}
	if port != 0 {
		spec.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: v1.ProtocolTCP}}
	}
	return &manifest.Pod{
		Key: keyOf(name), UID: types.UID(name), Hash: fmt.Sprintf("v1:%d", port), Object: spec,
		Origin: manifest.Origin{Kind: manifest.KindFile, Source: source},
	}
}

// running returns an observation of a running pod.
func running(p *manifest.Pod) *runtime.Pod {
	ports, err := json.Marshal(p.Object.Spec.Containers[0].Ports)
	if err != nil {
		panic(err)
	}
	return &runtime.Pod{Key: p.Key, Incarnations: []runtime.Incarnation{{
		Sandbox: runtime.Sandbox{ID: "s-" + string(p.UID), UID: p.UID, Ready: true, Annotations: map[string]string{
			runtime.AnnotationPodHash: p.Hash, manifest.AnnotationConfigSource: p.Origin.Kind,
		}},
		Containers: []runtime.Container{{
			ID: "c-" + string(p.UID), Name: "app", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationContainerPorts: string(ports)},
		}},
	}}}
}

// inputOf returns an Input with a snapshot of the runtime and a source, read completely, that
// contains these pods.
func inputOf(pods ...*manifest.Pod) Input {
	in := Input{
		Set:         &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}, CompleteSources: map[string]bool{source: true}},
		SourceKinds: map[string]string{source: manifest.KindFile}, Observed: map[types.NamespacedName]*runtime.Pod{},
		HasSnapshot: true, AllWorkersReported: true,
	}
	for _, p := range pods {
		in.Set.Pods[p.Key] = p
	}
	return in
}

// TestDecide checks the Order for the pod "web" in several states of the node.
func TestDecide(t *testing.T) {
	web, other := podWith("web", 80), podWith("other", 80)
	unread := inputOf()
	unread.Set.CompleteSources = nil
	foreign := running(web) // another agent's pod of a cluster
	foreign.Incarnations[0].Foreign = true
	foreign.Incarnations[0].Annotations[manifest.AnnotationConfigSource] = manifest.KindAPI
	shared := &runtime.Pod{Key: web.Key, Incarnations: slices.Concat(foreign.Incarnations, running(web).Incarnations)}
	for name, test := range map[string]struct {
		in          Input
		names       []NameFacts
		answer      plan.Answer // the verdict for the pod web
		sourcesRead bool
	}{
		"a free port":                       {inputOf(web), []NameFacts{{Key: web.Key}}, plan.Admit, false},
		"a port that another pod has":       {inputOf(web, other), []NameFacts{{Key: web.Key}, {Key: other.Key, Observed: running(other)}}, plan.Reject, false},
		"a port of a pod that is removed":   {inputOf(web), []NameFacts{{Key: web.Key}, {Key: other.Key, Observed: running(other)}}, plan.Wait, false},
		"not desired":                       {inputOf(), []NameFacts{{Key: web.Key, Observed: running(web)}}, plan.Admit, true},
		"not desired, an unread source":     {unread, []NameFacts{{Key: web.Key, Observed: running(web)}}, plan.Admit, false},
		"a foreign pod, an unread source":   {unread, []NameFacts{{Key: web.Key, Observed: foreign}}, plan.Admit, false},
		"also a foreign pod, unread source": {unread, []NameFacts{{Key: web.Key, Observed: shared}}, plan.Admit, false},
		"also a foreign pod, read sources":  {inputOf(), []NameFacts{{Key: web.Key, Observed: shared}}, plan.Admit, true},
		"not desired, nothing was observed": {func() Input { n := inputOf(); n.HasSnapshot = false; return n }(), []NameFacts{{Key: web.Key}}, plan.Admit, false},
		"all pods stop":                     {func() Input { n := inputOf(web); n.StopAllReason = "podd down"; return n }(), []NameFacts{{Key: web.Key}}, plan.Admit, true},
	} {
		t.Run(name, func(t *testing.T) {
			memories, requests := Decide(test.in, test.names, time.Now())
			o := memories[web.Key].Order
			if o.Verdict.Answer != test.answer || o.SourcesRead != test.sourcesRead || len(requests) > 0 {
				t.Errorf("got answer %d, sources read %t and %d requests; want %d, %t and none", o.Verdict.Answer, o.SourcesRead, len(requests), test.answer, test.sourcesRead)
			}
		})
	}
}

// TestPreempt_Edit checks that the version in force is evicted once, and that a version that
// replaces it with the same UID is also evicted.
func TestPreempt_Edit(t *testing.T) {
	version := func(hash string) *manifest.Pod {
		p := podWith("gives-way", 0)
		p.Hash = hash
		return p
	}
	name := NameFacts{Key: keyOf("gives-way")}
	for _, step := range []struct {
		name              string
		desired, reported *manifest.Pod
		want              string // hash of the evicted version; "" if there is none
	}{
		{"not reported", version("v1:a"), nil, "v1:a"},
		{"reported", version("v1:a"), version("v1:a"), ""},
		{"an edit waits", version("v1:b"), version("v1:a"), ""},
		{"the edit is in force", version("v1:b"), version("v1:b"), "v1:b"},
		{"again", version("v1:b"), version("v1:b"), ""},
	} {
		name.Order.Desired, name.Report = step.desired, nil
		if step.reported != nil {
			name.Report = &state.Report{Key: name.Key, Version: step.reported}
		}
		d := decider{names: []NameFacts{name}}
		memories := map[types.NamespacedName]Memory{name.Key: name.Memory}
		requests := d.preempt(memories, map[types.NamespacedName]plan.Verdict{keyOf("critical"): {Victim: name.Key}})
		name.Memory = memories[name.Key]
		got := ""
		if len(requests) > 0 {
			got = requests[0].Requests.Eviction.Hash
		}
		if got != step.want {
			t.Errorf("%s: evicted %q, want %q", step.name, got, step.want)
		}
	}
}

// TestDecide_Fixpoint checks that equal facts lead to equal Orders. Otherwise podd would post an Order
// to a worker although nothing changed. It also checks that Decide does not modify its arguments.
func TestDecide_Fixpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node, names := inputOf(), []NameFacts{}
		for _, name := range []string{"a", "b", "c", "d"} {
			port := rapid.SampledFrom([]int32{0, 80, 81})
			p, n := podWith(name, port.Draw(t, "port")), NameFacts{Key: keyOf(name)}
			if rapid.Bool().Draw(t, "desired") {
				node.Set.Pods[p.Key] = p
			}
			if rapid.Bool().Draw(t, "runs") {
				n.Observed = running(podWith(name, port.Draw(t, "runs with port")))
			}
			if rapid.Bool().Draw(t, "reported") {
				n.Report, n.HasReported = &state.Report{Key: p.Key, Version: node.Set.Pods[p.Key], ExistsOnNode: n.Observed != nil}, true
				if n.Observed != nil {
					n.Report.Observed = n.Observed.Incarnations
				}
			}
			node.Observed[n.Key] = n.Observed
			names = append(names, n)
		}
		node.HasSnapshot, node.StopAllReason = rapid.Bool().Draw(t, "snapshot"), rapid.SampledFrom([]string{"", "podd down"}).Draw(t, "reason")
		node.AllWorkersReported = node.HasSnapshot && rapid.Bool().Draw(t, "started")
		node.Limits.MaxPods = rapid.IntRange(0, 3).Draw(t, "max pods")
		now := time.Now()
		first, _ := Decide(node, names, now)
		again, _ := Decide(node, names, now)
		if !maps.EqualFunc(first, again, func(a, b Memory) bool { return a.Order == b.Order }) {
			t.Fatal("second Decide with the same arguments: got Orders that differ from those of the first Decide, want equal Orders")
		}
		for i := range names {
			names[i].Memory = first[names[i].Key]
		}
		// Decide twice, because the reservations of an admitted pod can change a verdict once.
		second, _ := Decide(node, names, now)
		for i := range names {
			names[i].Memory = second[names[i].Key]
		}
		third, requests := Decide(node, names, now)
		for key, m := range third {
			if m.Order != second[key].Order {
				t.Errorf("%s: third Decide: got order %+v, want %+v of the second Decide", key, m.Order, second[key].Order)
			}
		}
		if len(requests) > 0 {
			t.Errorf("third Decide: got requests %+v, want none", requests)
		}
	})
}
