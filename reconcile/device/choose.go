package device

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// offer is what one container may have of one resource, as things stand.
type offer struct {
	// reusable are those of init containers that are over when it starts; they are
	// taken first.
	reusable []string
	// free are those that are healthy and nobody's.
	free []string
}

// choose takes n devices: of the reusable ones, then of those that the plugin
// prefers, then of the others, each in the order of their IDs.
func (o offer) choose(n int, preferred []string) ([]string, error) {
	taken := o.reused(n)
	if missing := n - len(taken); missing > len(o.free) {
		return nil, fmt.Errorf("%d are asked for and %d are free", n, len(o.free)+len(taken))
	}
	liked := sets.New(preferred...)
	for _, wanted := range []bool{true, false} {
		for _, id := range slices.Sorted(slices.Values(o.free)) {
			if len(taken) < n && liked.Has(id) == wanted {
				taken = append(taken, id)
			}
		}
	}
	slices.Sort(taken)
	return taken, nil
}

// reused are the reusable ones that n devices begin with.
func (o offer) reused(n int) []string {
	all := slices.Sorted(slices.Values(o.reusable))
	return all[:min(n, len(all))]
}
