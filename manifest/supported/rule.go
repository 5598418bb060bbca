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

// verdict defines how podd handles a field that the user wrote.
type verdict int

const (
	// unsupported means that podd refuses the object. It applies to every field that the table
	// does not list.
	unsupported verdict = iota
	supported
	// acceptedWithWarning means that podd accepts the field with a warning, which is the row's note.
	acceptedWithWarning
	// onlyOneValue means that podd accepts only one value. The row's note is this value as JSON, a
	// blank, and the message for other values.
	onlyOneValue
	// refusedWithNote means that podd refuses the object with a message, which is the row's
	// note.
	refusedWithNote
)

// hugePagesPattern matches huge pages of every size.
const hugePagesPattern = v1.ResourceHugePagesPrefix + "*"

// extendedResourcePattern matches every extended resource.
const extendedResourcePattern = "<domain>/<name>"

// row is a row of a table. Its verdict applies to the field at its path and to all fields below
// that have no row. In a path, "[]" matches every item of a list, and "[cpu]" is a key of a map.
type row struct {
	path    string
	verdict verdict
	note    string
}

// A rule belongs to one field. The rules of all fields of a table form a tree.
type rule struct {
	row
	fields map[string]*rule // rules of the fields below, by step of a path; nil if there are none
	isMap  bool             // whether the steps are keys of a map
}

var podRules = sync.OnceValue(newPodRules)

// containerPrefixes lists the prefixes of the paths in containerFields.
var containerPrefixes = []string{"spec.containers[].", "spec.initContainers[]."}

// newPodRules returns the tree of the table for pods.
func newPodRules() *rule {
	root := &rule{}
	for _, r := range podFields {
		root.add(r)
	}
	for _, name := range forbiddenTemplateMetadata {
		root.add(row{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata." + name, refusedWithNote, "only labels and annotations may be set; remove this field"})
	}
	for _, list := range containerPrefixes {
		for _, r := range containerFields {
			r.path = list + r.path
			root.add(r)
		}
	}
	return root
}

// splitPath splits a path of the table: "a[].b[c]" into "a", "[]", "b" and "[c]".
func splitPath(path string) []string {
	return strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
}

// add adds a row and returns the rule of its field.
func (r *rule) add(rw row) *rule {
	for _, step := range splitPath(rw.path) {
		if r.fields == nil {
			r.fields = map[string]*rule{}
			r.isMap = step[0] == '[' && step != "[]"
		}
		if r.fields[step] == nil {
			r.fields[step] = &rule{}
		}
		r = r.fields[step]
	}
	if _, _, err := rw.parseOneValue(); rw.verdict == onlyOneValue && err != nil {
		panic("supported: row " + rw.path + ": " + rw.note + " begins with no JSON")
	}
	r.row = rw
	return r
}

// walk reports Problems of v, the value at path: the fields that the rules refuse or accept with a
// warning, in the order of the field names.
func (r *rule) walk(v any, path string, report func(manifest.Problem)) {
	if r.fields == nil || v == nil {
		r.checkField(v, path, report)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			step, childPath := r.childStep(key, path)
			r.member(step).walk(v[key], childPath, report)
		}
	case []any:
		for i := range v {
			r.member("[]").walk(v[i], path+"["+strconv.Itoa(i)+"]", report)
		}
	}
}

// childStep returns the step of the table for a key of an object at path, and the path of the
// key.
func (r *rule) childStep(key, path string) (childStep, childPath string) {
	switch {
	case r.isMap:
		return "[" + key + "]", path + "[" + key + "]"
	case path == "":
		return key, key
	}
	return key, path + "." + key
}

var unsupportedRule = &rule{}

// member returns the rule for the next step of a path. A step can also match a pattern of resource
// names. If the table has no row for the step, the result has the row of r. If r is the root, the
// step is unsupported.
func (r *rule) member(step string) *rule {
	m := r.fields[step]
	if m == nil {
		m = r.fields[r.resourcePattern(step)]
	}
	switch {
	case m == nil && r.path == "":
		return unsupportedRule
	case m == nil:
		return &rule{row: r.row}
	case m.path == "" && r.path != "":
		return &rule{row: r.row, fields: m.fields, isMap: m.isMap}
	}
	return m
}

// resourcePattern returns the step of the table that matches all huge pages, or all extended
// resources, if the parameter step names one of these resources. Otherwise it returns "".
func (r *rule) resourcePattern(step string) string {
	name := v1.ResourceName(strings.Trim(step, "[]"))
	switch {
	case !r.isMap:
		return ""
	case manifest.IsHugePagesResource(name):
		return "[" + hugePagesPattern + "]"
	case manifest.IsExtendedResource(name):
		return "[" + extendedResourcePattern + "]"
	}
	return ""
}

// checkField calls report with a Problem if the value v of the field at path is refused or
// causes a warning. It ignores null, "" and [].
func (r *rule) checkField(v any, path string, report func(manifest.Problem)) {
	if isEmpty(v) {
		return
	}
	refuse := func(message string) {
		report(manifest.Problem{Severity: manifest.Error, FieldPath: path, Message: message})
	}
	switch r.verdict {
	case unsupported:
		if strings.HasSuffix(path, "]") { // the last step of the path is the name of a resource
			refuse("podd does not provide this resource; remove this entry")
			return
		}
		refuse("not supported by podd; remove this field")
	case onlyOneValue:
		if accepted, message, _ := r.parseOneValue(); !reflect.DeepEqual(v, accepted) {
			refuse(message)
		}
	case refusedWithNote:
		refuse(r.note)
	case acceptedWithWarning:
		if m, ok := v.(map[string]any); !ok || len(m) > 0 {
			report(manifest.Problem{Severity: manifest.Warning, FieldPath: path, Message: r.note})
		}
	}
}

// parseOneValue parses the note of a row with verdict onlyOneValue. It returns the only accepted
// value, and the message for other values.
func (r row) parseOneValue() (accepted any, message string, err error) {
	d := json.NewDecoder(strings.NewReader(r.note))
	err = d.Decode(&accepted)
	return accepted, strings.TrimSpace(r.note[d.InputOffset():]), err
}

// isEmpty reports whether v is null, "" or [].
func isEmpty(v any) bool {
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
