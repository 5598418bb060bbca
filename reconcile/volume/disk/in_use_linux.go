package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/atomicfile"
	"podd/runtime/safepath"
)

const (
	// maxNamesBytes is the maximum size in bytes of a namesFile.
	maxNamesBytes = 1 << 20
	// maxNames is the maximum number of names in a namesFile. Users can create names without limit, but
	// the status of a Node contains all of them.
	maxNames = 64
)

// writeNames replaces the namesFile of a disk, whose directory must exist.
func (t *target) writeNames(disk string, names []v1.UniqueVolumeName) error {
	var text strings.Builder
	for _, n := range names {
		text.WriteString(string(n) + "\n")
	}
	file := filepath.Join(disk, namesFile)
	if err := atomicfile.WriteIn(t.root, file, file+".new", []byte(text.String())); err != nil {
		return fmt.Errorf("recording the name of the volume: %w", err)
	}
	return nil
}

// addName returns the names in the namesFile of a disk, and the name of a volume if it is new. It writes
// nothing. The name "" is never new. Two volumes of a disk have different names if they name different
// portals of its target.
func (t *target) addName(disk string, name v1.UniqueVolumeName) (names []v1.UniqueVolumeName, isNew bool, err error) {
	if name == "" {
		return nil, false, nil
	}
	names, err = readNames(filepath.Join(t.dir, disk, namesFile))
	switch {
	case err != nil || slices.Contains(names, name):
		return names, false, err
	case len(names) >= maxNames:
		return nil, false, fmt.Errorf("pods have used the disk %s/%s with %d different portals or targets (limit %d); use the same ones as another pod, or first remove all pods that use the disk",
			filepath.Base(t.dir), disk, len(names), maxNames)
	}
	return append(names, name), true, nil
}

// readNames returns the names in a namesFile; none if the file does not exist.
func readNames(file string) (names []v1.UniqueVolumeName, err error) {
	text, err := atomicfile.Read(file, maxNamesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the names of a disk's volumes: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		names = append(names, v1.UniqueVolumeName(strings.TrimSuffix(line, "\n")))
	}
	return names, nil
}

// VolumesInUse returns the names that the volumes on attached disks have in the status of a Node. The
// result contains a volume from the time before podd attaches its disk until the disk is detached. If
// VolumesInUse returns an error, the result contains only the volumes of the disks that it could read.
func (m Manager) VolumesInUse() ([]v1.UniqueVolumeName, error) {
	targets, err := safepath.Names(m.Root)
	errs := []error{err}
	var all []v1.UniqueVolumeName
	for _, target := range targets {
		disks, err := safepath.Names(filepath.Join(m.Root, target))
		errs = append(errs, err)
		for _, disk := range disks {
			if _, ok := parseName(target + "/" + disk); !ok {
				continue
			}
			names, err := readNames(filepath.Join(m.Root, target, disk, namesFile))
			errs = append(errs, err)
			all = append(all, names...)
		}
	}
	return all, errors.Join(errs...)
}
