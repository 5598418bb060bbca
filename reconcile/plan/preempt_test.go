package plan

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/manifest/decode"
)

// A pod of a file or URL is critical whatever its priority, as with a kubelet: those
// of a cluster give way to it, and others of its kind never do.
func TestStaticPreempts(t *testing.T) {
	static := func(name, spec, cpu string) *manifest.Pod {
		ports := ""
		if name == "new" {
			ports = "ports: [{containerPort: 80, hostPort: 80}],"
		}
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s containers: [{name: c, image: i, %s resources: {requests: {cpu: %q}}}]}\n", name, spec, ports, cpu)
		f := decode.File([]byte(text), decode.Options{Path: "f", Node: "n", Kind: manifest.KindFile})
		if f.Refused() || len(f.Pods) != 1 {
			t.Fatalf("%s: %v", text, f.Problems)
		}
		return f.Pods[0]
	}
	runs := func(p *manifest.Pod) Claimant {
		return Claimant{Key: p.Key, Wants: p, Holds: []*manifest.Pod{p}, Present: true}
	}
	bound := func(name, cpu string, more ...func(*v1.Pod)) Claimant {
		return runs(clusterPod(name, 0, both(append(more, requesting("cpu", cpu))...)))
	}
	critical := func(p *v1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) }
	unseen := func(c Claimant) Claimant { c.Wants, c.Unseen = nil, true; return c }
	fresh := func(spec, cpu string) Claimant { p := static("new", spec, cpu); return Claimant{Key: p.Key, Wants: p} }
	edited := func(before, after string) Claimant {
		c, p := runs(static("new", "", before)), static("new", "restartPolicy: Never,", after)
		c.Wants, c.Yields = p, true
		return c
	}
	resized := func(before, after string) Claimant {
		c := runs(static("new", "", before))
		c.Wants = static("new", "", after)
		if was := c.Holds[0]; was.UID != c.Wants.UID || was.Hash != c.Wants.Hash {
			t.Fatal("a resize makes another version")
		}
		return c
	}
	holding := func(name v1.ResourceName, n int64, c Claimant) Claimant {
		for _, p := range append(slices.Clone(c.Holds), c.Wants) {
			for i := range p.Spec.Spec.Containers {
				p.Spec.Spec.Containers[i].Resources.Requests[name] = *resource.NewQuantity(n, resource.DecimalSI)
			}
		}
		return c
	}
	limits := Limits{MaxPods: 3, Amounts: Amounts{v1.ResourceCPU: 1000, v1.ResourceMemory: 1000}}
	for _, test := range []struct {
		note   string
		asks   Claimant
		others []Claimant
		gives  string // who gives way
		answer Answer
		reason string
	}{
		{"there is room", fresh("", "600m"), []Claimant{bound("a", "300m")}, "", Admit, ""},
		{"one gives way", fresh("", "600m"), []Claimant{bound("a", "300m"), bound("b", "500m")}, "b", Wait, "Preempting"},
		{"no place", fresh("", "1m"), []Claimant{bound("a", "2m"), bound("b", "1m"), bound("c", "3m")}, "b", Wait, "Preempting"},
		{"more than there is", fresh("", "2"), []Claimant{bound("a", "500m")}, "", Reject, "OutOfcpu"},
		{"others of its kind", fresh("", "600m"), []Claimant{runs(static("a", "", "500m"))}, "", Reject, "OutOfcpu"},
		{"a critical one", fresh("", "600m"), []Claimant{bound("a", "500m", critical)}, "", Reject, "OutOfcpu"},
		{"a less critical one", fresh("priorityClassName: system-node-critical,", "600m"), []Claimant{bound("a", "500m", critical)}, "a", Wait, "Preempting"},
		{"room would not help it", fresh("", "600m"), []Claimant{bound("a", "500m", onPort)}, "", Reject, "HostPortConflict"},
		{"nor what it asks a plugin for", holding(gpu, 1, fresh("", "1m")), []Claimant{bound("a", "2m"), bound("b", "1m"), bound("c", "3m")}, "", Reject, "UnexpectedAdmissionError"},
		{"nor that, unseen ones beside it", holding(gpu, 1, fresh("", "1m")), []Claimant{unseen(bound("a", "1m")), unseen(bound("b", "1m")), unseen(bound("c", "1m"))}, "", Reject, "UnexpectedAdmissionError"},
		{"an edit, and the earlier version runs on", edited("300m", "600m"), []Claimant{bound("a", "600m")}, "a", Reject, "Preempting"},
		{"an edit that has room beside the others", edited("500m", "600m"), []Claimant{bound("a", "400m")}, "", Admit, ""},
		{"an edit that asks for more of one thing", holding(v1.ResourceMemory, 10, edited("300m", "600m")), []Claimant{bound("a", "600m"), holding(v1.ResourceMemory, 2000, bound("b", "1m"))}, "a", Reject, "Preempting"},
		{"a resize waits for room", resized("300m", "600m"), []Claimant{bound("a", "600m")}, "", Reject, "OutOfcpu"},
		{"the cluster was not seen", fresh("", "600m"), []Claimant{unseen(bound("a", "600m"))}, "", Admit, ""},
		{"nor are there places", fresh("", "1m"), []Claimant{unseen(bound("a", "1m")), unseen(bound("b", "1m")), unseen(bound("c", "1m"))}, "", Admit, ""},
		{"one of the others was not seen", fresh("", "600m"), []Claimant{unseen(bound("a", "300m")), bound("b", "500m")}, "b", Wait, "Preempting"},
	} {
		t.Run(test.note, func(t *testing.T) {
			got := Admission(append(test.others, test.asks), limits)[test.asks.Key]
			if got.Preempts.Name != test.gives || got.Answer != test.answer || got.Reason != test.reason {
				t.Errorf("got %+v, want %q %v %q", got, test.gives, test.answer, test.reason)
			}
		})
	}
}
