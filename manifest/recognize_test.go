package manifest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
)

const recognizedPods = `
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
	s := setOf(recognizedPods)
	find := func(uid types.UID) func(*manifest.Pod) types.UID {
		return func(*manifest.Pod) types.UID { return uid }
	}
	web, db := types.NamespacedName{Namespace: "default", Name: "web-n"}, types.NamespacedName{Namespace: "default", Name: "db-n"}
	recognized := manifest.Recognize(s, nil, find("recorded"))
	for key, p := range recognized.Set.Pods {
		if (p.UID == "recorded") != (key == db) { // the pod with the first name gets the UID
			t.Errorf("%s: got UID %s, want the recorded UID only for %s", key, p.UID, db)
		}
	}
	p := recognized.Set.Pods[db]
	if !p.HasFixedUID || p.Object.UID != p.UID || p.Object.Annotations[manifest.AnnotationConfigHash] != "recorded" || p.Hash != s.Pods[db].Hash {
		t.Errorf("recognized pod: got %+v, want the recorded UID and an unchanged hash", p)
	}
	if s.Pods[db].Object.UID == "recorded" {
		t.Error("Recognize changed the given set")
	}
	if again := manifest.Recognize(s, recognized, find("")); again.Set.Pods[db] != p || again.Set.Pods[web] != s.Pods[web] {
		t.Errorf("second Recognize of the same set: got pods with UIDs %s and %s, want the pods of the first result", again.Set.Pods[db].UID, again.Set.Pods[web].UID)
	}
	reread := setOf(recognizedPods)
	if now := manifest.Recognize(reread, recognized, find("")).Set.Pods[db]; now == p || now.UID != "recorded" {
		t.Errorf("the same version decoded again: got UID %s, want a new pod with the recorded UID", now.UID)
	}
	edited := setOf("apiVersion: v1\nkind: Pod\nmetadata: {name: db}\nspec: {containers: [{name: main, image: \"i:2\"}]}")
	if now := manifest.Recognize(edited, recognized, find("")); now.Set != edited {
		t.Errorf("set with an edited pod: got UID %s, want an unchanged set", now.Set.Pods[db].UID)
	}
	for _, unusable := range []types.UID{"", "../x", "own"} {
		if manifest.Recognize(s, nil, find(unusable)).Set.Pods[web] != s.Pods[web] {
			t.Errorf("recorded UID %q: got a changed pod, want the UID ignored", unusable)
		}
	}
}
