package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/atomicfile"
	"podd/runtime/safepath"
)

// maxNamesBytes is the maximum size in bytes of a namesFile.
const maxNamesBytes = 1 << 20

// recordVolumeName creates the directory of a disk and adds the name of a volume to its namesFile. Two
// volumes of a disk have different names if they name different portals of its target.
func (t *target) recordVolumeName(disk string, name v1.UniqueVolumeName) error {
	if err := os.MkdirAll(filepath.Join(t.dir, disk), dirMode); err != nil || name == "" {
		return err
	}
	names, err := readNames(filepath.Join(t.dir, disk, namesFile))
	if err != nil || slices.Contains(names, name) {
		return err
	}
	var text strings.Builder
	for _, n := range append(names, name) {
		text.WriteString(string(n) + "\n")
	}
	file := filepath.Join(disk, namesFile)
	if err := atomicfile.WriteIn(t.root, file, file+".new", []byte(text.String())); err != nil {
		return fmt.Errorf("recording the name of the volume: %w", err)
	}
	return nil
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
// result contains a volume from the time before podd attaches its disk until the disk is detached.
func (m Manager) VolumesInUse() ([]v1.UniqueVolumeName, error) {
	targets, err := safepath.Names(m.Root)
	if err != nil {
		return nil, err
	}
	var all []v1.UniqueVolumeName
	for _, target := range targets {
		disks, err := safepath.Names(filepath.Join(m.Root, target))
		if err != nil {
			return nil, err
		}
		for _, disk := range disks {
			if _, ok := parseName(target + "/" + disk); !ok {
				continue
			}
			names, err := readNames(filepath.Join(m.Root, target, disk, namesFile))
			if err != nil {
				return nil, err
			}
			all = append(all, names...)
		}
	}
	return all, nil
}
