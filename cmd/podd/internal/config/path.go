package config

import (
	"fmt"
	"strings"

	"podd/manifest"
)

// join makes a field path: "a.b"; a key with a dot in it goes in brackets, as
// evictionHard[memory.available].
func join(at, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]"):
		return at + "[" + key + "]"
	case at == "":
		return key
	}
	return at + "." + key
}

func index(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }

// parent cuts the last element off a field path; "" of one element.
func parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// within reports whether p is path or lies below it.
func within(p, path string) bool {
	rest, ok := strings.CutPrefix(p, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// place is "file:line" for a sentence.
func place(path string, pos manifest.Position) string {
	if path == "" || pos.Line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, pos.Line)
}
