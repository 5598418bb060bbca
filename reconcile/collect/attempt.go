package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"podd/runtime/beneath"
	"podd/runtime/logs"
)

// RemoveBefore removes the logs of a container's attempts before this one,
// rotated parts included, and tells whether there were any. podLogs is the
// pod's log directory.
func RemoveBefore(podLogs, container string, attempt uint32) (removed bool, err error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return false, fmt.Errorf("removing old logs of container %s: %w", container, err)
	}
	var failed []error
	for _, name := range names {
		if n, ok := logs.AttemptOf(name); ok && n < attempt {
			removed = true
			failed = append(failed, dir.Remove(name))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return removed, fmt.Errorf("removing old logs of container %s: %w", container, err)
	}
	return removed, nil
}

// NextAttempt is the lowest attempt number above all that a container has log
// files of, rotated ones too: what to go on with when the runtime has forgotten
// its dead containers. Without any it is 0. podLogs is the pod's log directory.
func NextAttempt(podLogs, container string) (uint32, error) {
	dir, err := openContainer(podLogs, container)
	if dir == nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return 0, fmt.Errorf("looking for earlier logs of container %s: %w", container, err)
	}
	return nextAttempt(names), nil
}

// maxAttempt is the highest number that is taken for an attempt: no container
// gets there, and nobody who plants a file can make the count run over.
const maxAttempt = 1 << 30

func nextAttempt(names []string) (next uint32) {
	for _, name := range names {
		if n, ok := logs.AttemptOf(name); ok && n <= maxAttempt {
			next = max(next, n+1)
		}
	}
	return next
}

// openContainer opens the log directory of a container; nil without an error
// when there is none.
func openContainer(podLogs, container string) (*beneath.Dir, error) {
	if !filepath.IsLocal(container) || container == "." || filepath.Base(container) != container {
		return nil, fmt.Errorf("looking for logs: %q is no container's name", container)
	}
	all, err := beneath.Open(filepath.Dir(podLogs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for logs of container %s: %w", container, err)
	}
	defer all.Close()
	dir, err := all.Sub(filepath.Join(filepath.Base(podLogs), container))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for logs of container %s: %w", container, err)
	}
	return dir, nil
}
