package device

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// availableDevices contains the devices of a resource that can be allocated to a container now.
type availableDevices struct {
	// reusableIDs contains the devices of init containers that have completed when the container
	// starts. choose chooses these devices first.
	reusableIDs []string
	// freeIDs contains the healthy devices that are not allocated.
	freeIDs []string
}

// choose returns the IDs of n devices, sorted. It chooses reusable devices first, then free devices
// that the plugin prefers (preferredIDs), and then other free devices.
func (o availableDevices) choose(n int, preferredIDs []string) ([]string, error) {
	chosenIDs := o.chooseReusable(n)
	if neededCount := n - len(chosenIDs); neededCount > len(o.freeIDs) {
		return nil, fmt.Errorf("%d devices are requested, but only %d are free", n, len(o.freeIDs)+len(chosenIDs))
	}
	isPreferred := sets.New(preferredIDs...)
	for _, mustBePreferred := range []bool{true, false} {
		for _, id := range slices.Sorted(slices.Values(o.freeIDs)) {
			if len(chosenIDs) < n && isPreferred.Has(id) == mustBePreferred {
				chosenIDs = append(chosenIDs, id)
			}
		}
	}
	slices.Sort(chosenIDs)
	return chosenIDs, nil
}

// chooseReusable returns the reusable devices that choose chooses for a request of n devices.
func (o availableDevices) chooseReusable(n int) []string {
	ids := slices.Sorted(slices.Values(o.reusableIDs))
	return ids[:min(n, len(ids))]
}
