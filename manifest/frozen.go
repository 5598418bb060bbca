package manifest

import (
	"bytes"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Keeping is f after an earlier content of the same text: an object that was
// immutable there and is another one now is a reason not to take f. f itself is
// the answer where there is none.
func (f *File) Keeping(earlier *File) *File {
	if earlier == nil {
		return f
	}
	var broken []Problem
	for ref, origin := range f.Objects.Origins {
		if !earlier.Objects.frozen(ref) || earlier.Objects.same(ref, &f.Objects) {
			continue
		}
		broken = append(broken, Problem{
			Severity: Error, Path: origin.Path, Position: origin.Position(""), Field: "data", Refused: true,
			Message: ref.Kind + " " + ref.NamespacedName.String() + " is immutable and was another one; give the new content a new name",
		})
	}
	if len(broken) == 0 {
		return f
	}
	sortProblems(broken)
	kept := *f
	kept.Problems = slices.Concat(f.Problems, broken)
	return &kept
}

func (o *Objects) frozen(ref ObjectRef) bool {
	if c := o.ConfigMaps[ref.NamespacedName]; c != nil && ref.Kind == "ConfigMap" {
		return isTrue(c.Immutable)
	}
	if s := o.Secrets[ref.NamespacedName]; s != nil && ref.Kind == "Secret" {
		return isTrue(s.Immutable)
	}
	return false
}

// same tells whether an object has the same content in other, where it is.
func (o *Objects) same(ref ObjectRef, other *Objects) bool {
	if ref.Kind == "Secret" {
		a, b := o.Secrets[ref.NamespacedName], other.Secrets[ref.NamespacedName]
		return isTrue(b.Immutable) && maps.EqualFunc(a.Data, b.Data, bytes.Equal)
	}
	a, b := o.ConfigMaps[ref.NamespacedName], other.ConfigMaps[ref.NamespacedName]
	return isTrue(b.Immutable) && maps.Equal(a.Data, b.Data) && sameBinary(a, b)
}

func sameBinary(a, b *v1.ConfigMap) bool {
	return maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
}
