// Package manifesttest provides manifests and Batches for the tests of several packages.
package manifesttest

import (
	"fmt"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
)

// Batch returns a complete Batch with the pods and objects of text. The source has one file, and
// path is both the path of the file and the name of the source. The node is "n".
func Batch(kind, path, text string) manifest.Batch {
	f := decode.File([]byte(text), decode.Options{Kind: kind, Source: path, Path: path, NodeName: "n"})
	b := merge.Files(path, kind, f)
	b.IsComplete = true
	b.FileStates = []manifest.FileState{{Path: path}}
	return b
}

// Pod returns a document of five lines with a pod. The text extraFields is inserted after the
// fields of its metadata.
func Pod(name, extraFields string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s%s}\nspec: {containers: [{name: main, image: \"i:1\"}]}\n", name, extraFields)
}

// DecodeOne decodes a text, which must contain exactly one pod and no error, and returns the pod.
func DecodeOne(t testing.TB, text string, o decode.Options) *manifest.Pod {
	t.Helper()
	f := decode.File([]byte(text), o)
	if len(f.Pods) != 1 || f.HasRefusedDocument() {
		t.Fatalf("want one pod without errors, got %d pods and problems %v; manifest:\n%s", len(f.Pods), f.Problems, text)
	}
	return f.Pods[0]
}

// PodWithClaim is a document with a pod that uses the claim "a".
const PodWithClaim = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: \"i:1\"}]}\n"

// Claim returns a document with a PersistentVolumeClaim that requests 1Gi. The text extraFields is
// inserted after the fields of its spec.
func Claim(name, extraFields string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}%s}\n", name, extraFields)
}

// Volume returns a document with a PersistentVolume. The value of its label "disk" is its name. The
// text extraFields is inserted after the fields of its spec and must contain a capacity, such as
// SmallCapacity.
func Volume(name, extraFields string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s, labels: {disk: %s}}\nspec: {accessModes: [ReadWriteOnce, ReadWriteMany], hostPath: {path: /srv}%s}\n", name, name, extraFields)
}

// SmallCapacity is a capacity that is exactly sufficient for the claim that Claim returns.
const SmallCapacity = ", capacity: {storage: 1Gi}"
