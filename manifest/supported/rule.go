package supported

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// verdict is how a field that the user wrote is handled.
type verdict int

const (
	// unsupported refuses the pod. It also applies to every field that the table does not
	// list.
	unsupported verdict = iota
	supported
	// warned accepts the field with a warning, the row's note.
	warned
	// oneValue accepts one value. The row's note is that value as JSON and, after a blank, the
	// message for other values.
	oneValue
	// refusedWithNote is unsupported with a message, the row's note.
	refusedWithNote
)

// hugePagesRow matches huge pages of every size.
const hugePagesRow = v1.ResourceHugePagesPrefix + "*"

// extendedRow matches every extended resource.
const extendedRow = "<domain>/<name>"

// row is a row of the table. Its path ends at the topmost field that is handled as a whole;
// "[]" matches every item of a list, and "[cpu]" is a key of a map.
type row struct {
	path    string
	verdict verdict
	note    string
}

// rule is the table as a tree of fields.
type rule struct {
	row
	fields map[string]*rule // nil: the row decides; the keys are steps of a path
	isMap  bool             // the steps are keys of a map
}

var podRules = sync.OnceValue(newPodRules)

// containerRows lists the prefixes of the fields in containerFields.
var containerRows = []string{"spec.containers[].", "spec.initContainers[]."}

// newPodRules returns the tree of the table.
func newPodRules() *rule {
	root := &rule{}
	for _, r := range podFields {
		root.add(r)
	}
	for _, name := range templateMetadata {
		root.add(row{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata." + name, refusedWithNote, "only labels and annotations may be set; remove it"})
	}
	for _, list := range containerRows {
		for _, r := range containerFields {
			r.path = list + r.path
			root.add(r)
		}
	}
	return root
}

// steps splits a path of the table: "a[].b[c]" into "a", "[]", "b" and "[c]".
func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
}

// add adds a row and returns the rule of its field.
func (r *rule) add(rw row) *rule {
	for _, step := range steps(rw.path) {
		if r.fields == nil {
			r.fields = map[string]*rule{}
			r.isMap = step[0] == '[' && step != "[]"
		}
		if r.fields[step] == nil {
			r.fields[step] = &rule{}
		}
		r = r.fields[step]
	}
	if _, _, err := rw.exception(); rw.verdict == oneValue && err != nil {
		panic("supported: row " + rw.path + ": " + rw.note + " begins with no JSON")
	}
	r.row = rw
	return r
}

// walk reports the fields of a tree that the rule refuses or warns about, in the order of
// their names. Their path begins with path.
func (r *rule) walk(v any, path string, report func(manifest.Problem)) {
	if r.fields == nil || v == nil {
		r.checkField(v, path, report)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			step, at := r.step(key, path)
			r.member(step).walk(v[key], at, report)
		}
	case []any:
		for i := range v {
			r.member("[]").walk(v[i], path+"["+strconv.Itoa(i)+"]", report)
		}
	}
}

// step returns the step of the table for a key of an object at path, and the path of the
// key.
func (r *rule) step(key, path string) (step, at string) {
	switch {
	case r.isMap:
		return "[" + key + "]", path + "[" + key + "]"
	case path == "":
		return key, key
	}
	return key, path + "." + key
}

var unsupportedRule = &rule{}

// member returns the rule for a step. Resource names have patterns.
func (r *rule) member(step string) *rule {
	if m := r.fields[step]; m != nil {
		return m
	}
	if m := r.fields[r.pattern(step)]; m != nil {
		return m
	}
	return unsupportedRule
}

// pattern returns the step that matches the resource name in a step, or "".
func (r *rule) pattern(step string) string {
	name := v1.ResourceName(strings.Trim(step, "[]"))
	switch {
	case !r.isMap:
		return ""
	case manifest.IsHugePages(name):
		return "[" + hugePagesRow + "]"
	case manifest.IsExtended(name):
		return "[" + extendedRow + "]"
	}
	return ""
}

// checkField checks one field. null, "" and [] count as missing.
func (r *rule) checkField(v any, path string, report func(manifest.Problem)) {
	if empty(v) {
		return
	}
	refuse := func(message string) {
		report(manifest.Problem{Severity: manifest.Error, Field: path, Message: message})
	}
	switch r.verdict {
	case unsupported:
		if strings.HasSuffix(path, "]") { // a resource name
			refuse("podd does not provide this resource; remove it")
			return
		}
		refuse("not supported by podd; remove it")
	case oneValue:
		if accepted, why, _ := r.exception(); !reflect.DeepEqual(v, accepted) {
			refuse(why)
		}
	case refusedWithNote:
		refuse(r.note)
	case warned:
		if m, ok := v.(map[string]any); !ok || len(m) > 0 {
			report(manifest.Problem{Severity: manifest.Warning, Field: path, Message: r.note})
		}
	}
}

// exception returns the only accepted value, and the message for other values.
func (r row) exception() (accepted any, why string, err error) {
	d := json.NewDecoder(strings.NewReader(r.note))
	err = d.Decode(&accepted)
	return accepted, strings.TrimSpace(r.note[d.InputOffset():]), err
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}
