package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Found is a pod cgroup on this machine, whoever made it.
type Found struct {
	UID types.UID
	// Parent and Driver are what Remove takes.
	Parent, Driver string
}

// List tells which pods have cgroups, sorted, each once though it may be in
// several hierarchies. root is the cgroup that kubepods lies in, as configured
// for either driver: "" and "/" are the top.
func List(root string) ([]Found, error) {
	points, err := hierarchies()
	if err != nil {
		return nil, err
	}
	return list(points, root)
}

func list(points []string, root string) ([]Found, error) {
	seen := map[Found]bool{}
	for _, point := range points {
		for _, dir := range classes(root) {
			entries, err := os.ReadDir(filepath.Join(point, dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("listing the pod cgroups: %w", err)
			}
			for _, e := range entries {
				if f, ok := found(dir, e); ok {
					seen[f] = true
				}
			}
		}
	}
	all := make([]Found, 0, len(seen))
	for f := range seen {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Parent, b.Parent))
	})
	return all, nil
}

func found(in string, e os.DirEntry) (Found, bool) {
	uid, ok := uidOf(e.Name())
	if !ok || !e.IsDir() {
		return Found{}, false
	}
	if path.Ext(e.Name()) == slice {
		return Found{UID: uid, Parent: e.Name(), Driver: Systemd}, true
	}
	return Found{UID: uid, Parent: path.Join(in, e.Name()), Driver: Cgroupfs}, true
}

// classes are the cgroups that pods of the three QoS classes lie in, for both
// drivers.
func classes(root string) []string {
	parts := strings.FieldsFunc(root, func(r rune) bool { return r == '/' })
	var dirs []string
	for _, class := range []string{"", "burstable", "besteffort"} {
		at := append(slices.Clone(parts), "kubepods")
		if class != "" {
			at = append(at, class)
		}
		dirs = append(dirs, "/"+path.Join(at...))
		for i := range at { // in a slice's name a dash stands between levels
			at[i] = strings.ReplaceAll(at[i], "-", "_")
		}
		if dir, err := slicePath(strings.Join(at, "-") + slice); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// inClass is the path of a pod's cgroup in one of the classes, with its driver.
func inClass(dir string, uid types.UID) (at, driver string) {
	if name, ok := strings.CutSuffix(path.Base(dir), slice); ok {
		return path.Join(dir, name+"-pod"+strings.ReplaceAll(string(uid), "-", "_")+slice), Systemd
	}
	return path.Join(dir, "pod"+string(uid)), Cgroupfs
}
