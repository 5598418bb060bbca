package runtime

import (
	"fmt"
	"strings"
)

// Since is, by a runtime's name, the version from which on it has something that
// no feature of it tells: major and minor.
type Since map[string][2]int

// Reaches says that the node's runtime is of such a version. One that is not
// named, or whose version cannot be read, is not.
func (n Node) Reaches(s Since) bool {
	first, known := s[n.Name]
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(n.Version, "v"), "%d.%d", &major, &minor); err != nil || !known {
		return false
	}
	return major > first[0] || major == first[0] && minor >= first[1]
}
