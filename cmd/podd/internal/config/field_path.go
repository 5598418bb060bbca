package config

import (
	"fmt"
	"strings"

	"podd/manifest"
)

// join appends a key to a field path, as in "a.b". A key that contains a dot is put in brackets,
// as in evictionHard[memory.available].
func join(at, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]"):
		return at + "[" + key + "]"
	case at == "":
		return key
	}
	return at + "." + key
}

// index appends an index to a field path, as in "a[0]".
func index(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// parent returns the path without its last element, or "".
func parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// isWithin reports whether p is path or below it.
func isWithin(p, path string) bool {
	rest, ok := strings.CutPrefix(p, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// formatPosition returns "file:line", or only the file if the line is unknown.
func formatPosition(path string, pos manifest.Position) string {
	if path == "" || pos.Line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, pos.Line)
}
