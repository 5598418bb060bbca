package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/checksum"
	"podd/reconcile/clock"
	"podd/reconcile/state"
	"podd/runtime/atomicfile"
)

// maxBytes is the maximum size in bytes of a journal that podd writes or reads. The data of a
// container needs less than 1 KiB without its termination message. The message has up to 4 KiB,
// which may become 24 KiB in JSON. If a journal would exceed maxBytes, podd omits the messages.
const maxBytes = 1 << 20

// A Store is the directory of all pod directories. Each journal in it has a single writer, which is
// the worker of the pod.
type Store struct {
	Root string
	// Clock reads the host's clocks; nil means clock.Read.
	Clock func() state.ClockReading
	// HasData reports whether a pod directory contains data. podd must not remove such a directory
	// unless its pod is known. nil means that no directory contains data.
	HasData func(ctx context.Context, uid types.UID) (bool, error)
	// Replace stores the journal of a pod, whose directory is dir. If Replace is nil, the Store
	// uses the function Replace of this package. Tests set it to record writes, or to make them
	// fail.
	Replace func(dir string, data []byte, durable bool) error
}

// FileName is the name of the journal in the directory of its pod.
const FileName = "journal.json"

// tempFileName is the name of the file that the next journal is written to.
const tempFileName = FileName + ".new"

// Write stores r. If durable is set, r is on disk when Write returns.
func (s Store) Write(r state.Record, durable bool) error {
	if !manifest.IsSafeUID(r.UID) {
		return fmt.Errorf("writing the journal of pod %s: its uid %q cannot be a directory name", r.Key, r.UID)
	}
	dir := s.Dir(r.UID)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("writing the journal of pod %s: %w", r.Key, err)
	}
	data, err := encode(r.WithClock(s.Now()))
	if err != nil {
		return fmt.Errorf("writing the journal of pod %s: %w", r.Key, err)
	}
	store := Replace
	if s.Replace != nil {
		store = s.Replace
	}
	if err := store(dir, data, durable); err != nil {
		return fmt.Errorf("writing the journal of pod %s: %w", r.Key, err)
	}
	return nil
}

// Now reads the host's clocks.
func (s Store) Now() state.ClockReading {
	if s.Clock != nil {
		return s.Clock()
	}
	return clock.Read()
}

// encode returns r as JSON with a checksum. If the result would exceed maxBytes, encode omits the
// termination messages.
func encode(r state.Record) ([]byte, error) {
	r.Version = formatVersion
	data, err := checksum.Marshal(r)
	if err == nil && len(data) > maxBytes {
		data, err = checksum.Marshal(r.WithoutMessages())
	}
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("the journal is too large: %d bytes (limit %d)", len(data), maxBytes)
	}
	return data, err
}

// Replace writes the journal in dir. It replaces an earlier journal atomically. If durable is set,
// it syncs the journal, dir and the parent of dir, because dir may be new.
func Replace(dir string, data []byte, durable bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := atomicfile.SwapIn(root, FileName, tempFileName, data, durable); err != nil || !durable {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(parent), parent.Close())
}

// HasTakenOverPod reports whether a journal records a pod that was taken over from a kubelet. In
// this case podd must observe unlabeled sandboxes, even without --adopt.
func (s Store) HasTakenOverPod() (bool, error) {
	journals, _, err := s.ReadAll()
	for _, records := range journals {
		if slices.ContainsFunc(records, func(r state.Record) bool { return r.TakenOver }) {
			return true, nil
		}
	}
	return false, err
}

// PodNames returns the names of all pods with a valid journal, by UID.
func (s Store) PodNames() (map[types.UID]types.NamespacedName, error) {
	journals, _, err := s.ReadAll()
	names := map[types.UID]types.NamespacedName{}
	for key, records := range journals {
		for _, r := range records {
			names[r.UID] = key
		}
	}
	return names, err
}
