package decode_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/decode"
)

// TestFile_Formats decodes a pod in several formats and orders of its fields. It checks that the
// hashes of the pod, and the fields for which a position is recorded, are always the same.
func TestFile_Formats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		block, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		indented, err := json.MarshalIndent(pod, "\t", "\t")
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{
			"block":    string(block),
			"shuffled": shuffled(t, pod),
			"indented": string(indented),
			"flow":     "# a note\n--- " + shuffled(t, pod) + " # another\n...\n",
			"windows":  strings.ReplaceAll(string(block), "\n", "\r\n"),
		}
		var first *manifest.Pod
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			f := decode.File([]byte(texts[name]), decode.Options{Path: name, NodeName: "n"})
			if len(f.Pods) != 1 {
				t.Fatalf("%s: want one pod of\n%s\ngot problems %v", name, texts[name], f.Problems)
			}
			p := f.Pods[0]
			if first == nil {
				first = p
			}
			if p.UID != first.UID || p.Hash != first.Hash || p.SandboxHash != first.SandboxHash || !maps.Equal(p.ContainerHashes, first.ContainerHashes) {
				t.Fatalf("%s: got uid %s and hash %s, want %s and %s as in the first format\n%s", name, p.UID, p.Hash, first.UID, first.Hash, texts[name])
			}
			if !slices.Equal(slices.Sorted(maps.Keys(p.Origin.Fields)), slices.Sorted(maps.Keys(first.Origin.Fields))) {
				t.Fatalf("%s: got positions of different fields, want those of the first format", name)
			}
		}
	})
}

// drawPod returns a valid pod as decoded JSON.
func drawPod(t *rapid.T) map[string]any {
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab01 :#-'\"\\{}[],&*!|>%@`~\néß✓")))
	name := rapid.StringMatching(`[a-z][a-z0-9]{0,8}`)
	words := func(label string) []any {
		return toAny(rapid.SliceOfN(text, 1, 4).Draw(t, label))
	}
	containers := []any{}
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		c := map[string]any{"name": fmt.Sprintf("c%d", i), "image": "registry.example/" + name.Draw(t, "image")}
		if rapid.Bool().Draw(t, "has args") {
			c["args"] = words("args")
		}
		if rapid.Bool().Draw(t, "has env") {
			c["env"] = []any{map[string]any{"name": "A", "value": text.Draw(t, "value")}}
		}
		if rapid.Bool().Draw(t, "has resources") {
			c["resources"] = map[string]any{"limits": map[string]any{
				"cpu": rapid.IntRange(0, 64).Draw(t, "cpu"), "memory": rapid.SampledFrom([]any{"64Mi", "1.5Gi", 1e9, 1000}).Draw(t, "memory"),
			}}
		}
		if rapid.Bool().Draw(t, "has security") {
			c["securityContext"] = map[string]any{"runAsUser": rapid.Int64Range(0, 1<<31-1).Draw(t, "user"), "privileged": rapid.Bool().Draw(t, "privileged")}
		}
		containers = append(containers, c)
	}
	spec := map[string]any{"containers": containers}
	if rapid.Bool().Draw(t, "has grace") {
		spec["terminationGracePeriodSeconds"] = rapid.Int64Range(0, 1<<53).Draw(t, "grace")
	}
	annotations := map[string]any{}
	for _, key := range rapid.SliceOfN(name, 0, 4).Draw(t, "annotations") {
		annotations[key] = text.Draw(t, "annotation")
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"name": name.Draw(t, "name"), "annotations": annotations},
	}
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// shuffled returns a value as JSON with its keys in a random order.
func shuffled(t *rapid.T, v any) string {
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for _, key := range rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "keys") {
			quoted, _ := json.Marshal(key)
			members = append(members, string(quoted)+": "+shuffled(t, v[key]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	case []any:
		var items []string
		for i := range v {
			items = append(items, shuffled(t, v[i]))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	scalar, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(scalar)
}
