package decode

import (
	"maps"
	"slices"

	"podd/manifest/wording"
)

// suggest returns a suggestion for an unknown field as the rest of a sentence: the known
// field that was probably meant.
func suggest(key string, fields map[string]*shape) string {
	best := wording.Closest(key, slices.Sorted(maps.Keys(fields)))
	if best == "" {
		return "; remove it"
	}
	return `; did you mean "` + best + `"?`
}
