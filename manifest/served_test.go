package manifest

import (
	"strings"
	"testing"
)

// TestServedTable: every row names a field that a Pod has, once.
func TestServedTable(t *testing.T) {
	seen := map[string]bool{}
	check := func(prefix string, rows []row) {
		for _, r := range rows {
			path := prefix + r.path
			if seen[path] {
				t.Errorf("%s is in the table twice", path)
			}
			seen[path] = true
			if !exists(podShape(), path) {
				t.Errorf("%s is no field of a Pod", path)
			}
			if says := r.note != ""; says != (r.verdict == noted || r.verdict == only || r.verdict == refused) {
				t.Errorf("%s: note %q does not fit its verdict", path, r.note)
			}
		}
	}
	check("", servedFields)
	check("spec.containers[].", servedContainerFields)
	for _, field := range serverFields {
		if !exists(podShape(), "metadata."+field) {
			t.Errorf("metadata.%s is no field of a Pod", field)
		}
	}
	for _, field := range sandboxFields {
		if !exists(podShape(), "spec."+field) {
			t.Errorf("spec.%s is no field of a Pod", field)
		}
	}
}

// exists finds a path of the table in a shape.
func exists(s *shape, path string) bool {
	for _, step := range strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".") {
		switch {
		case s == nil:
			return false
		case step == "[]":
			s = s.elem
		default:
			s = s.member(step)
		}
	}
	return s != nil
}

// TestEveryRuleDecides: a field is either decided or leads to fields that are.
func TestEveryRuleDecides(t *testing.T) {
	var walk func(path string, r *rule)
	walk = func(path string, r *rule) {
		if r.path != "" && r.fields != nil {
			t.Errorf("%s is decided as a whole and in parts", path)
		}
		for key, member := range r.fields {
			walk(path+"/"+key, member)
		}
	}
	walk("", servedRules())
}
