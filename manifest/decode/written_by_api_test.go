package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
)

// TestFile_WrittenByAPI checks that a pod of podd's own API keeps its name, UID and server
// metadata. A change of a field that is mutable in Kubernetes must not change the version of the
// pod.
func TestFile_WrittenByAPI(t *testing.T) {
	read := func(text string) *manifest.Pod {
		t.Helper()
		f := decode.File([]byte(text), decode.Options{NodeName: "n1", IsWrittenByAPI: true})
		if len(f.Pods) != 1 || len(f.Problems) > 0 {
			t.Fatalf("want one pod without problems, got %v of\n%s", f.Problems, text)
		}
		return f.Pods[0]
	}
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: web-x, generateName: web-, uid: u1, creationTimestamp: "2026-01-02T03:04:05Z", labels: {a: b}, annotations: {c: d}}
spec:
  activeDeadlineSeconds: 100
  tolerations: [{key: a, operator: Exists}]
  initContainers: [{name: i, image: "i:1"}]
  containers: [{name: a, image: "a:1", resources: {requests: {cpu: 1}}}]
`
	p := read(text)
	m := p.Object.ObjectMeta
	if p.Key.String() != "default/web-x" || p.NameSuffix != "" || p.UID != "u1" || m.GenerateName != "web-" || m.CreationTimestamp.Year() != 2026 ||
		fmt.Sprint(m.Annotations) != "map[c:d]" || p.Object.Spec.NodeName != "n1" || len(p.Object.Spec.Tolerations) != 1 {
		t.Errorf("got %+v, want the name, UID and server metadata of the manifest", p)
	}
	if want := (manifest.Traits{UpdatesMetadataInPlace: true}); p.Traits != want {
		t.Errorf("got traits %+v, want %+v", p.Traits, want)
	}
	for old, now := range map[string]string{
		"{a: b}": "{a: z}", "{c: d}": "{}", "i:1": "i:2", "a:1": "a:2", "key: a": "key: b", "Seconds: 100": "Seconds: 10", "cpu: 1": "cpu: 2",
	} {
		q := read(strings.Replace(text, old, now, 1))
		if q.Hash != p.Hash || q.UID != p.UID {
			t.Errorf("%s instead of %s: got another version, want the same", now, old)
		}
		if (q.ContainerHashes["a"].StartHash != p.ContainerHashes["a"].StartHash) != (old == "a:1") {
			t.Errorf("%s instead of %s: edit restarts the container: got %v, want true only for a changed image", now, old, q.ContainerHashes["a"].StartHash != p.ContainerHashes["a"].StartHash)
		}
	}
	withLabels := strings.Replace(text, "spec:", "spec:\n  volumes: [{name: v, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]", 1)
	files := func(text string) string { return refs.Resolve(read(text), &manifest.Set{}, "", nil).FilesDigest }
	if files(withLabels) == files(strings.Replace(withLabels, "{a: b}", "{a: z}", 1)) || refs.Resolve(p, &manifest.Set{}, "", nil) != nil {
		t.Error("digest of files: want a digest that depends on the labels if and only if a downwardAPI volume contains the labels")
	}
	for old, now := range map[string]string{"name: a,": "name: b,", "spec:": "spec:\n  hostNetwork: true", "uid: u1": "uid: u2"} {
		if q := read(strings.Replace(text, old, now, 1)); q.Hash == p.Hash && q.UID == p.UID {
			t.Errorf("%s instead of %s: got the same version, want another", now, old)
		}
	}
}
