package refs_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
)

// TestList_Ephemeral checks that references of an ephemeral container are listed, but that the
// pod does not wait for them.
func TestList_Ephemeral(t *testing.T) {
	f := decode.File([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: 'i:1'}]}\n"), decode.Options{})
	p, errs := decode.AddEphemeral(f.Pods[0], []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name: "d", Image: "b", EnvFrom: []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}}},
	}}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s := refs.Resolve(p, &manifest.Set{CompleteSources: map[string]bool{"": true}}, "", nil)
	list := refs.List(p)
	if s == nil || s.MissingMessage != "" || len(list) != 1 || list[0].FieldPath != "spec.ephemeralContainers[0].envFrom[0].configMapRef.name" {
		t.Errorf("got Resolved %+v and references %+v, want no Blocker and one reference of the ephemeral container", s, list)
	}
}
