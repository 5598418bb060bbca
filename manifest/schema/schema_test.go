package schema

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest/document"
)

// A config has a field of every kind.
type config struct {
	Inner    `json:",inline"`
	Name     string            `json:"name"`
	Enabled  *bool             `json:"enabled"`
	Count    int32             `json:"count"`
	Level    uint8             `json:"level"`
	Factor   float64           `json:"factor"`
	Labels   map[string]string `json:"labels"`
	Words    []string          `json:"words"`
	Data     []byte            `json:"data"`
	Wait     metav1.Duration   `json:"wait"`
	Size     resource.Quantity `json:"size"`
	Next     *config           `json:"next"`
	Free     any               `json:"free"`
	Children []Inner           `json:"children"`
	Hidden   string            `json:"-"`
}

type Inner struct {
	Kind string `json:"kind"`
	Deep struct {
		Only string `json:"only"`
	} `json:"deep"`
}

// parse returns the value of a text.
func parse(t *testing.T, text string) document.Value {
	t.Helper()
	parts, err := document.Split([]byte(text))
	if err != nil || len(parts) != 1 {
		t.Fatalf("splitting %q: got %d parts, error %v; want 1 part", text, len(parts), err)
	}
	v, syntax := document.Parse(parts[0])
	if syntax != nil {
		t.Fatalf("parsing %q: %v", text, syntax)
	}
	return v
}

func TestSchema_Check(t *testing.T) {
	type object = map[string]any
	s := New[config]()
	for name, tt := range map[string]struct {
		text   string
		faults []string
		clean  any // after Check
		patch  any // after CheckPatch, if it differs
	}{
		"valid": {`{kind: a, name: b, enabled: true, count: 1, level: 255, factor: 1, data: YQ==, wait: 10s, size: 1Gi, free: [1]}`, nil,
			object{"kind": "a", "name": "b", "enabled": true, "count": int64(1), "level": int64(255), "factor": int64(1),
				"data": "YQ==", "wait": "10s", "size": "1Gi", "free": []any{int64(1)}}, nil},
		"null": {`{name: null, labels: {a: null}, next: null}`, nil,
			object{"labels": object{"a": ""}}, object{"name": nil, "labels": object{"a": nil}, "next": nil}},
		"unknown":       {`{nmae: x, next: {free: x, Hidden: y}}`, []string{`next.Hidden: unknown field; remove it`, `nmae: unknown field; did you mean "name"?`}, object{"next": object{"free": "x"}}, nil},
		"misplaced":     {`{only: x, deep: {next: {}}}`, []string{`deep.next: unknown field; did you mean "next" at the top level?`, `only: unknown field; did you mean "deep.only"?`}, object{"deep": object{}}, nil},
		"text":          {`{name: 1, kind: yes}`, []string{`kind: must be a string, not a boolean; put it in quotes, because YAML reads yes, no, on, off, y and n as booleans`, `name: must be a string, not a number; put it in quotes`}, object{}, nil},
		"boolean":       {`{enabled: "true"}`, []string{`enabled: must be a boolean, not a string; write true or false without quotes`}, object{}, nil},
		"integer":       {`{count: "1"}`, []string{`count: must be an integer, not a string; remove the quotes`}, object{}, nil},
		"range":         {`{count: 2147483648, level: -1}`, []string{`count: is out of range; must be between -2147483648 and 2147483647`, `level: is out of range; must be between 0 and 255`}, object{}, nil},
		"fraction":      {`{count: 1.5}`, []string{`count: must be an integer of at most 64 bits`}, object{}, nil},
		"number":        {`{factor: [1]}`, []string{`factor: must be a number, not a list`}, object{}, nil},
		"base64":        {`{data: "%"}`, []string{`data: is not valid base64; encode the value, or use stringData in a Secret`}, object{}, nil},
		"duration":      {`{wait: 1 minute}`, []string{`wait: is not a duration; write something like 10s, 5m or 1h30m`}, object{}, nil},
		"quantity":      {`{size: big}`, []string{`size: is not a quantity; write something like 100m, 0.5, 64Mi or 1Gi`}, object{}, nil},
		"object":        {`{deep: [], labels: x}`, []string{`deep: must be an object, not a list`, `labels: must be an object, not a string`}, object{}, nil},
		"map value":     {`{labels: {a.b: 1, c: d}}`, []string{`labels[a.b]: must be a string, not a number; put it in quotes`}, object{"labels": object{"c": "d"}}, nil},
		"list":          {`{words: a}`, []string{`words: must be a list such as [a, b], not a string`}, object{}, nil},
		"list element":  {`{words: [a, 1, b]}`, []string{`words[1]: must be a string, not a number; put it in quotes`}, object{"words": []any{"a", nil, "b"}}, object{}},
		"list of lists": {`{children: [{deep: {x: 1}}, {kind: a}]}`, []string{`children[0].deep.x: unknown field; remove it`}, object{"children": []any{object{"deep": object{}}, object{"kind": "a"}}}, nil},
		"top level":     {`[a]`, []string{`: must be an object, not a list`}, nil, nil},
	} {
		var faults []string
		report := func(f Fault) { faults = append(faults, f.Path+": "+f.Message) }
		tree := parse(t, tt.text).Tree
		if diff := cmp.Diff(tt.clean, s.Check(tree, report)); diff != "" {
			t.Errorf("%s: clean tree of Check (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.faults, faults, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: faults that Check reports (-want +got):\n%s", name, diff)
		}
		faults = nil
		if tt.patch == nil {
			tt.patch = tt.clean
		}
		if diff := cmp.Diff(tt.patch, s.CheckPatch(tree, report)); diff != "" {
			t.Errorf("%s: clean tree of CheckPatch (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.faults, faults, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: faults of CheckPatch (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(parse(t, tt.text).Tree, tree); diff != "" {
			t.Errorf("%s: the argument was modified (-want +got):\n%s", name, diff)
		}
	}
}

func TestSchema_Index(t *testing.T) {
	s := New[config]()
	text := "# a comment\nname: a\nlabels:\n  a.b: x\nwords: [p, q]\nbase: &base {kind: k}\n" +
		"deep:\n  other: {x: 1}\n  only: y\nchildren:\n- <<: *base\n  kind: l\n- *base\nname: b\n"
	var faults []Fault
	fields := s.Index(parse(t, text).Node, func(f Fault) { faults = append(faults, f) })
	got := map[string]string{}
	for path, at := range fields {
		got[path] = fmt.Sprintf("%d:%d", at.Line, at.Column)
	}
	want := map[string]string{
		"name": "14:1", "labels": "3:1", "labels[a.b]": "4:3", "words": "5:1", "words[0]": "5:9", "words[1]": "5:12",
		"base": "6:1", "deep": "7:1", "deep.other": "8:3", "deep.only": "9:3", "children": "10:1", "children[0]": "11:3",
		"children[0].kind": "12:3", "children[1]": "13:3", "children[1].kind": "6:14",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if len(faults) != 1 || faults[0].Kind != DuplicateField || faults[0].Path != "name" || faults[0].Position.Line != 14 ||
		faults[0].Message != "duplicate field, also on line 2, and the last value is used; remove one" {
		t.Errorf("got faults %+v, want one duplicate field in line 14", faults)
	}
}

func TestNew_Unchecked(t *testing.T) {
	s := New[config]("deep.only", "count")
	tree := map[string]any{"count": "x", "deep": map[string]any{"only": []any{int64(1)}}}
	clean := s.Check(tree, func(f Fault) { t.Errorf("got fault %+v, want none", f) })
	if diff := cmp.Diff(any(tree), clean); diff != "" {
		t.Errorf("clean tree (-want +got):\n%s", diff)
	}
}
