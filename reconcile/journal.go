package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/checksum"
	"podd/reconcile/clock"
	"podd/reconcile/plan"
	"podd/runtime/atomicfile"
)

// journal is the history of one pod UID that a worker stores in <pods>/<uid>/journal.json,
// so that it survives podd. If the runtime reports something else, the runtime is right. If
// the journal is lost,
//
//   - a finished pod runs again if the runtime lost its containers, too;
//   - a termination in progress gets its whole grace and its preStop hooks again;
//   - a postStart hook in progress counts as done;
//   - restart counts come from container annotations and logs;
//   - containers with probes are not ready, or not started, until the probe passes again;
//   - resized containers are resized again;
//   - ephemeral containers that were added and not created yet are not created;
//   - a pod that was taken over from a kubelet belongs to the kubelet again, unless podd runs
//     with --adopt.
type journal struct {
	Version      int                         `json:"version,omitempty"` // see journalVersion; 0 in the first format
	Key          types.NamespacedName        `json:"key"`
	UID          types.UID                   `json:"uid"`
	Hash         string                      `json:"hash"`
	Taken        bool                        `json:"taken,omitempty"` // taken over from a kubelet
	Volumes      bool                        `json:"volumes,omitempty"`
	StartTime    time.Time                   `json:"startTime,omitzero"` // the start time in the pod's status
	Finished     *plan.Finished              `json:"finished,omitempty"`
	Stopping     *plan.Stopping              `json:"stopping,omitempty"`
	Containers   map[string]journalEntry     `json:"containers,omitempty"`
	Probed       map[string]plan.Probed      `json:"probed,omitempty"`  // by container ID
	Terminations map[string]plan.Termination `json:"endings,omitempty"` // by container ID
	Sizes        map[string]plan.Size        `json:"sizes,omitempty"`   // see plan.History
	// Ephemeral are the containers that were added to the pod and not created yet. They
	// have at most validate.MaxEphemeralBytes bytes.
	Ephemeral []v1.EphemeralContainer `json:"ephemeral,omitempty"`
	// Clock is nil in the journals of older versions of podd.
	Clock *journalClock `json:"clock,omitempty"`

	// started is the moment of StartTime on the monotonic clock, which steps of the wall
	// clock do not move.
	started time.Time
}

// lasting reports whether j must survive a power cut: without its end the pod would run
// again, and a user was told that its ephemeral containers were added. A journal that
// replaces such a one must be synced too, because some file systems (XFS) may otherwise
// have an empty file in its place after a power cut.
func (j *journal) lasting() bool { return j.Finished != nil || len(j.Ephemeral) > 0 }

// journalEntry is the part of a journal about one container.
type journalEntry struct {
	Attempt  uint32     `json:"attempt,omitempty"`
	Skipped  uint32     `json:"skipped,omitempty"` // Attempt minus plan.ContainerHistory.Restarts; without it, restart counts are too high by this number
	LastExit *plan.Exit `json:"lastExit,omitempty"`
	// RestartID and PostStart are those of plan.ContainerHistory.
	RestartID string    `json:"restartID,omitempty"`
	PostStart plan.Hook `json:"postStart,omitzero"`
}

// journalLimit is the maximum size of a journal in bytes, for writing and reading. A
// container needs less than 1 KiB without its termination message. The message has up to 4
// KiB and may need six times as many in JSON. It is left out if there is no room.
const journalLimit = 1 << 20

// Journals are the journals in one pods directory. Each file has one writer, the worker of
// its pod.
type Journals struct {
	Root string
	// Clock reads the host's clocks; nil means clock.Read.
	Clock func() clock.Reading
	// HasData reports whether a pod's directory has data that must not be removed unless
	// its pod is known; nil means that none has.
	HasData func(ctx context.Context, uid types.UID) (bool, error)
	// replace stores the data of one pod directory; nil stores it in a file.
	// Tests record and fail writes with it.
	replace func(dir string, data []byte, durable bool) error
}

const journalName = "journal.json"

// write stores j. If durable is set, j is on disk when write returns.
func (s Journals) write(j journal, durable bool) error {
	if !manifest.SafeUID(j.UID) {
		return fmt.Errorf("remembering pod %s: its uid %q cannot be a directory name", j.Key, j.UID)
	}
	dir := s.path(j.UID)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	data, err := j.stamped(s.clock()).encoded()
	if err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	store := replace
	if s.replace != nil {
		store = s.replace
	}
	if err := store(dir, data, durable); err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	return nil
}

func (s Journals) clock() clock.Reading {
	if s.Clock != nil {
		return s.Clock()
	}
	return clock.Read()
}

// encoded returns j as JSON, without termination messages if it would be too large for
// read.
func (j journal) encoded() ([]byte, error) {
	j.Version = journalVersion
	data, err := checksum.Marshal(j)
	if err == nil && len(data) > journalLimit {
		j.Containers = withoutMessages(j.Containers)
		data, err = checksum.Marshal(j)
	}
	if err == nil && len(data) > journalLimit {
		err = fmt.Errorf("its journal would have %d bytes, and only %d are read back", len(data), journalLimit)
	}
	return data, err
}

// withoutMessages returns containers without their termination messages. The worker that
// reads them back reads the messages again if they still exist.
func withoutMessages(containers map[string]journalEntry) map[string]journalEntry {
	all := maps.Clone(containers)
	for name, e := range all {
		if e.LastExit != nil {
			exit := *e.LastExit
			exit.TerminationMessage, exit.MessageRead, exit.Message = "", false, ""
			e.LastExit = &exit
			all[name] = e
		}
	}
	return all
}

// replace replaces the journal in dir, if there is one. If lasting is set, it also syncs
// the parent directory, because the pod's directory may be new.
func replace(dir string, data []byte, lasting bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if !lasting {
		return atomicfile.Replace(root, journalName, journalName+".new", data)
	}
	if err := atomicfile.WriteIn(root, journalName, journalName+".new", data); err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Sync(parent), parent.Close())
}

// HasTakenOver reports whether a journal records a pod that was taken over from a kubelet. Then
// podd must observe unlabeled sandboxes, even without --adopt.
func (s Journals) HasTakenOver() (bool, error) {
	found, _, err := s.readAll()
	for _, all := range found {
		if slices.ContainsFunc(all, func(j journal) bool { return j.Taken }) {
			return true, nil
		}
	}
	return false, err
}

// Names returns the names of the pods with directories, by UID.
func (s Journals) Names() (map[types.UID]types.NamespacedName, error) {
	found, _, err := s.readAll()
	names := map[types.UID]types.NamespacedName{}
	for key, all := range found {
		for _, j := range all {
			names[j.UID] = key
		}
	}
	return names, err
}
