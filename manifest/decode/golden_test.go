package decode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/runtime/runtimetest/golden"
)

const manifests = "../../testdata/manifests"

// TestGolden decodes every text in testdata/manifests and compares problems, identities and
// defaulted pods with the file of the same name and ".golden".
func TestGolden(t *testing.T) {
	for _, path := range texts(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			got := transcript(t, data, decode.Options{Path: name, NodeName: "Node1"})
			golden.Compare(t, path+".golden", got)
		})
	}
}

// texts returns the paths of the manifests to decode.
func texts(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.yaml", "*.json"} {
		found, err := filepath.Glob(filepath.Join(manifests, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Fatalf("%s contains no manifests", manifests)
	}
	return paths
}

// transcript returns the result of File as text, in the format of the golden files.
func transcript(t *testing.T, data []byte, o decode.Options) string {
	t.Helper()
	var b strings.Builder
	f := decode.File(data, o)
	for _, p := range f.Problems {
		fmt.Fprintln(&b, p)
	}
	for _, p := range f.Pods {
		spec, err := yaml.Marshal(p.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "--- pod %s (%s) uid=%s fixed=%t\nhash=%s sandbox=%s\n", p.ManifestKey(), p.Origin, p.UID, p.HasFixedUID, p.Hash, p.SandboxHash)
		for _, name := range sortedNames(p) {
			fmt.Fprintf(&b, "container %s start=%s size=%q\n", name, p.ContainerHashes[name].StartHash, p.ContainerHashes[name].Resources)
		}
		b.Write(spec)
	}
	writeObjects(t, &b, f.Objects)
	return b.String()
}

func sortedNames(p *manifest.Pod) []string {
	var names []string
	for name := range p.ContainerHashes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func writeObjects(t *testing.T, b *strings.Builder, o manifest.Objects) {
	t.Helper()
	var lines []string
	add := func(ref manifest.ObjectRef, object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("--- %s %s (%s)\n%s", ref.Kind, ref.NamespacedName, o.Origins[ref], text))
	}
	for ref := range o.Origins {
		switch ref.Kind {
		case "ConfigMap":
			add(ref, o.ConfigMaps[ref.NamespacedName])
		case "Secret":
			add(ref, o.Secrets[ref.NamespacedName])
		case "PersistentVolumeClaim":
			add(ref, o.Claims[ref.NamespacedName])
		}
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}
