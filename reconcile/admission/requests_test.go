package admission

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/plan"
)

// asking returns a pod that requests cpu and memory.
func asking(t *testing.T, name, cpu, memory string) *manifest.Pod {
	t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: %q, memory: %q}}}]}\n", name, cpu, memory)
	f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n"})
	if f.HasRefusedDocument() || len(f.Pods) != 1 {
		t.Fatalf("%s: %v", text, f.Problems)
	}
	return f.Pods[0]
}

// TestAmounts checks the admission of pod b on a node with 1 CPU and 1 GiB of memory that also has
// pod a.
func TestAmounts(t *testing.T) {
	small, half, big, fat := asking(t, "s", "100m", "1Mi"), asking(t, "h", "500m", "1Mi"), asking(t, "b", "800m", "1Mi"), asking(t, "f", "1m", "1Gi")
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	claim := func(key types.NamespacedName, wants *manifest.Pod, holds ...*manifest.Pod) candidate {
		return candidate{Key: key, Desired: wants, ReservedVersions: holds, Active: len(holds) > 0, UIDs: []types.UID{types.UID(key.Name)}}
	}
	yields := func(c candidate) candidate { c.Releasing = true; return c }
	tests := map[string]struct {
		other, asks candidate
		want        plan.Answer
	}{
		"both fit":                                     {claim(a, half, half), claim(b, half), plan.Admit},
		"too much cpu":                                 {claim(a, half, half), claim(b, big), plan.Reject},
		"too much memory":                              {claim(a, half, half), claim(b, fat), plan.Reject},
		"the first of two new ones":                    {claim(a, big), claim(b, half), plan.Reject},
		"other pod is being deleted":                   {claim(a, nil, big), claim(b, half), plan.Wait},
		"other pod gets smaller":                       {yields(claim(a, small, big)), claim(b, half), plan.Wait},
		"smaller edit of the other pod waits":          {claim(a, small, big), claim(b, half), plan.Reject},
		"exceeds the node, other pod is being deleted": {claim(a, nil, big), claim(b, asking(t, "x", "2", "1Mi")), plan.Reject},
		"running and unchanged":                        {claim(a, big, big), claim(b, half, half), plan.Admit},
		"running and smaller":                          {claim(a, big, big), claim(b, small, half), plan.Admit},
		"running and larger":                           {claim(a, half, half), claim(b, big, half), plan.Reject},
		"present without a running version":            {claim(a, big, big), candidate{Key: b, Desired: half, Active: true}, plan.Reject},
		"memory exceeds any node":                      {claim(a, small, small), claim(b, asking(t, "x", "1m", "8Ei")), plan.Reject},
		"cpu exceeds any node":                         {claim(a, small, small), claim(b, asking(t, "x", "18446744073709552", "1Mi")), plan.Reject},
		"cpu and memory overflow":                      {claim(a, small, small), claim(b, asking(t, "x", "100E", "100Ei")), plan.Reject},
		"other pod has finished":                       {candidate{Key: a, Desired: big, Finished: true}, claim(b, half), plan.Admit},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := admitAll([]candidate{tt.other, tt.asks}, Limits{Allocatable: Amounts{"cpu": 1000, "memory": 1 << 30}})[b]
			if got.Answer != tt.want {
				t.Errorf("got %+v, want %v", got, tt.want)
			}
		})
	}
	got := admitAll([]candidate{claim(a, half, half), claim(b, big)}, Limits{Allocatable: Amounts{"cpu": 1000}})[b]
	disk := asking(t, "d", "1m", "1Mi")
	disk.Object.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("2Gi")
	full := admitAll([]candidate{claim(a, half, half), claim(b, disk)}, Limits{Allocatable: Amounts{"ephemeral-storage": 1 << 30}})[b]
	if want := (plan.Verdict{Answer: plan.Reject, Reason: "OutOfephemeral-storage", Insufficient: "ephemeral-storage", Message: "the pod requests 2Gi of ephemeral-storage; the node has 1Gi for pods, of which other pods request 0", NeverFits: true}); full != want {
		t.Errorf("pod that exceeds the disk of the node: got %+v, want %+v", full, want)
	}
	want := plan.Verdict{Answer: plan.Reject, Reason: "OutOfcpu", Insufficient: "cpu", Message: "the pod requests 800m of cpu; the node has 1 for pods, of which other pods request 500m", BlockedByPods: true}
	if got != want {
		t.Errorf("pod that exceeds the unreserved CPU: got %+v, want %+v", got, want)
	}
}
