package render

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/runtime/runtimetest/recording"
)

// parts contains the fields of the golden manifests and of the recorded pods. These fields include
// every supported field; TestFields of package manifest checks this.
type parts struct {
	spec       map[string][]any // by field
	containers map[string][]any // by field, for containers and init containers
	volumes    []any            // with distinct names
	objects    string           // YAML documents of the objects that the pods refer to
	known      map[string]bool  // fields and values that were added
}

// hidden is a substring of every value in the Secrets.
const hidden = "hunter2"

// readParts returns the parts of the manifests in testdata.
func readParts(t *testing.T) *parts {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no manifests in %s, error %v, want at least one", dir, err)
	}
	all := &parts{spec: map[string][]any{}, containers: map[string][]any{}, known: map[string]bool{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs := strings.Split(string(text), "\n---\n")
		all.add(t, docs[0])
		for _, doc := range docs[1:] {
			all.objects += "\n---\n" + doc
		}
	}
	_, recorded := recording.Read(t, dir+"/kubelet.jsonl.gz")
	for _, l := range recorded {
		if f := decode.File(l.Manifest, decode.Options{NodeName: "node1"}); len(f.Pods) > 0 {
			all.add(t, string(l.Manifest))
		}
	}
	return all
}

// add adds the fields of a pod.
func (all *parts) add(t *testing.T, text string) {
	t.Helper()
	var pod struct{ Spec map[string]any }
	if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	for field, value := range pod.Spec {
		list, _ := value.([]any)
		switch field {
		case "containers", "initContainers":
			for _, c := range list {
				for field, value := range c.(map[string]any) {
					if all.isNew("containers."+field, value) {
						all.containers[field] = append(all.containers[field], value)
					}
				}
			}
		case "volumes":
			for _, v := range list {
				if all.isNew("volumes", v.(map[string]any)["name"]) {
					all.volumes = append(all.volumes, v)
				}
			}
		default:
			if all.isNew(field, value) {
				all.spec[field] = append(all.spec[field], value)
			}
		}
	}
}

func (all *parts) isNew(field string, value any) bool {
	key := fmt.Sprint(field, value)
	known := all.known[key]
	all.known[key] = true
	return !known
}

// draw returns a random selection of fields with random values.
func draw(t *rapid.T, from map[string][]any, without ...string) map[string]any {
	mixed := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(from)) {
		if !slices.Contains(without, field) && rapid.IntRange(0, 3).Draw(t, field) == 0 {
			mixed[field] = rapid.SampledFrom(from[field]).Draw(t, field)
		}
	}
	return mixed
}

// drawText returns a manifest of random fields, which may be invalid.
func (all *parts) drawText(t *rapid.T) string {
	spec := draw(t, all.spec)
	spec["volumes"] = all.volumes
	for _, kind := range []struct {
		field, without string
		least          int
	}{{"initContainers", "", 0}, {"containers", "restartPolicy", 1}} {
		var list []any
		for i := range rapid.IntRange(kind.least, 2).Draw(t, kind.field) {
			c := draw(t, all.containers, kind.without)
			c["name"], c["image"] = fmt.Sprint(kind.field[:1], i), "busybox:1"
			for _, field := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
				if c[field] != nil && kind.field == "initContainers" {
					c["restartPolicy"] = "Always"
				}
			}
			list = append(list, c)
		}
		spec[kind.field] = list
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{"name": "mixed", "labels": map[string]any{"app": "web"}, "annotations": map[string]any{"note": "n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + all.objects
}

// TestEveryValidPodRenders checks that rendering is deterministic and does not modify its input.
// The data of a Secret may be only in values of variables and in files, also if the manifest is
// invalid.
func TestEveryValidPodRenders(t *testing.T) {
	all := readParts(t)
	tried, valid := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		text := all.drawText(rt)
		f := decode.File([]byte(text), decode.Options{Path: "mixed.yaml", NodeName: "node1"})
		if text := fmt.Sprint(f.Problems); strings.Contains(text, hidden) {
			rt.Fatalf("got a Problem with a value of a Secret, want none: %s", text)
		}
		if tried++; len(f.Pods) == 0 {
			return
		}
		valid++
		p := f.Pods[0]
		n := goldenNode("hugepages")
		n.UsesCgroupV2 = rapid.Bool().Draw(rt, "v2")
		supply := refs.Resolve(p, &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"": f.Objects}, CompleteSources: map[string]bool{"": true}}, "salt", nil)
		before := p.Object.DeepCopy()
		first, err := renderMixed(p, n, supply)
		if err != nil && strings.Contains(err.Error(), "breaks non-root policy") {
			return // a valid pod with runAsNonRoot and runAsUser 0
		}
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(before, p.Object); diff != "" {
			rt.Fatalf("rendering modified the pod (-before +after):\n%s", diff)
		}
		copied := *p
		copied.Object = before
		second, err := renderMixed(&copied, n, supply)
		if err != nil || first != second {
			rt.Fatalf("second rendering: error %v, (-first +second):\n%s", err, cmp.Diff(first, second))
		}
	})
	if valid*8 < tried {
		t.Errorf("got %d valid manifests of %d, want at least an eighth", valid, tried)
	}
}

// renderMixed renders everything for a pod and returns the results. It returns an error if a value
// of a Secret occurs in another place than a variable or a file.
func renderMixed(p *manifest.Pod, n Node, supply *refs.Resolved) (string, error) {
	var out strings.Builder
	write := func(m proto.Message) error {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		out.Write(text)
		return err
	}
	config, err := Sandbox(SandboxInput{Pod: p, Node: n, UserIDs: hostIDs})
	if err != nil {
		return "", err
	}
	if err := write(config); err != nil {
		return "", err
	}
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			in := inputFor(p, n, &list[i])
			in.Refs, in.SubPaths, in.Images = supply, map[int]string{}, map[string]string{}
			for j := range list[i].VolumeMounts {
				in.SubPaths[j] = "/sub"
			}
			for _, v := range p.Object.Spec.Volumes {
				in.Images[v.Name] = "sha256:beef"
			}
			c, err := Container(in)
			if err != nil {
				return "", fmt.Errorf("%s: %w", list[i].Name, err)
			}
			if err := write(c); err != nil {
				return "", err
			}
			// Ignore the variables, and the command and arguments, in which variables are expanded.
			c.Envs, c.Command, c.Args = nil, nil, nil
			if strings.Contains(c.String(), hidden) {
				return "", fmt.Errorf("%s contains a value of a Secret: %s", list[i].Name, c)
			}
		}
	}
	if strings.Contains(config.String(), hidden) {
		return "", fmt.Errorf("the sandbox contains a value of a Secret: %s", config)
	}
	content := PodVolumes{Pod: p, Refs: supply, Node: n}
	for i := range p.Object.Spec.Volumes {
		if v := &p.Object.Spec.Volumes[i]; isProjected(&v.VolumeSource) {
			files, err := content.Files(v)
			if err != nil && strings.Contains(err.Error(), hidden) {
				return "", fmt.Errorf("the error of volume %s contains a value of a Secret: %w", v.Name, err)
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				f := files[name]
				fmt.Fprintf(&out, "%s %o %d %q\n", name, f.Mode, ptr.Deref(f.Owner, -1), f.Data)
			}
		}
	}
	return out.String(), nil
}
