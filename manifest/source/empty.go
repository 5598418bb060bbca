package source

import (
	"bytes"
	"regexp"

	"podd/manifest"
)

// decode decodes data. It refuses data without pods and objects (RefuseEmpty).
func (o Options) decode(data []byte, path string) *manifest.File {
	return RefuseEmpty(o.Decode(data, path), data, path)
}

// RefuseEmpty returns f, the result of decoding data, if f contains a pod or object, or is already
// refused, or if data explicitly contains an empty list. Otherwise it returns a refused File, because
// data without pods and objects may result from a truncated write or response, a full disk or a
// failed template.
func RefuseEmpty(f *manifest.File, data []byte, path string) *manifest.File {
	if hasObjects(f) || f.HasRefusedDocument() || isEmptyList(data) {
		return f
	}
	return &manifest.File{Problems: append([]manifest.Problem{{
		Severity: manifest.Error, Path: path, CausesRefusal: true,
		Message: "contains no pods or other objects; if this is intended, write an empty list (kind: List, items: [])",
	}}, f.Problems...)}
}

// hasObjects reports whether f contains a pod or another object.
func hasObjects(f *manifest.File) bool {
	o := f.Objects
	return len(f.Pods)+len(o.ConfigMaps)+len(o.Secrets)+len(o.Claims)+len(o.Volumes)+len(o.TrustBundles)+len(o.CSIDrivers) > 0
}

var listKindPattern = regexp.MustCompile(`(?:^|[\s{,])["']?kind["']?\s*:\s*["']?\w*List\b`)

// isEmptyList reports whether data contains an explicitly empty list. Decoding of data must have
// returned no objects and no error. Such data contains no list with items, so isEmptyList only has
// to find a line that is not a comment and contains a kind with a name that ends in List.
func isEmptyList(data []byte) bool {
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) && listKindPattern.Match(line) {
			return true
		}
	}
	return false
}
