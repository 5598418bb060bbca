package config

import (
	"fmt"
	"strings"

	"podd/manifest"
)

// join appends the name of a field to a field path, as in "a.b".
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// joinKey appends a key of a map to a field path, as in evictionHard[memory.available].
func joinKey(at, key string) string { return at + "[" + key + "]" }

// index appends an index to a field path, as in "a[0]".
func index(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

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
