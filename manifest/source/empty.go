package source

import (
	"bytes"
	"regexp"

	"podd/manifest"
)

// decode decodes data and refuses empty content.
func (o Options) decode(data []byte, path string) *manifest.File {
	return RefuseEmpty(o.Decode(data, path), data, path)
}

// RefuseEmpty returns f, the result of decoding data, or a refused File if f contains nothing
// and data does not explicitly contain an empty list. A truncated write or response, a full
// disk and a failed template would otherwise look like an empty manifest.
func RefuseEmpty(f *manifest.File, data []byte, path string) *manifest.File {
	if hasObjects(f) || f.Refused() || emptyList(data) {
		return f
	}
	return &manifest.File{Problems: append([]manifest.Problem{{
		Severity: manifest.Error, Path: path, Refused: true,
		Message: "contains no pods or other objects; if this is intended, write an empty list (kind: List, items: [])",
	}}, f.Problems...)}
}

// hasObjects reports whether f contains a pod or another object.
func hasObjects(f *manifest.File) bool {
	o := f.Objects
	return len(f.Pods)+len(o.ConfigMaps)+len(o.Secrets)+len(o.Claims)+len(o.Volumes) > 0
}

var listKind = regexp.MustCompile(`(?:^|[\s{,])["']?kind["']?\s*:\s*["']?\w*List\b`)

// emptyList reports whether data, which was decoded to nothing without an error, names a
// list kind outside of comments. In this case decoding has verified that its items are [].
func emptyList(data []byte) bool {
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) && listKind.Match(line) {
			return true
		}
	}
	return false
}
