package config

import (
	"fmt"
	"strings"

	"podd/manifest"
)

// joinField appends the name of a field to a field path, as in "a.b".
func joinField(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// joinKey appends the key of a map to a field path, as in "evictionHard[memory.available]".
func joinKey(at, key string) string { return at + "[" + key + "]" }

// joinIndex appends an index to a field path, as in "a[0]".
func joinIndex(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// isWithin reports whether path is parent or the path of a field below parent.
func isWithin(path, parent string) bool {
	suffix, ok := strings.CutPrefix(path, parent)
	return ok && (suffix == "" || suffix[0] == '.' || suffix[0] == '[')
}

// formatPosition returns "file:line", or only the file if the line is unknown.
func formatPosition(path string, pos manifest.Position) string {
	if path == "" || pos.Line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, pos.Line)
}
