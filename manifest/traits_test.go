package manifest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTraits_Copies checks that every function that copies a pod copies its traits. Otherwise a pod
// of an API server would run like a pod of a file after the first copy.
func TestTraits_Copies(t *testing.T) {
	p := &Pod{
		Key: types.NamespacedName{Namespace: "default", Name: "web"}, UID: "u1", Hash: "v1:h", Traits: KindTraits(KindAPI),
		Object:          &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}},
		ContainerHashes: map[string]ContainerHash{"app": {}},
	}
	p.Object.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	for name, got := range map[string]*Pod{
		"WithSizes":     p.WithSizes(map[string]string{"app": "cpu=2/ memory=/"}),
		"WithEphemeral": p.WithEphemeral([]v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}),
		"WithContent":   p.WithContentDigests("files", "env"),
		"withUID":       p.withUID("u2"),
	} {
		if got == p {
			t.Errorf("%s: got the same pod, want a changed copy", name)
		}
		if got.Traits != p.Traits {
			t.Errorf("%s: got traits %+v, want %+v", name, got.Traits, p.Traits)
		}
	}
}

// TestKindTraits_Zero checks that pods of files and URLs, and pods without a kind, have the zero
// value.
func TestKindTraits_Zero(t *testing.T) {
	for _, kind := range []string{"", KindFile, KindURL} {
		if got := KindTraits(kind); got != (Traits{}) {
			t.Errorf("KindTraits(%q): got %+v, want the zero value", kind, got)
		}
	}
}
