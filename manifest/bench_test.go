package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"podd/manifest"
)

// BenchmarkDecode: one file of one pod each, as kubeadm's and as small as can
// be, and a list of 100 pods in YAML and JSON.
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
		"minimal":           {[]byte(web), 1},
		"kube-apiserver":    {apiserver, 1},
		"100 in a list":     {list, 100},
		"100 as documents":  {documents, 100},
		"with its problems": {bytes.ReplaceAll(apiserver, []byte("failureThreshold: "), []byte("failureThreshold: -")), 0},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if f := manifest.Decode(c.text, manifest.Options{Path: "f", Node: "n"}); len(f.Pods) != c.pods {
					b.Fatalf("%d pods, problems %v", len(f.Pods), f.Problems)
				}
			}
		})
	}
}

// BenchmarkBind: as many claims, each with its pod, as volumes.
func BenchmarkBind(b *testing.B) {
	for _, n := range []int{100, 200} {
		var text strings.Builder
		for i := range n {
			claim := fmt.Sprintf("c%d", i)
			text.WriteString(strings.Replace(strings.Replace(user, "name: web", "name: "+claim, 1), "claimName: a", "claimName: "+claim, 1))
			text.WriteString(claimText(claim, "") + volumeText(fmt.Sprintf("v%d", i), small))
		}
		set := manifest.Merge([]manifest.Batch{batch(manifest.KindFile, "x", text.String())})
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				if bound := manifest.Bind(set, "salt", nil, nil); len(bound.Supplies) != n {
					b.Fatalf("%d supplies", len(bound.Supplies))
				}
			}
		})
	}
}
