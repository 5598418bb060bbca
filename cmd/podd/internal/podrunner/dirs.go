package podrunner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"podd/cmd/podd/internal/rootdir"
	"podd/runtime/safepath"
)

// Dirs manages the root directories of runs. A run is one process of "podd run --runonce" with
// --root-dir=<root>. Its root directory is:
//
//	<root>/once/<pid>-<start time>-<random>
//
// The process ID and the start time identify the podd process of a run. This process also locks the
// root directory of the run.
type Dirs struct{ Root string }

// NewSuffix returns a random suffix for the names of the pods of a run.
func NewSuffix() string { return strings.ToLower(rand.Text()[:10]) }

// CreateRun creates the root directory of a run of this process and returns its path. It returns an
// error if this process has another run with the same suffix.
func (d Dirs) CreateRun(suffix string) (dir string, err error) {
	self := os.Getpid()
	start, err := processStartTime(self)
	if err != nil {
		return "", fmt.Errorf("creating the run directory: %w", err)
	}
	dir = filepath.Join(rootdir.RunsPath(d.Root), fmt.Sprintf("%d-%d-%s", self, start, suffix))
	if err := os.MkdirAll(rootdir.RunsPath(d.Root), 0o700); err != nil {
		return "", fmt.Errorf("creating the run directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("creating the run directory: %w", err)
	}
	return dir, nil
}

// RemoveRun removes the directory of a run without pods. It does not cross mount points, and returns
// safepath.ErrMount if the directory contains a mount point.
func RemoveRun(ctx context.Context, dir string) error {
	parent, err := safepath.Open(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	defer parent.Close()
	if err := parent.RemoveAll(ctx, filepath.Base(dir)); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}

// ListAll returns the directories of all runs, including the directories that ListDead returns.
func (d Dirs) ListAll() []string {
	dirs, _ := filepath.Glob(filepath.Join(rootdir.RunsPath(d.Root), "*")) // the only error is an invalid pattern
	return dirs
}

// ListDead returns the directories of the runs without a process.
func (d Dirs) ListDead() ([]string, error) {
	entries, err := os.ReadDir(rootdir.RunsPath(d.Root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the run directories: %w", err)
	}
	var deadDirs []string
	for _, e := range entries {
		pid, start, ok := parseRun(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		if now, err := processStartTime(pid); err != nil || now != start {
			deadDirs = append(deadDirs, filepath.Join(rootdir.RunsPath(d.Root), e.Name()))
		}
	}
	return deadDirs, nil
}

// parseRun parses the name of the directory of a run. The result start is the start time of the
// process in clock ticks since boot. ok reports whether name is valid.
func parseRun(name string) (pid int, start uint64, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(parts[0])
	start, err2 := strconv.ParseUint(parts[1], 10, 64)
	return pid, start, err1 == nil && err2 == nil && pid > 0
}

// processStartTime returns the start time of a process in clock ticks since boot, which is field 22
// of /proc/PID/stat (proc_pid_stat(5)). Field 2, the name of the process, may contain any
// characters, so the fields after it are found with the last parenthesis. processStartTime returns
// an error if the process does not exist or is a zombie.
func processStartTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const field = 22 - 3 // the first element is field 3
	if len(fields) <= field {
		return 0, fmt.Errorf("reading /proc/%d/stat: the file has %d fields instead of at least %d", pid, len(fields), field+1)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fmt.Errorf("process %d is dead", pid)
	}
	return strconv.ParseUint(fields[field], 10, 64)
}
