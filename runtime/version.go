package runtime

import (
	"fmt"
	"strings"
)

// Since contains, by a runtime's name, the first version (major, minor) with a behavior
// that the runtime does not report as a feature.
type Since map[string][2]int

// Reaches reports whether the node's runtime has at least this version. It returns false
// for a runtime that is not in s, and for a version that cannot be parsed.
func (n Node) Reaches(s Since) bool {
	first, known := s[n.Name]
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(n.Version, "v"), "%d.%d", &major, &minor); err != nil || !known {
		return false
	}
	return major > first[0] || major == first[0] && minor >= first[1]
}
