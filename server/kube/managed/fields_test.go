package managed

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podd/server"
)

func newPod(t testing.TB, text string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := yaml.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	p.APIVersion, p.Kind = "v1", "Pod"
	return p
}

// config parses a configuration like the API does. It returns nil if the
// configuration is invalid.
func config(text string) (c map[string]any) {
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(body, &c) != nil {
		return nil
	}
	return c
}

const web = `
apiVersion: v1
kind: Pod
metadata: {name: web, uid: u1, labels: {a: b}}
spec:
  tolerations: [{key: a, operator: Exists}]
  containers:
  - {name: a, image: "a:1", args: [x], ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}], resources: {requests: {cpu: 100m}}}
  - {name: b, image: "b:1", env: [{name: X, value: w}]}
status: {phase: Running}
`

// TestApply applies configurations to a pod, with lists and maps of each merge type.
func TestApply(t *testing.T) {
	f := New(kinds)
	for _, c := range []struct {
		name, of string
		has      string // must be in the resulting JSON; "" if only the managed fields matter
	}{
		{"a label", "metadata: {labels: {c: d}}", `"labels":{"a":"b","c":"d"}`},
		{"an entry by its key", `spec: {containers: [{name: b, image: "b:1", env: [{name: Z, value: z}]}]}`, `"env":[{"name":"X","value":"w"},{"name":"Z","value":"z"}]`},
		{"a port by two keys, one of them defaulted", `spec: {containers: [{name: a, ports: [{containerPort: 80, name: http}]}]}`, `{"containerPort":80,"name":"http","protocol":"TCP"}`},
		{"an equal quantity", `spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}]}`, `"cpu":"100m"`},
		{"a new entry", `spec: {containers: [{name: c, image: c}]}`, `"name":"c"`},
		{"the status", "status: {phase: Failed}", ""},
	} {
		p := newPod(t, web)
		text, managers, err := f.Apply(Change{Live: p, Manager: "m"}, config("apiVersion: v1\nkind: Pod\n"+c.of), false)
		if err != nil || !strings.Contains(string(text), c.has) {
			t.Errorf("%s: got %s, error %v; want %q in the JSON", c.name, text, err, c.has)
		}
		if p.ManagedFields != nil || strings.Contains(string(text), "managedFields") {
			t.Errorf("%s: got %s, want it without managed fields", c.name, text)
		}
		for _, m := range managers {
			if raw := m.FieldsV1.GetRawString(); m.Manager == "m" && strings.Contains(raw, "f:status") {
				t.Errorf("%s: got fields %s, want them without f:status", c.name, raw)
			}
		}
	}
	for of, code := range map[string]int{
		"spec: {containers: [{name: a, image: other}]}":                       http.StatusConflict,
		"spec: {containers: [{name: a, args: [w]}]}":                          http.StatusConflict,
		"spec: {tolerations: [{key: b}]}":                                     http.StatusConflict,
		"spec: {containers: [{name: a}, {name: a}]}":                          http.StatusBadRequest,
		"spec: {foo: bar}":                                                    http.StatusBadRequest,
		"spec: [x]":                                                           http.StatusBadRequest,
		"metadata: {managedFields: []}":                                       http.StatusBadRequest,
		"spec: {containers: [{name: a, ports: [{containerPort: {a: b}}]}]}":   http.StatusBadRequest,
		"spec: {containers: [{image: b}]}":                                    http.StatusBadRequest,
		"spec: {containers: [{name: a, resources: {requests: {cpu: 200m}}}]}": http.StatusConflict,
	} {
		_, _, err := f.Apply(Change{Live: newPod(t, web), Manager: "m"}, config("apiVersion: v1\nkind: Pod\n"+of), false)
		if got := codeOf(err); got != code {
			t.Errorf("%s: got status %d, error %v; want status %d", of, got, err, code)
		}
	}
}

func codeOf(err error) int {
	if api := apierrors.APIStatus(nil); errors.As(err, &api) {
		return int(api.Status().Code)
	}
	return server.HTTPStatus(err)
}

// TestUpdate_Resize checks that an Update of the subresource resize records a manager only for the
// changed resources, and not for other fields that differ.
func TestUpdate_Resize(t *testing.T) {
	f := New(kinds)
	live := newPod(t, web)
	managers, err := f.Update(Change{Live: newPod(t, "{}"), Manager: "m"}, live)
	if err != nil || len(managers) != 1 {
		t.Fatal(managers, err)
	}
	live.ManagedFields = managers
	next := newPod(t, strings.NewReplacer("100m", "200m", "a:1", "a:2", "{a: b}", "{a: c}").Replace(web))
	managers, err = f.Update(Change{Live: live, Manager: "m", Subresource: "resize"}, next)
	if err != nil || len(managers) != 2 {
		t.Fatal(managers, err)
	}
	const want = `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}}}}`
	if m := managers[1]; m.Subresource != "resize" || m.FieldsV1.GetRawString() != want {
		t.Errorf("got manager %+v, want subresource resize with the fields %s", m, want)
	}
}

// FuzzApply checks that Apply either applies or rejects every configuration, whatever managed fields
// the pod has. If Apply applied a configuration, a second Apply must succeed and change nothing.
func FuzzApply(f *testing.F) {
	f.Add("metadata: {labels: {c: d}}", `[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}}}]`)
	f.Add(`spec: {containers: [{name: b, env: [{name: Z, value: z}]}]}`, `[{"manager":"m","operation":"Update","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"b\"}":{".":{},"f:env":{}}}}}}]`)
	f.Add(`spec: {containers: [{name: a, ports: [{containerPort: 80}]}], finalizers: [x, x]}`, `[{"manager":"x","operation":"Apply","fieldsV1":{"v:1":{},"i:0":{},"k:{}":{}}},{}]`)
	fields := New(kinds)
	f.Fuzz(func(t *testing.T, of, managers string) {
		c := config("apiVersion: v1\nkind: Pod\n" + of)
		if c == nil {
			return
		}
		live := newPod(t, web)
		var all []metav1.ManagedFieldsEntry
		if json.Unmarshal([]byte(managers), &all) == nil {
			live.ManagedFields = all
		}
		change := Change{Live: live, Manager: "m"}
		if _, err := fields.Update(Change{Live: live, Manager: "u"}, newPod(t, strings.Replace(web, "a:1", "a:2", 1))); err != nil {
			t.Fatal(err)
		}
		text, after, err := fields.Apply(change, c, true)
		if err != nil {
			return
		}
		next := &v1.Pod{}
		if json.Unmarshal(text, next) != nil {
			return // the API rejects this object when it decodes the object
		}
		next.ManagedFields, next.UID = after, types.UID("u1")
		change.Live = next
		again, _, err := fields.Apply(change, c, false)
		if err != nil {
			t.Fatalf("second application of %s: got error %v, want nil", text, err)
		}
		next.ManagedFields = nil
		got := &v1.Pod{}
		if err := json.Unmarshal(again, got); err != nil || !equality.Semantic.DeepEqual(got, next) {
			t.Fatalf("second application: got %s, error %v; want no change by %s", again, err, text)
		}
	})
}
