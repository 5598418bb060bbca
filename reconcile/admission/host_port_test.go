package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/plan"
)

// TestAdmission_HostPorts checks the admission of pod b, whose ports are in wants. Pod a runs with
// the ports in holds, and an edit replaces it with a version that has the ports in retained.
func TestAdmission_HostPorts(t *testing.T) {
	one := func(spec string) *manifest.Pod {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + spec + "}\n"
		f := decode.File([]byte(text), decode.Options{Path: "f", NodeName: "n"})
		if f.HasRefusedDocument() || len(f.Pods) != 1 {
			t.Fatalf("%s: %v", text, f.Problems)
		}
		return f.Pods[0]
	}
	ports := func(s string) string { return "containers: [{name: c, image: i, ports: [" + s + "]}]" }
	init := func(s string) string {
		return ports("") + ", initContainers: [{name: i, image: i, " + s + "ports: [{containerPort: 80, hostPort: 80}]}]"
	}
	const local, other = "{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}", "{containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}"
	const every = "{containerPort: 80, hostPort: 80}"
	tests := map[string]struct {
		holds, retained, wants string
		want                   plan.Answer
	}{
		"first of two host addresses": {ports(local + "," + other), ports(local + "," + other), ports(local), plan.Reject},
		"second of two addresses":     {ports(local + "," + other), ports(local + "," + other), ports(other), plan.Reject},
		"another address":             {ports(local), ports(local), ports(other), plan.Admit},
		"every address":               {ports(local), ports(local), ports(every), plan.Reject},
		"edit releases the port":      {ports(local), ports(other), ports(local), plan.Wait},
		"edit keeps another address":  {ports(every), ports(local), ports(other), plan.Wait},
		"edit keeps this address":     {ports(every), ports(local), ports(local), plan.Reject},
		"port of an init container":   {init(""), init(""), ports(every), plan.Admit},
		"port for an init container":  {ports(every), ports(every), init(""), plan.Admit},
		"port of a sidecar":           {init("restartPolicy: Always, "), init("restartPolicy: Always, "), ports(every), plan.Reject},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
			kept, wanted := one(tt.retained), one(tt.wants)
			kept.UID, wanted.UID = "a", "b"
			got := admitAll([]candidate{
				{Key: a, Desired: kept, ReservedVersions: []*manifest.Pod{one(tt.holds)}, Active: true, Releasing: true},
				{Key: b, Desired: wanted},
			}, Limits{})[b]
			if got.Answer != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestAdmission_RenamedNode checks a static pod on a node that was renamed. The pod waits until the
// pod with the earlier node name, and the directory of that pod, are removed.
func TestAdmission_RenamedNode(t *testing.T) {
	f := decode.File([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"), decode.Options{Path: "f", NodeName: "b"})
	pod := f.Pods[0]
	before := types.NamespacedName{Namespace: "default", Name: "p-a"}
	for name, c := range map[string]struct {
		other candidate
		want  plan.Answer
	}{
		"earlier name runs":                    {candidate{Key: before, Active: true, UIDs: []types.UID{"u"}}, plan.Wait},
		"directory of the earlier name exists": {candidate{Key: before, UIDs: []types.UID{"u"}}, plan.Wait},
		"nothing exists":                       {candidate{Key: before}, plan.Admit},
		"another pod has the earlier name":     {candidate{Key: before, Desired: &manifest.Pod{Key: before, UID: "other", Object: pod.Object}, Active: true}, plan.Admit},
		"pod with another name is removed":     {candidate{Key: types.NamespacedName{Namespace: "default", Name: "q-a"}, Active: true}, plan.Admit},
	} {
		got := admitAll([]candidate{c.other, {Key: pod.Key, Desired: pod, EarlierNames: []types.NamespacedName{{Namespace: "default", Name: "p-0"}, before}}}, Limits{})[pod.Key]
		if got.Answer != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
