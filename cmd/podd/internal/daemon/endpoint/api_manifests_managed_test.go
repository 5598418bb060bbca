package endpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/runtime/atomicfile"
)

const secretPath = "/api/v1/namespaces/default/secrets"

// configText returns the YAML manifest of the ConfigMap conf. data contains the entries of its field
// data, separated by commas.
func configText(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {" + data + "}"
}

// managersText formats the managers of an object, each with its operation and subresource. A * after a
// manager means that it manages field.
func managersText(all []metav1.ManagedFieldsEntry, field string) string {
	var out []string
	for _, m := range all {
		text := fmt.Sprintf("%s %s", m.Manager, m.Operation)
		if m.Subresource != "" {
			text += " " + m.Subresource
		}
		if m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:`+field+`"`) {
			text += " *"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestManagedFields checks the managers of a ConfigMap, and of its field data.a, after each of several
// changes.
func TestManagedFields(t *testing.T) {
	const objectPath = configPath + "/conf"
	type step struct {
		name                 string
		method, query, media string
		body                 string
		code                 int
		words                []string
		owners               string // expected managersText for data.a; not checked for an error or the create step
	}
	apply := func(manager, data string) step {
		return step{name: manager + " applies " + data, method: "PATCH", query: "?fieldManager=" + manager, media: asApply, body: configText(data), code: 200}
	}
	withOwners := func(s step, owners string, words ...string) step { s.owners, s.words = owners, words; return s }
	withCode := func(s step, code int, words ...string) step { s.code, s.words = code, words; return s }
	forced := func(s step) step { s.name, s.query = s.name+" with force", s.query+"&force=true"; return s }
	create := withCode(apply("one", "a: x, b: x"), 201)
	for name, steps := range map[string][]step{
		"conflict": {
			create,
			withOwners(apply("one", "a: x, b: x"), "one Apply *"),
			withOwners(apply("two", "a: x"), "one Apply *, two Apply *"),
			withCode(apply("two", "a: w"), 409, `conflict with \"one\"`, `"field":".data.a"`, "FieldManagerConflict"),
			withOwners(apply("two", "c: w"), "one Apply *, two Apply", `"a":"x"`, `"c":"w"`),
			withCode(apply("two", "a: w, b: w"), 409, "Apply failed with 2 conflicts", ".data.a", ".data.b"),
			withOwners(forced(apply("two", "a: w")), "one Apply, two Apply *", `"a":"w"`, `"b":"x"`),
			withCode(apply("one", "a: x, b: x"), 409, `conflict with \"two\"`),
		},
		"removal": {
			create,
			withOwners(apply("one", "b: x"), "one Apply", `"data":{"b":"x"}`),
			withOwners(apply("two", "b: x"), "one Apply, two Apply", `"data":{"b":"x"}`),
			withOwners(apply("one", "c: x"), "one Apply, two Apply", `"data":{"b":"x","c":"x"}`), // the manager two still applies the field b
			withOwners(apply("two", ""), "one Apply, two Apply", `"data":{"c":"x"}`),
		},
		"patch of an applied field": {
			create,
			{"patch", "PATCH", "?fieldManager=hand", mergePatchType, `{"data":{"a":"z"}}`, 200, []string{`"a":"z"`}, "hand Update *, one Apply"},
			{"patch without a change", "PATCH", "?fieldManager=other", mergePatchType, `{"data":{"a":"z"}}`, 200, nil, "hand Update *, one Apply"},
			withCode(apply("one", "a: x, b: x"), 409, `conflict with \"hand\" using v1`),
			withOwners(apply("one", "b: x"), "hand Update *, one Apply", `"a":"z"`),
			withOwners(forced(apply("one", "a: x, b: x")), "one Apply *", `"a":"x"`),
		},
		"PUT of an applied field": {
			create,
			{"PUT", "PUT", "", asJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"a":"z","b":"x"}}`, 200, nil, "Go-http-client Update *, one Apply"},
			{"PUT without the field", "PUT", "", asJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"b":"x"}}`, 200, nil, "one Apply"},
			withOwners(apply("one", "a: x, b: x"), "one Apply *"),
		},
		"POST and apply": {
			{"POST", "POST", "?fieldManager=hand", asJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"a":"x"}}`, 201, nil, "hand Update *"},
			withCode(apply("one", "a: w"), 409, `conflict with \"hand\" using v1`),
			withOwners(apply("one", "b: w"), "hand Update *, one Apply", `"a":"x"`),
		},
		"managed fields set by a client": {
			create,
			{"manager renamed", "PATCH", "", "application/json-patch+json", `[{"op":"replace","path":"/metadata/managedFields/0/manager","value":"two"}]`, 200, nil, "two Apply *"},
			withOwners(apply("two", "a: w"), "two Apply *", `"data":{"a":"w"}`),
			{"invalid operation", "PATCH", "", mergePatchType, `{"metadata":{"managedFields":[{"manager":"x","operation":"Steal","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]}}`, 200, nil, "two Apply *"},
			{"long manager name", "PATCH", "", mergePatchType, `{"metadata":{"managedFields":[{"manager":"` + strings.Repeat("x", 129) + `","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]}}`, 422, []string{"metadata.managedFields[0].manager"}, ""},
			{"empty list", "PATCH", "", mergePatchType, `{"metadata":{"managedFields":[]}}`, 200, nil, ""},
			{"patch without managed fields", "PATCH", "?fieldManager=hand", mergePatchType, `{"data":{"b":"z"}}`, 200, nil, ""},
			withCode(apply("one", "a: x"), 409, `conflict with \"before-first-apply\"`),
			withOwners(forced(apply("one", "a: x")), "before-first-apply Update, one Apply *", `"b":"z"`),
			{"list with an empty entry", "PATCH", "", "application/json-patch+json", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`, 200, nil, ""},
		},
		"invalid requests": {
			create,
			withCode(step{name: "missing manager", method: "PATCH", media: asApply, body: configText("")}, 422, "fieldManager"),
			withCode(step{name: "long manager name", method: "PATCH", query: "?fieldManager=" + strings.Repeat("x", 129), media: asApply, body: configText("")}, 422, "fieldManager"),
			withCode(step{name: "force without apply", method: "PATCH", query: "?force=true", media: mergePatchType, body: "{}"}, 422, "force: Forbidden"),
			withCode(apply("one", "}"), 400),
			withCode(apply("one", "a: x}\nfoo: {bar: baz"), 400, "foo"),
			withCode(step{name: "managedFields in the body", method: "PATCH", query: "?fieldManager=x", media: asApply, body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {managedFields: []}"}, 400, "managedFields must be nil"),
			withCode(step{name: "other name", method: "PATCH", query: "?fieldManager=x", media: asApply, body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}"}, 400, "does not match the name"),
			withCode(step{name: "other namespace", method: "PATCH", query: "?fieldManager=x", media: asApply, body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: other}"}, 400, "does not match the namespace"),
			withCode(step{name: "old resource version", method: "PATCH", query: "?fieldManager=x", media: asApply, body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {resourceVersion: '1'}"}, 409, "has been modified"),
			withCode(step{name: "other UID", method: "PATCH", query: "?fieldManager=x", media: asApply, body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {uid: x}"}, 409, "UID"),
			withOwners(step{name: "dry run", method: "PATCH", query: "?fieldManager=x&force=1&dryRun=All", media: asApply, body: configText("a: w"), code: 200}, "one Apply, x Apply *", `"a":"w"`),
			withOwners(apply("one", "a: x, b: x"), "one Apply *", `"a":"x"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWritable(t)
			for _, s := range steps {
				path := objectPath
				if s.method == "POST" {
					path = configPath
				}
				a := w.do(s.method, path+s.query, s.media, s.body)
				if err := a.check(s.code, s.words...); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				if got := managersText(a.meta.ManagedFields, "a"); s.code < 300 && got != s.owners && s.name != create.name {
					t.Fatalf("%s: got managers %q, want %q: %s", s.name, got, s.owners, a.body)
				}
				if now := w.do("GET", objectPath, "", ""); s.code < 300 && !strings.Contains(s.query, "dryRun") && now.body != a.body {
					t.Fatalf("%s: GET after the change: got %s, want the response to the change: %s", s.name, now.body, a.body)
				}
			}
		})
	}
}

// setManagedTime sets the time of all managed fields in the file of the object with this name to a time
// in the past. It returns this time in JSON.
func (w *writableAPI) setManagedTime(name string) string {
	w.t.Helper()
	const past = `"2020-01-02T03:04:05Z"`
	files, err := filepath.Glob(filepath.Join(w.dir, "*_"+name+".json"))
	if err != nil || len(files) != 1 {
		w.t.Fatalf("files of %s: got %v, error %v; want one file", name, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		w.t.Fatal(err)
	}
	text = regexp.MustCompile(`"time": "[^"]*"`).ReplaceAll(text, []byte(`"time": `+past))
	if err := atomicfile.Write(files[0], text); err != nil {
		w.t.Fatal(err)
	}
	return past
}

// TestManagedFields_Stored checks that managed fields are stored with objects of all kinds, and that an
// apply without a change keeps their times. It also checks managed fields that are too many, too large
// or damaged.
func TestManagedFields_Stored(t *testing.T) {
	w := newWritable(t)
	for _, c := range []struct{ path, name, body string }{
		{secretPath, "s", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"hidden"},"data":{"b":"eA=="}}`},
		{"/api/v1/namespaces/default/persistentvolumeclaims", "c", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
		{"/api/v1/persistentvolumes", "v", `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/srv"},"storageClassName":"x","claimRef":{"name":"c","namespace":"default"}}}`},
		{trustBundlesPath, "example.com:mesh:a", trustBundleText(t)},
		{csiDriversPath, "disk.example.com", csiDriverText},
		{podsPath, "p", podText("p", "", "")},
	} {
		objectPath := c.path + "/" + c.name
		if err := w.do("PATCH", objectPath+"?fieldManager=one", asApply, c.body).check(201, `"manager":"one"`); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		past := w.setManagedTime(c.name)
		again := w.do("PATCH", objectPath+"?fieldManager=one", asApply, c.body)
		if err := again.check(200, past); err != nil {
			t.Errorf("%s: apply without a change: %v", c.name, err)
		}
		if stored := w.do("GET", objectPath, "", ""); stored.body != again.body {
			t.Errorf("%s: GET after the second apply: got %s, want the response to the apply: %s", c.name, stored.body, again.body)
		}
		labelled := strings.Replace(c.body, `"metadata":{`, `"metadata":{"labels":{"x":"y"},`, 1)
		if err := w.do("PATCH", objectPath+"?fieldManager=one", asApply, labelled).check(200, `"x":"y"`); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if a := w.do("PATCH", objectPath+"?fieldManager=one", asApply, c.body); a.check(200) != nil || len(a.meta.Labels) > 0 {
			t.Errorf("%s: apply without the label: got %s, want no label", c.name, a.body)
		}
	}
	// If there are more than 10 managers with the operation Update, the oldest are merged into one, with the
	// name "ancient-changes".
	for n := range 14 {
		if err := w.do("PATCH", secretPath+"/s?fieldManager=m"+fmt.Sprint(n), mergePatchType, fmt.Sprintf(`{"metadata":{"labels":{"l%d":"x"}}}`, n)).check(200); err != nil {
			t.Fatal(err)
		}
	}
	if a := w.do("GET", secretPath+"/s", "", ""); len(a.meta.ManagedFields) != 11 || !strings.Contains(a.body, "ancient-changes") {
		t.Errorf("after 14 updates: got %d managers in %s; want 11 managers, one of them ancient-changes", len(a.meta.ManagedFields), a.body)
	}
	// A POST drops managed fields that would be too large. An apply, which needs them, fails.
	many := func(n int) string {
		data := make([]string, n)
		for i := range data {
			data[i] = fmt.Sprintf("k%05d: x", i)
		}
		return strings.Join(data, ", ")
	}
	if a := w.do("POST", configPath, "application/yaml", configText(many(26_000))); a.check(201) != nil || len(a.meta.ManagedFields) > 0 {
		t.Errorf("POST with large managed fields: got status %d, %d managers: %.300s, want 201 without managers", a.code, len(a.meta.ManagedFields), a.body)
	}
	if err := w.do("DELETE", configPath+"/conf", "", "").check(200); err != nil {
		t.Error(err)
	}
	if err := w.do("PATCH", configPath+"/conf?fieldManager=x", asApply, configText(many(26_000))).check(422); err != nil {
		t.Errorf("apply with large managed fields: %.300s", err)
	}
	if err := w.do("PATCH", configPath+"/huge?fieldManager=x", asApply, configText(many(110_000))).check(413); err != nil {
		t.Errorf("apply of an object that is too large: %.300s", err)
	}
	// Clients can still change an object with damaged managed fields in its file.
	file := filepath.Join(w.dir, "pod_default_p.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"operation": "Apply"`, `"operation": "x"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.do("PATCH", podsPath+"/p?fieldManager=one", asApply, strings.Replace(podText("p", "", ""), "a:1", "a:9", 1)).check(409, "before-first-apply"); err != nil {
		t.Errorf("apply with damaged managed fields: %v", err)
	}
	if err := w.do("PATCH", podsPath+"/p?fieldManager=one&force=true", asApply, strings.Replace(podText("p", "", ""), "a:1", "a:9", 1)).check(200, "a:9"); err != nil {
		t.Errorf("forced apply with damaged managed fields: %v", err)
	}
}
