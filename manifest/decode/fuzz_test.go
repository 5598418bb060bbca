package decode_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
)

var (
	safeUID  = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
	safeName = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
)

// FuzzDecode checks that File does not panic, and that its result is deterministic and contains only
// safe file names. If the text is converted to JSON, File must return the same pods.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"*.yaml", "*.json", "kubeadm/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(manifests, pattern))
		if err != nil || len(paths) == 0 {
			f.Fatalf("globbing %s: got %d files, error %v; want at least 1 file", pattern, len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: .., namespace: ../..}\nspec: {containers: [{name: .., image: i}]}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nmetadata: &a {name: web, <<: *a}\n"))
	o := decode.Options{Path: "f", Source: "s", NodeName: "Node"}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := decode.File(data, o)
		if diff := cmp.Diff(file, decode.File(data, o)); diff != "" {
			t.Fatalf("decoding again (-first +second):\n%s", diff)
		}
		for _, p := range file.Problems {
			if p.Message == "" || p.CausesRefusal != (p.Severity == manifest.Error) || strings.Count(p.String(), "\n") > 0 {
				t.Errorf("problem: got %#v, want a message on one line, and Refused only for errors", p)
			}
		}
		for _, p := range file.Pods {
			checkPod(t, p, o)
		}
		checkAsJSON(t, data, file, o)
		manifest.FindHostPortConflicts(file.Pods)
		merge.Batches([]manifest.Batch{merge.Files("s", manifest.KindFile, file, file)})
	})
}

// checkPod checks the properties of a pod that other packages rely on.
func checkPod(t *testing.T, p *manifest.Pod, o decode.Options) {
	if !safeUID.MatchString(string(p.UID)) || !safeName.MatchString(p.Key.Name) || !safeName.MatchString(p.Key.Namespace) || len(p.Key.Namespace) > 63 {
		t.Errorf("key %q and UID %q: want names that are safe in paths", p.Key, p.UID)
	}
	if p.Object == nil || len(p.Object.Spec.Containers) == 0 || len(p.ContainerHashes) != len(p.Object.Spec.Containers)+len(p.Object.Spec.InitContainers) {
		t.Fatalf("pod %s: got %d container hashes, want one per container", p.Key, len(p.ContainerHashes))
	}
	for name := range p.ContainerHashes {
		if !safeName.MatchString(name) || len(name) > 63 {
			t.Errorf("container name: got %q, want a valid name", name)
		}
	}
	for _, v := range p.Object.Spec.Volumes {
		if !safeName.MatchString(v.Name) || v.HostPath != nil && (v.HostPath.Path[0] != '/' || strings.Contains(v.HostPath.Path+"/", "/../")) {
			t.Errorf("volume: got %#v, want a valid name, and an absolute hostPath without ..", v)
		}
	}
	if !strings.HasSuffix(p.Key.Name, "-node") || p.ManifestKey().Name+"-node" != p.Key.Name || p.Object.Spec.NodeName != o.NodeName {
		t.Errorf("ManifestKey: got %s for pod %s on node %s, want the key without the suffix", p.ManifestKey(), p.Key, p.Object.Spec.NodeName)
	}
	if _, err := json.Marshal(p.Object); err != nil {
		t.Errorf("encoding %s: %v", p.Key, err)
	}
}

// checkAsJSON converts a text to JSON and checks that the JSON decodes to the same pod.
func checkAsJSON(t *testing.T, data []byte, file *manifest.File, o decode.Options) {
	if len(file.Pods) != 1 || len(file.Problems) > 0 || bytes.Contains(data, []byte("---")) || bytes.Contains(data, []byte("...")) {
		return
	}
	text, err := yaml.YAMLToJSON(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err != nil {
		t.Fatalf("converting a valid pod to JSON: %v", err)
	}
	again := decode.File(text, o)
	if len(again.Pods) != 1 || again.Pods[0].UID != file.Pods[0].UID || again.Pods[0].Hash != file.Pods[0].Hash {
		t.Errorf("decoding the text after its conversion to JSON, %s: got pods %v and problems %v, want the pods of the original text", text, again.Pods, again.Problems)
	}
}
