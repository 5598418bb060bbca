package collect

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// failures contains the errors of a pass over the logs, by the UID of the pod whose logs could
// not be removed. The errors of the key allPods concern every pod.
type failures map[types.UID][]error

// allPods is the key in failures for the errors that concern every pod. It is not a valid UID.
const allPods types.UID = ""

// add appends err to the errors of uid. It returns f.
func (f failures) add(uid types.UID, err error) failures {
	f[uid] = append(f[uid], err)
	return f
}

// forPod returns the errors of uid and of the key allPods, joined; nil if there are none.
func (f failures) forPod(uid types.UID) error {
	return errors.Join(append(slices.Clone(f[allPods]), f[uid]...)...)
}

// join returns all errors joined into one; nil if there are none.
func (f failures) join() error {
	var errs []error
	for _, uid := range slices.Sorted(maps.Keys(f)) {
		errs = append(errs, f[uid]...)
	}
	return errors.Join(errs...)
}
