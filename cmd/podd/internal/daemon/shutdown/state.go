package shutdown

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"podd/reconcile/plan"
	"podd/runtime/atomicfile"
)

// A State contains the shutdown in progress, if there is one. The shutdown is stored in a file
// until the next boot, so that a podd that restarts before the next boot starts no pods. A State is
// not safe for concurrent use.
type State struct {
	path    string  // path of the file
	bootID  string  // boot ID of the node; "" if unknown
	current *record // nil if no shutdown is in progress
}

// A record is the content of the file.
type record struct {
	BootID    string               `json:"boot"`
	Initiator string               `json:"by"` // initiatorUser or initiatorLogind
	Groups    []plan.ShutdownGroup `json:"groups"`
}

// Load returns the state that is stored in the run directory. boot is the node's boot ID.
func Load(runDir, boot string, log *slog.Logger) *State {
	s := &State{path: filepath.Join(runDir, "shutdown.json"), bootID: boot}
	stored, err := readRecord(s.path, boot)
	if err != nil {
		log.Warn("reading the stored shutdown failed; running pods", "err", err)
	}
	if s.current = stored; stored != nil {
		log.Warn("node is shutting down; no pod starts before the next boot, unless a user runs \"podd shutdown --cancel\"", "by", stored.Initiator)
	}
	return s
}

// readRecord returns the record in the file at path. It returns nil if the file does not exist or
// the record is from an earlier boot.
func readRecord(path, boot string) (*record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var stored record
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err == nil && len(stored.Groups) == 0 {
		err = errors.New("no groups")
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	case stored.BootID != boot:
		return nil, nil
	}
	return &stored, nil
}

// Groups returns the groups of the shutdown in progress, or nil.
func (s *State) Groups() []plan.ShutdownGroup {
	if s.current == nil {
		return nil
	}
	return s.current.Groups
}

// start starts a shutdown and stores it. If start returns an error, the shutdown is in progress, but
// not stored.
func (s *State) start(initiator string, groups []plan.ShutdownGroup) error {
	s.current = &record{BootID: s.bootID, Initiator: initiator, Groups: groups}
	return s.writeFile()
}

// restore writes the state file again if a shutdown is in progress and the file is missing. The result
// missing reports whether the file was missing.
func (s *State) restore() (missing bool, err error) {
	if s.current == nil {
		return false, nil
	}
	if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, s.writeFile()
}

// writeFile stores the shutdown in progress.
func (s *State) writeFile() error {
	data, err := json.Marshal(s.current)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path, data)
}

// removeFile removes the file, if there is one.
func (s *State) removeFile() error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the stored shutdown: %w", err)
	}
	return nil
}
