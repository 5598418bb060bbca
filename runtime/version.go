package runtime

import (
	"fmt"
	"strings"
)

// MinVersions maps the name of a runtime to the first version (major, minor) with a certain
// behavior. It is used for behavior that runtimes do not report as a feature.
type MinVersions map[string][2]int

// HasMinVersion reports whether the node's runtime has at least the version in min. It returns
// false if min does not contain the runtime, or if the runtime's version cannot be parsed.
func (n Node) HasMinVersion(min MinVersions) bool {
	minVersion, ok := min[n.Name]
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(n.Version, "v"), "%d.%d", &major, &minor); err != nil || !ok {
		return false
	}
	return major > minVersion[0] || major == minVersion[0] && minor >= minVersion[1]
}
