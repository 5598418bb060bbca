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

// RefuseEmpty returns f, the result of decoding data, or a refused File. It refuses a File without
// pods and objects, because data may be a truncated write or response, or the output of a failed
// template. It does not refuse a File if data explicitly contains an empty list.
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
// returned no objects and no error. Therefore every list in data is empty, and isEmptyList only has
// to find a kind with a name that ends in List, in a line that is not a comment.
func isEmptyList(data []byte) bool {
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) && listKindPattern.Match(line) {
			return true
		}
	}
	return false
}
