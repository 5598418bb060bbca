package source

import (
	"bytes"
	"regexp"

	"podd/manifest"
)

// decode makes pods of data.
func (o Options) decode(data []byte, path string) *manifest.File {
	return NotEmpty(o.Decode(data, path), data, path)
}

// NotEmpty is what data was decoded to, and refuses a content with nothing in
// it unless it says in so many words that it is an empty list: a truncated write
// or answer, a disk that was full and a template that failed look the same.
func NotEmpty(f *manifest.File, data []byte, path string) *manifest.File {
	if holds(f) || f.Refused() || emptyList(data) {
		return f
	}
	return &manifest.File{Problems: append([]manifest.Problem{{
		Severity: manifest.Error, Path: path, Refused: true,
		Message: "holds no pod and no object; to run nothing of it write an empty list (kind: List, items: [])",
	}}, f.Problems...)}
}

// holds says that something in f can run or be used.
func holds(f *manifest.File) bool {
	o := f.Objects
	return len(f.Pods)+len(o.ConfigMaps)+len(o.Secrets)+len(o.Claims)+len(o.Volumes) > 0
}

var listKind = regexp.MustCompile(`(?:^|[\s{,])["']?kind["']?\s*:\s*["']?\w*List\b`)

// emptyList says that a content which decodes to nothing, without a complaint,
// names a list outside its comments; Decode has seen then that its items are [].
func emptyList(data []byte) bool {
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) && listKind.Match(line) {
			return true
		}
	}
	return false
}
