package supported

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"podd/manifest/manifesttest/kubernetes"
	"podd/runtime/runtimetest/recording"
)

// fieldsTable is the table of all fields of a PodSpec, made by TestFields.
const fieldsTable = "../../testdata/render/fields.txt"

var update = flag.Bool("update", false, "rewrite the table of fields")

// fieldTests are what sets a field, by the field.
type fieldTests struct {
	valid, kubelet map[string]int
	files          map[string][]string
}

// TestFields writes down what podd does with each field of a PodSpec, and what
// tests it: how many pods the verdict of Kubernetes was recorded of and
// compared with, how many the requests of the kubelet, and which goldens have
// it. A field that is supported has one of the latter at least.
func TestFields(t *testing.T) {
	tests := gatherFieldTests(t)
	var b strings.Builder
	fmt.Fprintln(&b, "# What podd does with each field of a PodSpec, and what tests it: pods that are validated")
	fmt.Fprintln(&b, "# as Kubernetes does, pods of which the kubelet's requests are compared, goldens.")
	fmt.Fprintln(&b, "# Init containers are as containers, but for restartPolicy.")
	fmt.Fprintln(&b, "# Made by: go test ./manifest/supported -run TestFields -update")
	rows := fieldRows(podRules().fields["spec"], reflect.TypeFor[v1.PodSpec](), "spec")
	for _, r := range rows {
		if strings.HasPrefix(r.path, "spec.initContainers[].") && r.path != "spec.initContainers[].restartPolicy" {
			continue // as those of containers
		}
		says := map[verdict]string{supported: "served", warned: "noted", oneValue: "only", refusedWithNote: "refused"}[r.verdict]
		fmt.Fprintf(&b, "%-66s %-8s %6d %4d  %s\n", r.path, says, tests.valid[r.path], tests.kubelet[r.path], strings.Join(tests.files[r.path], " "))
		if r.note != "" {
			fmt.Fprintf(&b, "    %s\n", r.note)
		}
		if r.verdict == unsupported {
			t.Errorf("%s is not served, and no reason is given", r.path)
		}
		if r.verdict == supported && tests.kubelet[r.path]+len(tests.files[r.path]) == 0 {
			t.Errorf("%s is served, and no golden has it", r.path)
		}
	}
	if *update {
		if err := os.WriteFile(fieldsTable, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(fieldsTable)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", fieldsTable, diff)
	}
}

// fieldRows are the rows of the table below a field of a type, and those that it leaves
// out, which are not supported.
func fieldRows(r *rule, typ reflect.Type, path string) []row {
	if r == nil || r.fields == nil {
		if r == nil {
			r = unsupportedRule
		}
		return []row{{path, r.verdict, r.note}}
	}
	names := slices.Collect(maps.Keys(r.fields)) // of a list or map
	if typ = pointed(typ); typ.Kind() == reflect.Struct {
		names = slices.Collect(maps.Keys(jsonFields(typ)))
	}
	var rows []row
	for _, name := range slices.Sorted(slices.Values(names)) {
		rows = append(rows, fieldRows(r.fields[name], member(typ, name), join(path, name))...)
	}
	return rows
}

// join is the path of a step in the table of fields, where keys of maps are as fields.
func join(path, step string) string {
	if step == "[]" {
		return path + step
	}
	return path + "." + strings.Trim(step, "[]")
}

// gatherFieldTests looks through all that tests have.
func gatherFieldTests(t *testing.T) fieldTests {
	t.Helper()
	tests := fieldTests{map[string]int{}, map[string]int{}, map[string][]string{}}
	count := func(in map[string]int, pod any) {
		for _, path := range slices.Compact(slices.Sorted(slices.Values(fieldsOf(pod)))) {
			in[path]++
		}
	}
	kubernetes.Read(t, func(c kubernetes.Case) {
		if !c.Undecodable {
			var pod any
			if err := json.Unmarshal(c.Text(), &pod); err != nil {
				t.Fatal(err)
			}
			count(tests.valid, pod)
		}
	})
	for _, pod := range kubeletPods(t) {
		count(tests.kubelet, pod)
	}
	for _, pattern := range []string{"../../testdata/manifests/*.yaml", "../../testdata/render/*.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(path, "../../testdata/"), ".yaml")
			for _, document := range strings.Split("\n"+string(text), "\n---") {
				var pod any
				if yaml.Unmarshal([]byte(document), &pod) != nil {
					continue // some are broken on purpose
				}
				for _, field := range fieldsOf(pod) {
					if !slices.Contains(tests.files[field], name) {
						tests.files[field] = append(tests.files[field], name)
					}
				}
			}
		}
	}
	return tests
}

// kubeletPods are those whose requests are recorded.
func kubeletPods(t *testing.T) (pods []any) {
	t.Helper()
	for _, recorded := range []string{"kubelet", "kubelet-api"} {
		_, all := recording.Read(t, "../../testdata/render/"+recorded+".jsonl.gz")
		for _, one := range all {
			var pod any
			if err := json.Unmarshal(one.Manifest, &pod); err != nil {
				t.Fatal(err)
			}
			pods = append(pods, pod)
		}
	}
	return pods
}

// fieldsOf are the rows that a pod has a value for.
func fieldsOf(pod any) (paths []string) {
	m, _ := pod.(map[string]any)
	if m["kind"] != "Pod" {
		return nil
	}
	var walk func(v any, r *rule, path string)
	walk = func(v any, r *rule, path string) {
		if v == nil {
			return
		}
		if r.fields == nil {
			if rest, init := strings.CutPrefix(path, "spec.initContainers[]."); init && rest != "restartPolicy" {
				path = "spec.containers[]." + rest
			}
			paths = append(paths, path)
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				step, _ := r.step(key, "")
				m := r.member(step)
				if pattern := r.pattern(step); r.fields[step] == nil && r.fields[pattern] != nil {
					step = pattern
				}
				walk(v[key], m, join(path, step))
			}
		case []any:
			for i := range v {
				walk(v[i], r.member("[]"), path+"[]")
			}
		}
	}
	walk(m["spec"], podRules().fields["spec"], "spec")
	return paths
}
