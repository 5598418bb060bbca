package schema

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"podd/manifest"
)

// FaultKind classifies a Fault.
type FaultKind int

const (
	UnknownField FaultKind = iota
	DuplicateField
	WrongType
)

// A Fault is a difference between a document and its Schema.
type Fault struct {
	Kind FaultKind
	Path string // path of the field
	// Position is the position of a duplicate field. For other faults it is zero, because Index
	// returns the positions of all other fields.
	Position manifest.Position
	// Message describes the fault and the remedy. It contains no value, because values may be
	// secret.
	Message string
}

// A checker compares one document with its Schema.
type checker struct {
	root    *Schema
	isPatch bool
	report  func(Fault)
	// paths contains the paths of fields by name, see addPaths. It is nil until it is needed.
	paths map[string]string
}

// Check compares a tree (see document.Value) with s. It calls report for each unknown field and
// each value of a wrong type. It returns a copy of the tree without these fields and values. In the
// copy, null replaces an element of a list if the element has a wrong type. Check treats a field
// with the value null as a missing field.
func (s *Schema) Check(tree any, report func(Fault)) any {
	c := &checker{root: s, report: report}
	cleanTree, _ := c.checkValue(s, tree, "")
	return cleanTree
}

// CheckPatch is like Check, but for a JSON merge patch (RFC 7386). The returned tree contains
// the nulls of the patch, because a null deletes a field. It does not contain lists with an
// element of a wrong type, because a patch replaces lists as a whole.
func (s *Schema) CheckPatch(tree any, report func(Fault)) any {
	c := &checker{root: s, isPatch: true, report: report}
	cleanTree, _ := c.checkValue(s, tree, "")
	return cleanTree
}

// checkValue reports the faults of a tree, and returns a copy of the tree without the fields
// and values that have faults. ok is false if the tree itself has a wrong type.
func (c *checker) checkValue(s *Schema, tree any, path string) (cleanTree any, ok bool) {
	if tree == nil {
		return nil, true
	}
	switch s.kind {
	case object, dictionary:
		if m, ok := tree.(map[string]any); ok {
			return c.checkMembers(s, m, path), true
		}
	case list:
		if l, ok := tree.([]any); ok {
			return c.checkElements(s, l, path)
		}
	default:
		if message := s.findMismatch(tree); message != "" {
			c.report(Fault{Kind: WrongType, Path: path, Message: message})
			return nil, false
		}
		return tree, true
	}
	c.report(Fault{Kind: WrongType, Path: path, Message: fmt.Sprintf("must be %s, not %s", s.expectedType(), TypeName(tree))})
	return nil, false
}

// checkElements reports the faults of a list. In the returned copy, each element of a wrong type
// is null. A merge patch replaces a list as a whole, so ok is false if the list belongs to a merge
// patch and an element has a wrong type.
func (c *checker) checkElements(s *Schema, l []any, path string) (cleanList any, ok bool) {
	elements, ok := make([]any, len(l)), true
	for i := range l {
		var elementOK bool
		elements[i], elementOK = c.checkValue(s.element, l[i], elementPath(path, i)) // nil if the type is wrong, so that the indexes of later elements stay correct
		ok = ok && elementOK
	}
	if c.isPatch && !ok {
		return nil, false
	}
	return elements, true
}

// checkMembers reports the faults of an object, and returns a copy without the fields that have
// faults.
func (c *checker) checkMembers(s *Schema, m map[string]any, path string) map[string]any {
	members := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fieldPath := s.AppendPath(path, key)
		member := s.Member(key)
		if member == nil {
			c.report(Fault{Kind: UnknownField, Path: fieldPath, Message: c.unknownField(s, key)})
			continue
		}
		v, ok := c.checkValue(member, m[key], fieldPath)
		if m[key] == nil && s.kind == dictionary && member.kind == text && !c.isPatch {
			v = "" // in a map of strings, encoding/json decodes null as ""; an example is the label "a:" without a value
		}
		if v != nil || c.isPatch && ok {
			members[key] = v
		}
	}
	return members
}

// findMismatch returns a message if v does not have the scalar type that s requires, otherwise "".
// s must not require an object or a list. The message never contains the value, which may be
// secret.
func (s *Schema) findMismatch(v any) string {
	ok, hint := true, ""
	switch s.kind {
	case text:
		_, ok = v.(string)
		hint = "; put it in quotes"
		if _, isBool := v.(bool); isBool {
			hint += ", because YAML reads yes, no, on, off, y and n as booleans"
		}
	case boolean:
		_, ok = v.(bool)
		hint = "; write true or false without quotes"
	case number:
		_, isInteger := v.(int64)
		_, isFloat := v.(float64)
		ok = isInteger || isFloat
	case integer:
		return s.checkInteger(v)
	case base64Text:
		var encoded string
		if encoded, ok = v.(string); ok {
			if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
				return "is not valid base64; encode the value, or use stringData in a Secret"
			}
		}
	case customEncoding:
		return s.checkCustomEncoding(v)
	}
	if ok {
		return ""
	}
	if _, isScalar := scalarName(v); !isScalar {
		hint = ""
	}
	return fmt.Sprintf("must be %s, not %s%s", s.expectedType(), TypeName(v), hint)
}

// checkInteger returns a message if v is not an integer of the type of s, otherwise "".
func (s *Schema) checkInteger(v any) string {
	switch x := v.(type) {
	case int64:
		minValue, maxValue := int64(-1)<<(s.bits-1), int64(1)<<(s.bits-1)-1
		if s.isUnsigned {
			minValue, maxValue = 0, int64(1)<<min(s.bits, 63)-1
		}
		if x < minValue || x > maxValue {
			return fmt.Sprintf("is out of range; must be between %d and %d", minValue, maxValue)
		}
		return ""
	case float64:
		return "must be an integer of at most 64 bits"
	case string:
		if _, err := strconv.ParseInt(x, 10, s.bits); err == nil {
			return "must be an integer, not a string; remove the quotes"
		}
	}
	return "must be an integer, not " + TypeName(v)
}

// checkCustomEncoding returns a message if the UnmarshalJSON method of the type of s does not
// accept v, otherwise "".
func (s *Schema) checkCustomEncoding(v any) string {
	raw, err := utiljson.Marshal(v)
	if err == nil {
		err = utiljson.Unmarshal(raw, reflect.New(s.goType).Interface())
	}
	if err == nil {
		return ""
	}
	switch s.goType {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		return "is not a quantity; write something like 100m, 0.5, 64Mi or 1Gi"
	case reflect.TypeFor[intstr.IntOrString]():
		return "must be a number or a string, not " + TypeName(v)
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return "is not a time; write it as 2006-01-02T15:04:05Z"
	}
	if strings.HasSuffix(s.goType.Name(), "Duration") { // compare the name, because several packages define a duration type
		return "is not a duration; write something like 10s, 5m or 1h30m"
	}
	return "is not a valid value of type " + s.goType.Name()
}

// expectedType returns the name of the type that s requires, with an article.
func (s *Schema) expectedType() string {
	switch s.kind {
	case object, dictionary:
		return "an object"
	case list:
		if s.element.kind == text {
			return "a list such as [a, b]"
		}
		return "a list"
	case boolean:
		return "a boolean"
	case number:
		return "a number"
	}
	return "a string"
}

// TypeName returns the name of the type of a value in a tree, with an article.
func TypeName(v any) string {
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

// scalarName returns the name of the type of a string, boolean or number. ok is false for
// other types.
func scalarName(v any) (name string, ok bool) {
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
