package once

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Place is where the runs of one root directory keep their own roots:
//
//	<root>/once/<pid>-<start time>-<random>
//
// The process and when it started tell a living run from a dead one, beside the
// lock that every root has.
type Place struct{ Root string }

func (p Place) dir() string { return filepath.Join(p.Root, "once") }

// NewSuffix is what makes the names of a run's pods its own.
func NewSuffix() string { return strings.ToLower(rand.Text()[:10]) }

// Make makes the directory of this process's run with that suffix.
func (p Place) Make(suffix string) (dir string, err error) {
	self := os.Getpid()
	start, err := startTime(self)
	if err != nil {
		return "", fmt.Errorf("making a directory for the run: %w", err)
	}
	dir = filepath.Join(p.dir(), fmt.Sprintf("%d-%d-%s", self, start, suffix))
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return "", fmt.Errorf("making a directory for the run: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a directory for the run: %w", err)
	}
	return dir, nil
}

// All are the directories of runs, ended or not.
func (p Place) All() []string {
	all, _ := filepath.Glob(filepath.Join(p.dir(), "*")) // no bad pattern
	return all
}

// Dead are the directories of runs whose process is gone.
func (p Place) Dead() ([]string, error) {
	entries, err := os.ReadDir(p.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for runs that ended: %w", err)
	}
	var dead []string
	for _, e := range entries {
		pid, start, ok := parseRun(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		if now, err := startTime(pid); err != nil || now != start {
			dead = append(dead, filepath.Join(p.dir(), e.Name()))
		}
	}
	return dead, nil
}

func parseRun(name string) (pid int, start uint64, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(parts[0])
	start, err2 := strconv.ParseUint(parts[1], 10, 64)
	return pid, start, err1 == nil && err2 == nil && pid > 0
}

// startTime is when a process started, in clock ticks since boot: field 22 of
// its stat (proc_pid_stat(5)). The name before may have anything in it but ends
// with the last parenthesis. One that is dead and only not yet waited for is an
// error, as one that is gone.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const field = 22 - 3 // the state, number 3, is the first here
	if len(fields) <= field {
		return 0, fmt.Errorf("reading /proc/%d/stat: it is too short", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d is dead", pid)
	}
	return strconv.ParseUint(fields[field], 10, 64)
}
