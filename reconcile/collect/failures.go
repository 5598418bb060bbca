package collect

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// failures are the errors of a pass over the logs, by the pod with logs that could not be
// removed. The errors under allPods concern every pod.
type failures map[types.UID][]error

// allPods is no valid UID.
const allPods types.UID = ""

func (f failures) add(uid types.UID, err error) failures {
	f[uid] = append(f[uid], err)
	return f
}

// about returns the errors that concern uid; nil if there are none.
func (f failures) about(uid types.UID) error {
	return errors.Join(append(slices.Clone(f[allPods]), f[uid]...)...)
}

// join returns all errors; nil if there are none.
func (f failures) join() error {
	var all []error
	for _, uid := range slices.Sorted(maps.Keys(f)) {
		all = append(all, f[uid]...)
	}
	return errors.Join(all...)
}
