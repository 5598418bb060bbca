package decode

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"podd/manifest/wording"
)

// check compares a tree with its shape. It records unknown fields and wrong types, and
// returns the tree without them. A null counts as a missing field. The tree itself is not
// modified.
func (s *shape) check(tree any, path string, n *notes) any {
	if tree == nil {
		return nil
	}
	switch s.kind {
	case object, dict:
		if m, ok := tree.(map[string]any); ok {
			return s.checkMap(m, path, n)
		}
	case list:
		if l, ok := tree.([]any); ok {
			out := make([]any, len(l)) // a bad item becomes null, so that indexes stay correct
			for i := range l {
				out[i] = s.elem.check(l[i], path+"["+strconv.Itoa(i)+"]", n)
			}
			return out
		}
	default:
		if message := s.mismatch(tree); message != "" {
			n.typeError(path, message)
			return nil
		}
		return tree
	}
	n.typeError(path, fmt.Sprintf("must be %s, not %s", s.expected(), typeName(tree)))
	return nil
}

func (s *shape) checkMap(m map[string]any, path string, n *notes) any {
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		field := s.step(path, key)
		member := s.member(key)
		if member == nil {
			n.lenient(n.at(field), field, "unknown field%s", suggest(key, s.fields))
			continue
		}
		v := member.check(m[key], field, n)
		if m[key] == nil && s.kind == dict && member.kind == text {
			v = "" // as in JSON: "a:" in labels or data is an empty string
		}
		if v != nil {
			out[key] = v
		}
	}
	return out
}

// mismatch returns the error of a value that is not an object or list, or "". The error
// never contains the value, which may be secret.
func (s *shape) mismatch(v any) string {
	ok, hint := true, ""
	switch s.kind {
	case text:
		_, ok = v.(string)
		hint = "; put it in quotes"
		if _, isBool := v.(bool); isBool {
			hint += ", because YAML reads yes, no, on, off, y and n as booleans"
		}
	case truth:
		_, ok = v.(bool)
		hint = "; write true or false without quotes"
	case number:
		_, isWhole := v.(int64)
		_, isFloat := v.(float64)
		ok = isWhole || isFloat
	case whole:
		return s.checkInteger(v)
	case encoded:
		var str string
		if str, ok = v.(string); ok {
			if _, err := base64.StdEncoding.DecodeString(str); err != nil {
				return "is not valid base64; encode the value, or use stringData in a Secret"
			}
		}
	case custom:
		return s.checkDecoder(v)
	}
	if ok {
		return ""
	}
	if _, scalar := scalarName(v); !scalar {
		hint = ""
	}
	return fmt.Sprintf("must be %s, not %s%s", s.expected(), typeName(v), hint)
}

func (s *shape) checkInteger(v any) string {
	switch x := v.(type) {
	case int64:
		if s.bits == 32 && (x < math.MinInt32 || x > math.MaxInt32) {
			return "is out of range; must be between -2147483648 and 2147483647"
		}
		return ""
	case float64:
		return "must be an integer of at most 64 bits"
	case string:
		if _, err := strconv.ParseInt(x, 10, s.bits); err == nil {
			return "must be an integer, not a string; remove the quotes"
		}
	}
	return "must be an integer, not " + typeName(v)
}

// checkDecoder checks a type with its own UnmarshalJSON.
func (s *shape) checkDecoder(v any) string {
	raw, err := utiljson.Marshal(v)
	if err == nil {
		err = utiljson.Unmarshal(raw, reflect.New(s.typ).Interface())
	}
	if err == nil {
		return ""
	}
	switch s.typ {
	case reflect.TypeFor[resource.Quantity]():
		return "is not a quantity; write something like 100m, 0.5, 64Mi or 1Gi"
	case reflect.TypeFor[intstr.IntOrString]():
		return "must be a number or a string, not " + typeName(v)
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "is not a time; write it as 2006-01-02T15:04:05Z"
	}
	return "cannot be decoded as " + s.typ.Name()
}

func (s *shape) expected() string {
	switch s.kind {
	case object, dict:
		return "an object"
	case list:
		return "a list"
	case truth:
		return "a boolean"
	case number:
		return "a number"
	}
	return "a string"
}

func typeName(v any) string {
	if name, ok := scalarName(v); ok {
		return name
	}
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "a list"
	}
	return "an object"
}

func scalarName(v any) (string, bool) {
	switch v.(type) {
	case string:
		return "a string", true
	case bool:
		return "a boolean", true
	case int64, float64:
		return "a number", true
	}
	return "", false
}

// checkSources refuses a volume whose only source is an unknown field, because Kubernetes
// would make it an emptyDir and the data would be lost.
func checkSources(written map[string]any, known any, n *notes) {
	list := func(pod any) []any {
		top, _ := pod.(map[string]any)
		spec, _ := top["spec"].(map[string]any)
		volumes, _ := spec["volumes"].([]any)
		return volumes
	}
	clean := list(known)
	for i, volume := range list(written) {
		w, _ := volume.(map[string]any)
		k, _ := clean[i].(map[string]any)
		_, named := k["name"]
		if len(k) > 1 || len(k) == 1 && !named {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if podShape().fields["spec"].fields["volumes"].elem.fields[key] == nil {
				n.fail(fmt.Sprintf("spec.volumes[%d]", i), "has no known source and would become an emptyDir; correct %q", wording.Clip(key, 80))
			}
		}
	}
}
