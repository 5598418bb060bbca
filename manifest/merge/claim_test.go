package merge_test

import (
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// TestClaimOfTwoSources: its data is for the pods of one.
func TestClaimOfTwoSources(t *testing.T) {
	text := manifesttest.ClaimUser + manifesttest.Claim("a", "")
	x, y := manifesttest.Batch(manifest.KindFile, "x", text), manifesttest.Batch(manifest.KindFile, "y", strings.Replace(text, "name: web", "name: other", 1))
	set := merge.Batches([]manifest.Batch{x, y})
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].String(), `PersistentVolumeClaim default/a is already at x:7, whose pods have its data`) {
		t.Errorf("%v", set.Problems)
	}
	for i, want := range []string{"", "(the one in x serves pods from there alone)"} {
		p := []manifest.Batch{x, y}[i].Pods[0]
		if got := refs.Resolve(p, set, "salt", nil).Missing; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s lacks %q, want %q", p.Key, got, want)
		}
	}
	if len(y.Objects.Claims) != 1 {
		t.Error("the batch was written to")
	}
	for _, kind := range []string{manifest.KindURL, manifest.KindAPI} {
		z := manifesttest.Batch(kind, "z", strings.Replace(text, "name: web", "name: other", 1))
		if set := merge.Batches([]manifest.Batch{x, z}); len(set.Problems) > 0 || len(set.Objects["z"].Claims) != 1 {
			t.Errorf("one of kind %s is its own: %v", kind, set.Problems)
		}
	}
}

// TestGroupsOfAClaim: two pods that give its files to two groups are told of.
func TestGroupsOfAClaim(t *testing.T) {
	pod := func(name, group string) string {
		return strings.Replace(strings.Replace(manifesttest.ClaimUser, "name: web", "name: "+name, 1), "spec: {", "spec: {securityContext: {fsGroup: "+group+"}, ", 1)
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{pod("one", "1") + pod("two", "2") + manifesttest.Claim("a", ""), true},
		{pod("one", "1") + pod("two", "1") + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + manifesttest.ClaimUser + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + strings.Replace(pod("two", "2"), "claimName: a", "claimName: a, readOnly: true", 1) + manifesttest.Claim("a", ""), false},
		{pod("one", "1") + pod("two", "2") + manifesttest.Claim("a", "") + manifesttest.Volume("x", manifesttest.SmallVolume), false}, // a hostPath is left as it is
	} {
		set := merge.Batches([]manifest.Batch{manifesttest.Batch(manifest.KindFile, "x", tt.text)})
		got := ""
		for _, p := range set.Problems {
			got += p.String()
		}
		if (got != "") != tt.want || tt.want && !strings.Contains(got, `warning: spec.securityContext.fsGroup: gives the files of the claim "a" to group 2, and default/one`) {
			t.Errorf("%s\n%s", tt.text, got)
		}
	}
}
