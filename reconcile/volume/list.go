package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// Found is a pod directory on disk, whether or not anybody wants the pod.
type Found struct {
	UID types.UID
	// Mounts are the mount points at or below it, deepest first.
	Mounts []string
}

// List tells which pod directories there are, by UID. What cannot be one, a
// file or a name that is no UID, is left out and never touched. No Root yet
// means none.
func (d Dir) List() ([]Found, error) {
	pods, err := d.open()
	if pods == nil {
		return nil, err
	}
	defer pods.Close()
	names, err := pods.Names()
	if err != nil {
		return nil, fmt.Errorf("listing the pod directories in %s: %w", d.Root, err)
	}
	mounts, err := d.mountsBelow("")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts below %s: %w", d.Root, err)
	}
	byUID := map[string][]string{}
	for _, m := range mounts {
		uid, _, _ := strings.Cut(m.rel, "/")
		byUID[uid] = append(byUID[uid], m.path)
	}
	var found []Found
	for _, name := range names {
		if !manifest.SafeUID(types.UID(name)) {
			continue
		}
		if mode, err := pods.Mode(name); err != nil || !mode.IsDir() {
			continue
		}
		found = append(found, Found{UID: types.UID(name), Mounts: byUID[name]})
	}
	slices.SortFunc(found, func(a, b Found) int { return cmp.Compare(a.UID, b.UID) })
	return found, nil
}
