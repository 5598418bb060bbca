package decode_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"podd/manifest/decode"
)

// BenchmarkDecode decodes a minimal pod, a pod of kubeadm, and 100 copies of the kubeadm pod as
// a list and as YAML documents.
func BenchmarkDecode(b *testing.B) {
	apiserver, err := os.ReadFile(filepath.Join(manifests, "kubeadm", "kube-apiserver.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	var pod any
	if err := yaml.Unmarshal(apiserver, &pod); err != nil {
		b.Fatal(err)
	}
	items := make([]any, 100)
	for i := range items {
		items[i] = pod
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		b.Fatal(err)
	}
	documents := bytes.Repeat(append([]byte("---\n"), apiserver...), 100)
	for name, c := range map[string]struct {
		text []byte
		pods int
	}{
		"minimal":          {[]byte(web), 1},
		"kube-apiserver":   {apiserver, 1},
		"100 as a list":    {list, 100},
		"100 as documents": {documents, 100},
		"invalid":          {bytes.ReplaceAll(apiserver, []byte("failureThreshold: "), []byte("failureThreshold: -")), 0},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f := decode.File(c.text, decode.Options{Path: "f", NodeName: "n"}); len(f.Pods) != c.pods {
					b.Fatalf("got %d pods and problems %v, want only valid pods", len(f.Pods), f.Problems)
				}
			}
		})
	}
}
