package mergepatch

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestDiff checks the patches between pairs of JSON objects.
func TestDiff(t *testing.T) {
	type fields = map[string]any
	for name, test := range map[string]struct {
		a, b fields
		want string
	}{
		"equal":                  {fields{"a": "1", "b": fields{"c": "2"}}, fields{"a": "1", "b": fields{"c": "2"}}, `{}`},
		"added":                  {fields{}, fields{"a": "1"}, `{"a":"1"}`},
		"added object":           {fields{}, fields{"a": fields{"b": "1"}}, `{"a":{"b":"1"}}`},
		"changed":                {fields{"a": "1", "b": "2"}, fields{"a": "3", "b": "2"}, `{"a":"3"}`},
		"removed":                {fields{"a": "1", "b": "2"}, fields{"b": "2"}, `{"a":null}`},
		"nested":                 {fields{"a": fields{"b": "1", "c": "2", "d": "3"}}, fields{"a": fields{"b": "4", "d": "3"}}, `{"a":{"b":"4","c":null}}`},
		"changed list":           {fields{"a": []any{"1", "2"}}, fields{"a": []any{"1", "3"}}, `{"a":["1","3"]}`},
		"object becomes string":  {fields{"a": fields{"b": "1"}}, fields{"a": "2"}, `{"a":"2"}`},
		"string becomes object":  {fields{"a": "2"}, fields{"a": fields{"b": "1"}}, `{"a":{"b":"1"}}`},
		"object without a field": {fields{"a": fields{"b": "1"}}, fields{"a": fields{}}, `{"a":{"b":null}}`},
	} {
		if got := Encode(Diff(test.a, test.b)); got != test.want {
			t.Errorf("%s: got patch %s, want %s", name, got, test.want)
		}
	}
}

func TestFields(t *testing.T) {
	got, err := Fields(v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: "10.0.0.1"}}})
	if want := `{"phase":"Running","podIPs":[{"ip":"10.0.0.1"}]}`; err != nil || Encode(got) != want {
		t.Errorf("got fields %s, error %v; want %s", Encode(got), err, want)
	}
	if got, err := Fields([]string{"a"}); err == nil {
		t.Errorf("a list: got fields %v, want an error", got)
	}
}

// TestEncode_Panic checks that Encode panics if a value has no JSON form.
func TestEncode_Panic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("got no panic, want one")
		}
	}()
	Encode(func() {})
}
