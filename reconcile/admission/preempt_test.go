package admission

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/plan"
)

// TestPreempt_StaticPod checks which pods a pod of a file or URL preempts. As in a kubelet, it
// preempts pods of the cluster at any priority, but no other pod of a file or URL.
func TestPreempt_StaticPod(t *testing.T) {
	static := func(name, spec, cpu string) *manifest.Pod {
		ports := ""
		if name == "new" {
			ports = "ports: [{containerPort: 80, hostPort: 80}],"
		}
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s containers: [{name: c, image: i, %s resources: {requests: {cpu: %q}}}]}\n", name, spec, ports, cpu)
		f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n", Kind: manifest.KindFile})
		if f.HasRefusedDocument() || len(f.Pods) != 1 {
			t.Fatalf("%s: %v", text, f.Problems)
		}
		return f.Pods[0]
	}
	runs := func(p *manifest.Pod) candidate {
		return candidate{Key: p.Key, Desired: p, ReservedVersions: []*manifest.Pod{p}, Active: true}
	}
	bound := func(name, cpu string, more ...func(*v1.Pod)) candidate {
		return runs(clusterPod(name, 0, both(append(more, requesting("cpu", cpu))...)))
	}
	critical := func(p *v1.Pod) { p.Spec.Priority = new(int32(2_000_000_000)) }
	unconfirmed := func(c candidate) candidate { c.Desired, c.Unconfirmed = nil, true; return c }
	fresh := func(spec, cpu string) candidate {
		p := static("new", spec, cpu)
		return candidate{Key: p.Key, Desired: p}
	}
	edited := func(before, after string) candidate {
		c, p := runs(static("new", "", before)), static("new", "restartPolicy: Never,", after)
		c.Desired, c.Releasing = p, true
		return c
	}
	resized := func(before, after string) candidate {
		c := runs(static("new", "", before))
		c.Desired = static("new", "", after)
		if was := c.ReservedVersions[0]; was.UID != c.Desired.UID || was.Hash != c.Desired.Hash {
			t.Fatal("the resized pod is another version")
		}
		return c
	}
	holding := func(name v1.ResourceName, n int64, c candidate) candidate {
		for _, p := range append(slices.Clone(c.ReservedVersions), c.Desired) {
			for i := range p.Object.Spec.Containers {
				p.Object.Spec.Containers[i].Resources.Requests[name] = *resource.NewQuantity(n, resource.DecimalSI)
			}
		}
		return c
	}
	limits := Limits{MaxPods: 3, Allocatable: Amounts{v1.ResourceCPU: 1000, v1.ResourceMemory: 1000}}
	for _, test := range []struct {
		name      string
		claims    candidate
		others    []candidate
		preempted string
		answer    plan.Answer
		reason    string
	}{
		{"enough room", fresh("", "600m"), []candidate{bound("a", "300m")}, "", plan.Admit, ""},
		{"one pod suffices", fresh("", "600m"), []candidate{bound("a", "300m"), bound("b", "500m")}, "b", plan.Wait, "Preempting"},
		{"too many pods", fresh("", "1m"), []candidate{bound("a", "2m"), bound("b", "1m"), bound("c", "3m")}, "b", plan.Wait, "Preempting"},
		{"exceeds the node", fresh("", "2"), []candidate{bound("a", "500m")}, "", plan.Reject, "OutOfcpu"},
		{"other pod of a file", fresh("", "600m"), []candidate{runs(static("a", "", "500m"))}, "", plan.Reject, "OutOfcpu"},
		{"other pod is critical", fresh("", "600m"), []candidate{bound("a", "500m", critical)}, "", plan.Reject, "OutOfcpu"},
		{"other pod is less critical", fresh("priorityClassName: system-node-critical,", "600m"), []candidate{bound("a", "500m", critical)}, "a", plan.Wait, "Preempting"},
		{"host port conflict", fresh("", "600m"), []candidate{bound("a", "500m", withHostPort)}, "", plan.Reject, "HostPortConflict"},
		{"device plugin not registered", holding(gpu, 1, fresh("", "1m")), []candidate{bound("a", "2m"), bound("b", "1m"), bound("c", "3m")}, "", plan.Wait, "UnexpectedAdmissionError"},
		{"device plugin not registered, other pods unconfirmed", holding(gpu, 1, fresh("", "1m")), []candidate{unconfirmed(bound("a", "1m")), unconfirmed(bound("b", "1m")), unconfirmed(bound("c", "1m"))}, "", plan.Wait, "UnexpectedAdmissionError"},
		{"edit, earlier version retained running", edited("300m", "600m"), []candidate{bound("a", "600m")}, "a", plan.Reject, "Preempting"},
		{"edit that has enough room", edited("500m", "600m"), []candidate{bound("a", "400m")}, "", plan.Admit, ""},
		{"edit that requests more of one resource", holding(v1.ResourceMemory, 10, edited("300m", "600m")), []candidate{bound("a", "600m"), holding(v1.ResourceMemory, 2000, bound("b", "1m"))}, "a", plan.Reject, "Preempting"},
		{"resize waits for room", resized("300m", "600m"), []candidate{bound("a", "600m")}, "", plan.Reject, "OutOfcpu"},
		{"other pod unconfirmed", fresh("", "600m"), []candidate{unconfirmed(bound("a", "600m"))}, "", plan.Admit, ""},
		{"too many unconfirmed pods", fresh("", "1m"), []candidate{unconfirmed(bound("a", "1m")), unconfirmed(bound("b", "1m")), unconfirmed(bound("c", "1m"))}, "", plan.Admit, ""},
		{"one other pod unconfirmed", fresh("", "600m"), []candidate{unconfirmed(bound("a", "300m")), bound("b", "500m")}, "b", plan.Wait, "Preempting"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := admitAll(append(test.others, test.claims), limits)[test.claims.Key]
			if got.Victim.Name != test.preempted || got.Answer != test.answer || got.Reason != test.reason {
				t.Errorf("got %+v, want preempted %q, answer %v, reason %q", got, test.preempted, test.answer, test.reason)
			}
		})
	}
}
