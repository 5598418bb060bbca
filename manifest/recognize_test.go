package manifest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
)

const knownPods = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: "i:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {containers: [{name: main, image: "i:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fixed, uid: own}
spec: {containers: [{name: main, image: "i:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: follows, annotations: {podd/restart-on-change: "true"}}
spec: {containers: [{name: main, image: "i:1"}]}
`

// TestRecognize checks that a pod keeps the recorded UID of its version and that no two pods
// get the same UID.
func TestRecognize(t *testing.T) {
	setOf := func(text string) *manifest.Set {
		return merge.Batches([]manifest.Batch{manifesttest.Batch(manifest.KindFile, "/a", text)})
	}
	s := setOf(knownPods)
	find := func(uid types.UID) func(*manifest.Pod) types.UID {
		return func(*manifest.Pod) types.UID { return uid }
	}
	web, db := types.NamespacedName{Namespace: "default", Name: "web-n"}, types.NamespacedName{Namespace: "default", Name: "db-n"}
	k := manifest.Recognize(s, nil, find("theirs"))
	for key, p := range k.Set.Pods {
		if (p.UID == "theirs") != (key == db) { // the first pod by name gets it
			t.Errorf("%s: got uid %s", key, p.UID)
		}
	}
	p := k.Set.Pods[db]
	if !p.FixedUID || p.Spec.UID != p.UID || p.Spec.Annotations[manifest.AnnotationConfigHash] != "theirs" || p.Hash != s.Pods[db].Hash {
		t.Errorf("got %+v", p)
	}
	if s.Pods[db].Spec.UID == "theirs" {
		t.Error("the given set was changed")
	}
	if again := manifest.Recognize(s, k, find("")); again.Set.Pods[db] != p || again.Set.Pods[web] != s.Pods[web] {
		t.Errorf("got %s and %s", again.Set.Pods[db].UID, again.Set.Pods[web].UID)
	}
	read := setOf(knownPods)
	if now := manifest.Recognize(read, k, find("")).Set.Pods[db]; now == p || now.UID != "theirs" {
		t.Errorf("same version: got uid %s", now.UID)
	}
	edited := setOf("apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: main, image: \"i:2\"}]}")
	if now := manifest.Recognize(edited, k, find("")); now.Set != edited {
		t.Errorf("other version: got uid %s", now.Set.Pods[db].UID)
	}
	for _, bad := range []types.UID{"", "../x", "own"} {
		if manifest.Recognize(s, nil, find(bad)).Set.Pods[web] != s.Pods[web] {
			t.Errorf("invalid uid %q was used", bad)
		}
	}
}
