package manifest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"podd/runtime/runtimetest/recording"
)

// fieldsTable is the table of all fields of a PodSpec, made by TestFields.
const fieldsTable = "../testdata/render/fields.txt"

// fieldTests are what sets a field, by the field.
type fieldTests struct {
	valid, kubelet map[string]int
	files          map[string][]string
}

// TestFields writes down what podd does with each field of a PodSpec, and what
// tests it: how many pods the verdict of Kubernetes was recorded of and
// compared with, how many the requests of the kubelet, and which goldens have
// it. A field that is served has one of the latter at least.
func TestFields(t *testing.T) {
	tests := gatherFieldTests(t)
	var b strings.Builder
	fmt.Fprintln(&b, "# What podd does with each field of a PodSpec, and what tests it: pods that are validated")
	fmt.Fprintln(&b, "# as Kubernetes does, pods of which the kubelet's requests are compared, goldens.")
	fmt.Fprintln(&b, "# Init containers are as containers, but for restartPolicy.")
	fmt.Fprintln(&b, "# Made by: go test ./manifest -run TestFields -update")
	rows := fieldRows(servedRules().fields["spec"], podShape().fields["spec"], "spec")
	for _, r := range rows {
		if strings.HasPrefix(r.path, "spec.initContainers[].") && r.path != "spec.initContainers[].restartPolicy" {
			continue // as those of containers
		}
		says := map[verdict]string{served: "served", noted: "noted", only: "only", refused: "refused"}[r.verdict]
		fmt.Fprintf(&b, "%-66s %-8s %6d %4d  %s\n", r.path, says, tests.valid[r.path], tests.kubelet[r.path], strings.Join(tests.files[r.path], " "))
		if r.note != "" {
			fmt.Fprintf(&b, "    %s\n", r.note)
		}
		if r.verdict == unserved {
			t.Errorf("%s is not served, and no reason is given", r.path)
		}
		if r.verdict == served && tests.kubelet[r.path]+len(tests.files[r.path]) == 0 {
			t.Errorf("%s is served, and no golden has it", r.path)
		}
	}
	if flag.Lookup("update").Value.String() == "true" {
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

// fieldRows are the rows of the served table below a field, and those that it
// leaves out, which are not served.
func fieldRows(r *rule, s *shape, path string) []row {
	if r == nil || r.fields == nil {
		if r == nil {
			r = unservedRule
		}
		return []row{{path, r.verdict, r.note}}
	}
	if s.kind == list {
		return fieldRows(r.fields["[]"], s.elem, path+"[]")
	}
	var rows []row
	keys := maps.Keys(s.fields)
	if s.kind == dict {
		keys = maps.Keys(r.fields)
	}
	for _, key := range slices.Sorted(keys) {
		rows = append(rows, fieldRows(r.fields[key], s.member(key), path+"."+key)...)
	}
	return rows
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
	readKubernetes(t, func(c kubernetesCase) {
		if !c.Undecodable {
			var pod any
			if err := json.Unmarshal(c.text(), &pod); err != nil {
				t.Fatal(err)
			}
			count(tests.valid, pod)
		}
	})
	for _, pod := range kubeletPods(t) {
		count(tests.kubelet, pod)
	}
	for _, pattern := range []string{"../testdata/manifests/*.yaml", "../testdata/render/*.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(strings.TrimPrefix(path, "../testdata/"), ".yaml")
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
		_, all := recording.Read(t, "../testdata/render/"+recorded+".jsonl.gz")
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

// named is what the table calls a key: a pattern, or the key itself.
func (r *rule) named(key string) string {
	switch m := r.member(key); {
	case r.fields[key] != nil || m == unservedRule:
		return key
	case m == r.fields[extendedRow]:
		return extendedRow
	}
	return hugePagesRow
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
				walk(v[key], r.member(key), path+"."+r.named(key))
			}
		case []any:
			for i := range v {
				walk(v[i], r.member("[]"), path+"[]")
			}
		}
	}
	walk(m["spec"], servedRules().fields["spec"], "spec")
	return paths
}
