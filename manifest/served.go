package manifest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// checkServed refuses what the user wrote and podd does not serve, so that
// nothing is dropped in silence. Which fields those are stands in servedFields.
func checkServed(user any, n *notes) {
	servedRules().walk(user, podShape(), "", n)
}

// verdict is what happens to a field that the user wrote.
type verdict int

const (
	// unserved refuses the pod; it is also the verdict on every field that the
	// table does not name.
	unserved verdict = iota
	served
	// noted is accepted with a warning, the row's note.
	noted
	// only is refused but for one value: the row's note is that value as JSON and,
	// behind a blank, why no other.
	only
	// refused is unserved with a reason of its own, the row's note.
	refused
)

// hugePagesRow stands for every size.
const hugePagesRow = v1.ResourceHugePagesPrefix + "*"

// extendedRow stands for every resource of somebody's domain.
const extendedRow = "<domain>/<name>"

// row is a line of the table. A path ends at the topmost field that is decided
// as a whole; "[]" stands for every item of a list.
type row struct {
	path    string
	verdict verdict
	note    string
}

// rule is the table as a tree of fields.
type rule struct {
	row
	fields map[string]*rule // nil: the row decides; items of a list under "[]"
}

var servedRules = sync.OnceValue(rules)

// containerRows are where servedContainerFields are the fields of.
var containerRows = []string{"spec.containers[].", "spec.initContainers[]."}

// rules makes the tree of the table.
func rules() *rule {
	root := &rule{}
	for _, r := range servedFields {
		root.add(r)
	}
	for _, name := range templateMetadata {
		root.add(row{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata." + name, refused, "only labels and annotations may be set; remove it"})
	}
	for _, list := range containerRows {
		for _, r := range servedContainerFields {
			r.path = list + r.path
			root.add(r)
		}
	}
	return root
}

// add returns the rule of the row's field.
func (r *rule) add(rw row) *rule {
	for _, step := range strings.Split(strings.ReplaceAll(rw.path, "[]", ".[]"), ".") {
		if r.fields == nil {
			r.fields = map[string]*rule{}
		}
		if r.fields[step] == nil {
			r.fields[step] = &rule{}
		}
		r = r.fields[step]
	}
	if _, _, err := rw.exception(); rw.verdict == only && err != nil {
		panic("manifest: served table: " + rw.path + ": " + rw.note + " begins with no JSON")
	}
	r.row = rw
	return r
}

// walk judges a tree that shape.check has cleaned.
func (r *rule) walk(v any, s *shape, path string, n *notes) {
	if r.fields == nil || v == nil {
		r.judge(v, path, n)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.member(key).walk(v[key], s.member(key), s.step(path, key), n)
		}
	case []any:
		for i := range v {
			r.member("[]").walk(v[i], s.elem, path+"["+strconv.Itoa(i)+"]", n)
		}
	}
}

var unservedRule = &rule{}

func (r *rule) member(key string) *rule {
	if m := r.fields[key]; m != nil {
		return m
	}
	if m := r.fields[hugePagesRow]; m != nil && IsHugePages(v1.ResourceName(key)) {
		return m
	}
	if m := r.fields[extendedRow]; m != nil && IsExtended(v1.ResourceName(key)) {
		return m
	}
	return unservedRule
}

// judge decides about one field. Nothing, "" and [] are as if not written.
func (r *rule) judge(v any, path string, n *notes) {
	if empty(v) {
		return
	}
	switch r.verdict {
	case unserved:
		if strings.HasSuffix(path, "]") { // a name in a list of resources
			n.fail(path, "podd gives no such resource; remove it")
			return
		}
		n.fail(path, "not served by podd yet; remove it")
	case only:
		if accepted, why, _ := r.exception(); !reflect.DeepEqual(v, accepted) {
			n.fail(path, "%s", why)
		}
	case refused:
		n.fail(path, "%s", r.note)
	case noted:
		if m, ok := v.(map[string]any); !ok || len(m) > 0 {
			n.warn(path, "%s", r.note)
		}
	}
}

// exception is the one value that is accepted, and why no other is.
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
