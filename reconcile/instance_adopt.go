package reconcile

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// adoptedFile is the name of the file with the IDs of adopted instances. Labels of sandboxes
// never change, so podd needs these IDs as long as one of their sandboxes exists.
const adoptedFile = "adopted-instances.json"

// maxIDFileBytes is the maximum number of bytes that are read from adoptedFile or a lock file.
const maxIDFileBytes = 64 << 10

// isInstanceID reports whether id has the form of an instance ID.
func isInstanceID(id string) bool {
	decoded, err := hex.DecodeString(id)
	return err == nil && len(decoded) == idBytes && id == hex.EncodeToString(decoded)
}

// Adopt takes over the sandboxes of other instances, for this podd and every later podd with this
// root directory. Adopt returns an error if another podd uses one of these instances. It skips the
// IDs in i.ContestedIDs, which then remain in i.ContestedIDs.
func (i *Instance) Adopt(ids ...string) error {
	adoptedIDs := slices.Clone(i.AdoptedIDs)
	for _, id := range ids {
		if id == i.ID || slices.Contains(adoptedIDs, id) || slices.Contains(i.ContestedIDs, id) {
			continue
		}
		if !isInstanceID(id) {
			return fmt.Errorf("adopting instance %.40q: not an instance ID; must consist of %d hexadecimal digits", id, 2*idBytes)
		}
		pid, err := FindInstanceProcess(id)
		if err != nil {
			return fmt.Errorf("adopting instance %s: checking whether another podd uses it: %w", id, err)
		}
		if pid != 0 {
			return fmt.Errorf("adopting instance %s: the podd with PID %d runs it; stop that podd first", id, pid)
		}
		adoptedIDs = append(adoptedIDs, id)
	}
	if len(adoptedIDs) == len(i.AdoptedIDs) {
		return nil
	}
	data, err := json.Marshal(slices.Concat(adoptedIDs, i.ContestedIDs))
	if err != nil {
		return fmt.Errorf("storing the adopted instances: %w", err)
	}
	dir, err := os.OpenRoot(i.root)
	if err != nil {
		return fmt.Errorf("storing the adopted instances: %w", err)
	}
	defer dir.Close()
	if err := atomicfile.WriteIn(dir, adoptedFile, adoptedFile+".new", append(data, '\n')); err != nil {
		return fmt.Errorf("storing the adopted instances: %w", err)
	}
	i.AdoptedIDs = adoptedIDs
	i.writeLockFile()
	return nil
}

// readAdopted returns the valid IDs in adoptedFile, or nil if there is no file.
func readAdopted(dir *os.Root) (ids []string, err error) {
	f, err := dir.OpenFile(adoptedFile, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIDFileBytes))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &ids); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !isInstanceID(id) }), nil
}

// loadAdopted sets i.AdoptedIDs and i.ContestedIDs from the stored IDs. An adopted instance is
// contested if another podd uses it.
func (i *Instance) loadAdopted(dir *os.Root) error {
	ids, err := readAdopted(dir)
	if err != nil {
		return fmt.Errorf("reading the adopted instances in %s: %w; repair the file, or remove it if no pod of these instances runs", dir.Name()+"/"+adoptedFile, err)
	}
	for _, id := range ids {
		pid, err := FindInstanceProcess(id)
		if err != nil {
			return fmt.Errorf("checking whether another podd uses the adopted instance %s: %w", id, err)
		}
		if pid != 0 {
			i.ContestedIDs = append(i.ContestedIDs, id)
		} else {
			i.AdoptedIDs = append(i.AdoptedIDs, id)
		}
	}
	return nil
}

// IDs returns i.ID followed by the IDs of the adopted instances: the values of
// runtime.LabelInstance on all sandboxes of i.
func (i *Instance) IDs() []string { return slices.Concat([]string{i.ID}, i.AdoptedIDs) }
