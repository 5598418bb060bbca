package merge_test

import (
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// TestBatches_ClaimOfTwoSources checks that only the pods of one source use the data of a
// claim that two sources define.
func TestBatches_ClaimOfTwoSources(t *testing.T) {
	text := manifesttest.PodWithClaim + manifesttest.Claim("a", "")
	x, y := manifesttest.Batch(manifest.KindFile, "x", text), manifesttest.Batch(manifest.KindFile, "y", strings.Replace(text, "name: web", "name: other", 1))
	set := merge.Batches([]manifest.Batch{x, y})
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].String(), `PersistentVolumeClaim default/a is already defined at x:7, whose pods use its data`) {
		t.Errorf("problems: got %v, want one about the claim in source y", set.Problems)
	}
	for i, want := range []string{"", "(x defines one, but only pods of that source can use it)"} {
		p := []manifest.Batch{x, y}[i].Pods[0]
		if got := refs.Resolve(p, set, "salt", nil).MissingMessage; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("missing claim of %s: got %q, want %q", p.Key, got, want)
		}
	}
	if len(y.Objects.Claims) != 1 {
		t.Error("Batches changed the given batch")
	}
	for _, kind := range []string{manifest.KindURL, manifest.KindAPI} {
		z := manifesttest.Batch(kind, "z", strings.Replace(text, "name: web", "name: other", 1))
		if set := merge.Batches([]manifest.Batch{x, z}); len(set.Problems) > 0 || len(set.ObjectsBySource["z"].Claims) != 1 {
			t.Errorf("second source of kind %s: got problems %v, want none, and its claim in use", kind, set.Problems)
		}
	}
}

// TestBatches_ClaimGroups checks that two pods with different fsGroups on one claim get a
// Problem.
func TestBatches_ClaimGroups(t *testing.T) {
	pod := func(name, group string) string {
		return strings.Replace(strings.Replace(manifesttest.PodWithClaim, "name: web", "name: "+name, 1), "spec: {", "spec: {securityContext: {fsGroup: "+group+"}, ", 1)
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{pod("one", "1") + pod("two", "2") + manifesttest.Claim("a", ""), true},
		{pod("one", "1") + pod("two", "1") + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + manifesttest.PodWithClaim + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + strings.Replace(pod("two", "2"), "claimName: a", "claimName: a, readOnly: true", 1) + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + pod("two", "2") + manifesttest.Claim("a", "") + manifesttest.Volume("x", manifesttest.SmallCapacity), false}, // the group of a hostPath is not changed
	} {
		set := merge.Batches([]manifest.Batch{manifesttest.Batch(manifest.KindFile, "x", tt.text)})
		got := ""
		for _, p := range set.Problems {
			got += p.String()
		}
		if (got != "") != tt.want || tt.want && !strings.Contains(got, `warning: spec.securityContext.fsGroup: changes the group of the files of claim "a" to 2, but default/one`) {
			t.Errorf("%s\ngot problems %q, want a warning: %v", tt.text, got, tt.want)
		}
	}
}
