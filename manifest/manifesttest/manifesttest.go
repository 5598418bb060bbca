// Package manifesttest has manifests and batches for the tests of several packages.
package manifesttest

import (
	"fmt"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
)

// Batch returns the complete Batch of a source with one file, whose path is the name of the
// source. The node is "n".
func Batch(kind, path, text string) manifest.Batch {
	f := decode.File([]byte(text), decode.Options{Kind: kind, Source: path, Path: path, Node: "n"})
	b := merge.Files(path, kind, f)
	b.Complete = true
	b.Files = []manifest.FileState{{Path: path}}
	return b
}

// Pod returns the document of a pod of five lines, with more metadata.
func Pod(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s%s}\nspec: {containers: [{name: main, image: \"i:1\"}]}\n", name, more)
}

// One returns the pod of a text, which must have one pod and no error.
func One(t testing.TB, text string, o decode.Options) *manifest.Pod {
	t.Helper()
	f := decode.File([]byte(text), o)
	if len(f.Pods) != 1 || f.Refused() {
		t.Fatalf("%d pods, problems %v of\n%s", len(f.Pods), f.Problems, text)
	}
	return f.Pods[0]
}

// ClaimUser is a document of a pod that uses the claim "a".
const ClaimUser = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: a}}], containers: [{name: main, image: \"i:1\"}]}\n"

// Claim returns the document of a PersistentVolumeClaim that requests 1Gi, with more in its
// spec.
func Claim(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}%s}\n", name, more)
}

// Volume returns the document of a PersistentVolume, with more in its spec. Its label disk
// is its name. It needs a capacity, such as SmallVolume.
func Volume(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s, labels: {disk: %s}}\nspec: {accessModes: [ReadWriteOnce, ReadWriteMany], hostPath: {path: /srv}%s}\n", name, name, more)
}

// SmallVolume is the capacity of a Volume that is just sufficient for a Claim.
const SmallVolume = ", capacity: {storage: 1Gi}"
