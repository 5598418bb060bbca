package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/durable"
	"podd/reconcile/plan"
)

// journal is what a worker remembers of one pod UID beyond the life of podd,
// kept as <pods>/<uid>/journal.json. The runtime's word wins over it. Without
// it a finished pod whose records the runtime lost too runs again, a
// termination under way gets its whole grace once more, its preStop hooks are
// made again, a postStart hook under way is taken for done, and restart counts
// come from container annotations and logs, and what has a probe is not ready,
// or not started, before the probe passes anew. What was resized is resized once
// more. Ephemeral containers that were asked for and not made yet are not made.
// What was taken over from a kubelet is that one's again, for a podd that is not
// asked to adopt.
type journal struct {
	Key        types.NamespacedName    `json:"key"`
	UID        types.UID               `json:"uid"`
	Hash       string                  `json:"hash"`
	Taken      bool                    `json:"taken,omitempty"` // over from a kubelet
	Volumes    bool                    `json:"volumes,omitempty"`
	StartTime  time.Time               `json:"startTime,omitzero"`
	Finished   *plan.Finished          `json:"finished,omitempty"`
	Stopping   *plan.Stopping          `json:"stopping,omitempty"`
	Containers map[string]journalEntry `json:"containers,omitempty"`
	Probed     map[string]plan.Probed  `json:"probed,omitempty"`  // by container ID
	Endings    map[string]plan.Ending  `json:"endings,omitempty"` // by container ID
	Sizes      map[string]string       `json:"sizes,omitempty"`   // see plan.History
	// Ephemeral are the containers that were added to the pod and are not made yet,
	// which have at most manifest.MaxEphemeral bytes.
	Ephemeral []v1.EphemeralContainer `json:"ephemeral,omitempty"`
}

type journalEntry struct {
	Attempt  uint32     `json:"attempt,omitempty"`
	LastExit *plan.Exit `json:"lastExit,omitempty"`
	// RestartID and PostStart are those of plan.ContainerHistory.
	RestartID string    `json:"restartID,omitempty"`
	PostStart plan.Hook `json:"postStart,omitzero"`
}

// journalLimit bounds what is written and read back. A container has less than 1 KiB
// but for what it said of its end, up to 4 KiB that may have six times as many as
// JSON: that is left out where there is no room.
const journalLimit = 1 << 20

// Journals are the journals under one pods directory. Each file has one
// writer, the worker of its pod.
type Journals struct{ Root string }

const journalName = "journal.json"

// write stores j; with durable it has reached the disk when write returns.
func (s Journals) write(j journal, durable bool) error {
	if !manifest.SafeUID(j.UID) {
		return fmt.Errorf("remembering pod %s: its uid %q cannot be a directory name", j.Key, j.UID)
	}
	dir := filepath.Join(s.Root, string(j.UID))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	data, err := j.encoded()
	if err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	if err := replace(dir, data, durable); err != nil {
		return fmt.Errorf("remembering pod %s: %w", j.Key, err)
	}
	return nil
}

// encoded is what read takes, without messages if it must be.
func (j journal) encoded() ([]byte, error) {
	data, err := json.Marshal(j)
	if err == nil && len(data) > journalLimit {
		j.Containers = silent(j.Containers)
		data, err = json.Marshal(j)
	}
	if err == nil && len(data) > journalLimit {
		err = fmt.Errorf("its journal would have %d bytes, and only %d are read back", len(data), journalLimit)
	}
	return data, err
}

// silent leaves out what containers said of their ends; whoever reads it back asks
// them again, where they still are.
func silent(containers map[string]journalEntry) map[string]journalEntry {
	all := maps.Clone(containers)
	for name, e := range all {
		if e.LastExit != nil {
			exit := *e.LastExit
			exit.Said, exit.Told, exit.Message = "", false, ""
			e.LastExit = &exit
			all[name] = e
		}
	}
	return all
}

// replace puts a journal in place of the one that there may be.
func replace(dir string, data []byte, lasting bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	write := durable.Replace
	if lasting {
		write = durable.WriteIn
	}
	return write(root, journalName, journalName+".new", data)
}

// read returns the journal of a pod directory; fs.ErrNotExist when it has none.
func (s Journals) read(uid types.UID) (journal, error) {
	var j journal
	root, err := os.OpenRoot(filepath.Join(s.Root, string(uid)))
	if err != nil {
		return j, err
	}
	defer root.Close()
	f, err := root.OpenFile(journalName, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return j, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return j, fmt.Errorf("reading journal of %s: it is not a regular file", uid)
	}
	data, err := io.ReadAll(io.LimitReader(f, journalLimit))
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal(data, &j); err != nil {
		return j, fmt.Errorf("reading journal of %s: %w", uid, err)
	}
	if j.UID != uid || j.Key.Name == "" {
		return j, fmt.Errorf("reading journal of %s: it speaks of %q (%q)", uid, j.Key, j.UID)
	}
	return j, nil
}

// TookOver tells whether something is remembered as taken over from a kubelet: what has
// no podd's label is to be looked into then, also by a podd that is not asked to adopt.
func (s Journals) TookOver() (bool, error) {
	found, _, err := s.all()
	for _, all := range found {
		if slices.ContainsFunc(all, func(j journal) bool { return j.Taken }) {
			return true, nil
		}
	}
	return false, err
}

// Names are the pods whose directories are there, by UID.
func (s Journals) Names() (map[types.UID]types.NamespacedName, error) {
	found, _, err := s.all()
	names := map[types.UID]types.NamespacedName{}
	for key, all := range found {
		for _, j := range all {
			names[j.UID] = key
		}
	}
	return names, err
}

// all returns the journals of every pod directory, by pod name, and the UIDs of
// directories without a readable one: nobody knows whose they are.
func (s Journals) all() (found map[types.NamespacedName][]journal, lost []types.UID, err error) {
	entries, err := os.ReadDir(s.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("looking for pod directories: %w", err)
	}
	found = map[types.NamespacedName][]journal{}
	for _, e := range entries {
		uid := types.UID(e.Name())
		if !e.IsDir() || !manifest.SafeUID(types.UID(e.Name())) {
			continue
		}
		j, err := s.read(uid)
		if err != nil {
			lost = append(lost, uid)
			continue
		}
		found[j.Key] = append(found[j.Key], j)
	}
	return found, lost, nil
}

// has tells whether a pod has a directory.
func (s Journals) has(uid types.UID) bool {
	if !manifest.SafeUID(uid) {
		return false
	}
	info, err := os.Lstat(filepath.Join(s.Root, string(uid)))
	return err == nil && info.IsDir()
}

// nameOfLost is the name under which a directory is torn down that nobody can
// tell the pod of.
func nameOfLost(uid types.UID) types.NamespacedName { return types.NamespacedName{Name: string(uid)} }
