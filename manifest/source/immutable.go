package source

import (
	"bytes"
	"maps"
	"slices"

	"podd/manifest"
)

// checkImmutable compares f with previous, the previous content of the same file or URL. previous is
// nil if there is none. checkImmutable returns f if no immutable object has changed. Otherwise it
// returns a refused copy of f with a Problem for each changed object.
func checkImmutable(f, previous *manifest.File) *manifest.File {
	if previous == nil {
		return f
	}
	var problems []manifest.Problem
	for ref, origin := range f.Objects.Origins {
		if !isImmutable(&previous.Objects, ref) || sameContent(ref, &previous.Objects, &f.Objects) {
			continue
		}
		problems = append(problems, manifest.Problem{
			Severity: manifest.Error, Path: origin.Path, Position: origin.Position(""), FieldPath: "data", CausesRefusal: true,
			Message: ref.Kind + " " + ref.NamespacedName.String() + " is immutable and cannot be changed; use another name for the new content",
		})
	}
	if len(problems) == 0 {
		return f
	}
	manifest.SortProblems(problems)
	refusedFile := *f
	refusedFile.Problems = slices.Concat(f.Problems, problems)
	return &refusedFile
}

// isImmutable reports whether ref identifies an immutable ConfigMap or Secret in o.
func isImmutable(o *manifest.Objects, ref manifest.ObjectRef) bool {
	var immutable *bool
	switch ref.Kind {
	case manifest.ConfigMapKind:
		if c := o.ConfigMaps[ref.NamespacedName]; c != nil {
			immutable = c.Immutable
		}
	case manifest.SecretKind:
		if s := o.Secrets[ref.NamespacedName]; s != nil {
			immutable = s.Immutable
		}
	}
	return immutable != nil && *immutable
}

// sameContent reports whether the ConfigMap or Secret with this ref has the same content in
// previous and in o, and is still immutable in o. It must exist in both.
func sameContent(ref manifest.ObjectRef, previous, o *manifest.Objects) bool {
	if !isImmutable(o, ref) {
		return false
	}
	if ref.Kind == manifest.SecretKind {
		return maps.EqualFunc(previous.Secrets[ref.NamespacedName].Data, o.Secrets[ref.NamespacedName].Data, bytes.Equal)
	}
	a, b := previous.ConfigMaps[ref.NamespacedName], o.ConfigMaps[ref.NamespacedName]
	return maps.Equal(a.Data, b.Data) && maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal)
}
