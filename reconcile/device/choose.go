package device

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// An availableDevices contains the devices of a resource that can be allocated to a container now.
type availableDevices struct {
	// reusable contains the devices of init containers that have completed when the container
	// starts. choose chooses these devices first.
	reusable []string
	// free contains the healthy devices that are not allocated.
	free []string
}

// choose returns the IDs of n devices, sorted. It chooses reusable devices first, then the devices
// that the plugin prefers, and then other free devices.
func (o availableDevices) choose(n int, preferred []string) ([]string, error) {
	taken := o.chosenReusable(n)
	if needed := n - len(taken); needed > len(o.free) {
		return nil, fmt.Errorf("%d devices are requested, but only %d are free", n, len(o.free)+len(taken))
	}
	isPreferred := sets.New(preferred...)
	for _, want := range []bool{true, false} {
		for _, id := range slices.Sorted(slices.Values(o.free)) {
			if len(taken) < n && isPreferred.Has(id) == want {
				taken = append(taken, id)
			}
		}
	}
	slices.Sort(taken)
	return taken, nil
}

// chosenReusable returns the reusable devices that choose(n) returns.
func (o availableDevices) chosenReusable(n int) []string {
	all := slices.Sorted(slices.Values(o.reusable))
	return all[:min(n, len(all))]
}
