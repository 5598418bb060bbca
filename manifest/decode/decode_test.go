package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/manifest/decode"
)

const web = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main, image: \"i:1\"}]}\n"

// problems returns the Problems of a text as lines.
func problems(text string, o decode.Options) []string {
	var lines []string
	for _, p := range decode.File([]byte(text), o).Problems {
		lines = append(lines, p.String())
	}
	return lines
}

// TestFile checks the number of pods and the Problems of valid and invalid texts.
func TestFile(t *testing.T) {
	tests := map[string]struct {
		text string
		pods int
		want []string
	}{
		"nothing":           {"", 0, nil},
		"blank":             {" \n\n", 0, nil},
		"comment":           {"# nothing yet\n", 0, nil},
		"markers":           {"---\n---\n...\n---\n", 0, nil},
		"null":              {"null\n", 0, nil},
		"byte order mark":   {"\xef\xbb\xbf" + web, 1, nil},
		"mark and comment":  {"\xef\xbb\xbf# c\n---\n" + web, 1, nil},
		"windows lines":     {strings.ReplaceAll(web+"---\n"+web, "\n", "\r\n"), 2, nil},
		"old mac lines":     {strings.ReplaceAll(web+"---\n"+web, "\n", "\r"), 2, nil},
		"no line at end":    {strings.TrimSpace(web), 1, nil},
		"marker with more":  {"--- # first\n" + web + "--- \n" + web + "---\t\n" + web, 3, nil},
		"no marker":         {"---x: 1\n", 0, []string{`f:1:1: error: kind: required; podd reads Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, ClusterTrustBundle, CSIDriver and lists of them`}},
		"marker in scalar":  {strings.Replace(web, "image:", "args: [\"a\n  --- b\n  ---\"], image:", 1), 1, nil},
		"end and directive": {web + "...\n# c\n%YAML 1.1\n---\n" + web, 2, nil},
		"inline documents":  {"--- {apiVersion: v1, kind: List, items: []}\n--- {}\n", 0, []string{`f:2:5: error: kind: required; podd reads Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, ClusterTrustBundle, CSIDriver and lists of them`}},
		"empty list":        {"apiVersion: v1\nkind: PodList\nitems: []\n", 0, nil},
		"null list":         {`{"apiVersion":"v1","kind":"PodList","items":null}`, 0, nil},
		"items is a map":    {"apiVersion: v1\nkind: List\nitems: {}\n", 0, []string{`f:3:1: error: items: must be a list; write [] for an empty one`}},
		"items cut off":     {"apiVersion: v1\nkind: List\nitems:\n", 0, []string{`f:3:1: error: items: must be a list; write [] for an empty one`}},
		"no items":          {"apiVersion: v1\nkind: List\n", 0, []string{`f:1:1: error: items: must be a list; write [] for an empty one`}},
		"utf-16":            {"\xff\xfea\x00", 0, []string{`f: error: the file is encoded in UTF-16; save it in UTF-8`}},
		"latin-1":           {"a: \xe9\n", 0, []string{`f: error: the file is not valid UTF-8; write YAML or JSON`}},
		"kind is a number":  {"apiVersion: v1\nkind: 1\n", 0, []string{`f:2:1: error: kind: required; podd reads Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, ClusterTrustBundle, CSIDriver and lists of them`}},
		"two values":        {`{"a": 1} {"b": 2}`, 0, []string{`f:1: error: parsing YAML: did not find expected <document start>`}},
		"broken json":       {"{\n\"a\": 1,\n\"b\": }x\n", 0, []string{`f:3: error: parsing YAML: did not find expected <document start>`}},
		"tab":               {"a:\n\tb: c\n", 0, []string{`f:2: error: parsing YAML: found character that cannot start any token; the line is indented with a tab; use spaces`}},
		"open quote":        {"a: b\nc: \"d\ne: f\ng: h\n", 0, []string{`f:2: error: parsing YAML: found unexpected end of stream`}},
		"wrong indent":      {"a:\n  b: c\n  d:\n    e: f\n   g: h\n", 0, []string{`f:5: error: parsing YAML: did not find expected key`}},
		"open bracket":      {"a: [b,\nc: d\n", 0, []string{`f:3: error: parsing YAML: did not find expected ',' or ']'`}},
		"one bad of three":  {web + "---\na: 'b\n---\n" + web, 2, []string{`f:6: error: parsing YAML: found unexpected end of stream`}},
		"unknown anchor":    {"a: *b\n", 0, []string{`f:1: error: parsing YAML: unknown anchor referenced; quote a value that begins with *`}},
		"infinity":          {"apiVersion: v1\nkind: Pod\nspec: .inf\n", 0, []string{`f:1:1: error: parsing: json: unsupported value: +Inf`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := decode.File([]byte(tt.text), decode.Options{Path: "f", NodeName: "n"})
			if len(f.Pods) != tt.pods {
				t.Errorf("got %d pods, want %d", len(f.Pods), tt.pods)
			}
			if diff := cmp.Diff(tt.want, problems(tt.text, decode.Options{Path: "f", NodeName: "n"})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if f.HasRefusedDocument() != (len(tt.want) > 0) {
				t.Errorf("HasRefusedDocument: got %t with problems %v, want true only if there are problems", f.HasRefusedDocument(), f.Problems)
			}
		})
	}
}

// TestFile_Limits checks that File refuses a text whose decoding would need too much memory. File
// must refuse the text before it decodes it.
func TestFile_Limits(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	long := fmt.Sprintf("a: &a %s\nb: [%s]\n", strings.Repeat("x", 1<<20), strings.TrimSuffix(strings.Repeat("*a,", 100), ","))
	tests := map[string]struct{ text, want string }{
		"size":        {strings.Repeat(" ", 10<<20+1), "f: error: file too large: 10485761 bytes (limit 10485760); split it"},
		"laughs":      {laughs, "f:1:1: error: the YAML aliases of the document expand to too much data; replace them with their values"},
		"long laughs": {long, "f:1:1: error: the YAML aliases of the document expand to too much data; replace them with their values"},
		"cycle":       {"a: &a [*a]\n", "f:1:1: error: the document is nested too deeply (limit 100 levels)"},
		"merge cycle": {"a: &a\n  <<: *a\n", "f:1:1: error: the document is nested too deeply (limit 100 levels)"},
		"depth":       {strings.Repeat("[", 200) + strings.Repeat("]", 200), "f:1:1: error: the document is nested too deeply (limit 100 levels)"},
		"json depth":  {strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "f:1:1: error: the document is nested too deeply (limit 100 levels)"},
		"more depth":  {strings.Repeat("[", 1<<20), "f:1:1: error: the document is too large: more than 100000 lines and items; split it"},
		"dashes":      {strings.Repeat("- ", 1<<20), "f:1:1: error: the document is too large: more than 100000 lines and items; split it"},
		"documents":   {strings.Repeat("---\n", 10001), "f: error: too many documents: 10001 (limit 10000); split the file"},
		"lines":       {"a:\n" + strings.Repeat("- b\n", 1<<17), "f:1:1: error: the document is too large: more than 100000 lines and items; split it"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tt.want}, problems(tt.text, decode.Options{Path: "f"})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFile_ManyProblems checks that the number of Problems is limited.
func TestFile_ManyProblems(t *testing.T) {
	text := web
	for i := range 1000 {
		text += fmt.Sprintf("unknown%d: 1\n", i)
	}
	got := problems(text, decode.Options{Path: "f"})
	if len(got) != 101 || got[0] != "f:1:1: warning: 900 more problems are not listed; fix these first" {
		t.Errorf("got %d problems, the first %q; want 101, and the first must say that 900 more were omitted", len(got), got[0])
	}
	if n := len(decode.File([]byte(text), decode.Options{}).Pods); n != 1 {
		t.Errorf("got %d pods, want 1 because there are only warnings", n)
	}
}

// TestFile_ManyInvalidDocuments checks that the number of Problems of all documents is
// limited.
func TestFile_ManyInvalidDocuments(t *testing.T) {
	f := decode.File([]byte(strings.Repeat("---\nkind: What\n", 5000)), decode.Options{Path: "f"})
	if n := len(f.Problems); n != 1001 || f.Problems[n-1].String() != "f: error: 4000 more problems are not listed; fix these first" {
		t.Errorf("got %d problems, the last %s; want 1001, and the last must say that 4000 more were omitted", n, f.Problems[n-1])
	}
}

// TestFile_WrongCase checks that a field whose name differs only in its case is not decoded.
func TestFile_WrongCase(t *testing.T) {
	f := decode.File([]byte(strings.Replace(web, "spec: {", "spec: {HostNetwork: true, Containers: [{name: other, image: x}], ", 1)), decode.Options{Path: "f"})
	if len(f.Pods) != 1 {
		t.Fatalf("got %d pods, want 1; problems: %v", len(f.Pods), f.Problems)
	}
	if spec := f.Pods[0].Object.Spec; spec.HostNetwork || len(spec.Containers) != 1 || spec.Containers[0].Name != "main" {
		t.Errorf("got hostNetwork %t and containers %v, want false and only container main", spec.HostNetwork, spec.Containers)
	}
}

// TestFile_Strict checks that a pod with a warning is refused in strict mode.
func TestFile_Strict(t *testing.T) {
	text := web + "kinds: Pod\nkind: Pod\n"
	want := []string{
		`f:5:1: error: kinds: unknown field; did you mean "kind"?`,
		`f:6:1: error: kind: duplicate field, also on line 2, and the last value is used; remove one`,
	}
	f := decode.File([]byte(text), decode.Options{Path: "f", Strict: true})
	if len(f.Pods) != 0 || !f.HasRefusedDocument() {
		t.Errorf("strict: got %d pods, HasRefusedDocument %t; want 0 pods, true", len(f.Pods), f.HasRefusedDocument())
	}
	if diff := cmp.Diff(want, problems(text, decode.Options{Path: "f", Strict: true})); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if f := decode.File([]byte(text), decode.Options{Path: "f"}); len(f.Pods) != 1 || f.HasRefusedDocument() || len(f.Problems) != 2 {
		t.Errorf("not strict: got %d pods, problems %v, want a pod and a warning", len(f.Pods), f.Problems)
	}
}

// TestFile_HidesSecrets checks that no Problem contains a value of a Secret or of an
// environment variable.
func TestFile_HidesSecrets(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: hunter2!}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: [hunter2]}\nstringData: {q: {hunter2: x}}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: hunter2\n",
		strings.Replace(web, "name: main", `name: main, env: [{name: A, value: "hunter2\0"}, {name: B, value: [hunter2]}, {name: C, value: hunter2, valueFrom: {}}]`, 1),
	} {
		got := strings.Join(problems(text, decode.Options{Path: "f"}), "\n")
		if got == "" || strings.Contains(got, "hunter2") {
			t.Errorf("problems of %q: got a secret in\n%s", text, got)
		}
	}
}
