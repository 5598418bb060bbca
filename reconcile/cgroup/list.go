package cgroup

import (
	"errors"
	"path"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ListPods returns the UIDs of all pods that have a cgroup in a hierarchy, for either driver. It continues
// after an error and returns all errors. root is the parent of kubepods, as in RemovePod.
func ListPods(root string) (sets.Set[types.UID], error) {
	points, err := listMountPoints()
	if err != nil {
		return nil, err
	}
	uids := sets.New[types.UID]()
	var errs []error
	for _, class := range classPaths(root) {
		for _, point := range points {
			children, err := listChildren(filepath.Join(point, class))
			errs = append(errs, err)
			for _, child := range children {
				uid, ok := uidFromName(path.Base(child))
				if !ok {
					continue
				}
				if podDir, _ := podPathInClass(class, uid); path.Base(podDir) == path.Base(child) {
					uids.Insert(uid)
				}
			}
		}
	}
	return uids, errors.Join(errs...)
}
