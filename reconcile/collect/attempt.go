package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"podd/runtime/logs"
	"podd/runtime/safepath"
)

// removeOldAttempts removes the logs, including rotated logs, of a container's attempts whose
// numbers are lower than both attempt and oldest. It keeps the logs of the latest attempt before
// attempt. removed reports whether removeOldAttempts found logs to remove. podLogs is the pod's log
// directory.
func removeOldAttempts(podLogs, container string, attempt, oldest uint32) (removed bool, err error) {
	dir, err := openContainerLogs(podLogs, container)
	if dir == nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return false, fmt.Errorf("removing logs of earlier attempts of container %s: %w", container, err)
	}
	previous := uint32(0)
	for _, name := range names {
		if n, ok := logs.ParseAttempt(name); ok && n < attempt {
			previous = max(previous, n)
		}
	}
	var errs []error
	for _, name := range names {
		if n, ok := logs.ParseAttempt(name); ok && n < min(previous, oldest) {
			removed = true
			errs = append(errs, dir.Remove(name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("removing logs of earlier attempts of container %s: %w", container, err)
	}
	return removed, nil
}

// lowestFreeAttempt returns the lowest attempt number that is higher than the attempt number of
// every log file of a container, including rotated files. It returns 0 if there are no log files.
// The number is needed if the runtime no longer lists the container's earlier attempts. podLogs is
// the pod's log directory.
func lowestFreeAttempt(podLogs, container string) (uint32, error) {
	dir, err := openContainerLogs(podLogs, container)
	if dir == nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return 0, fmt.Errorf("listing the logs of container %s: %w", container, err)
	}
	return nextAttempt(names), nil
}

// maxAttempt is the highest attempt number that is read from a file name. Higher numbers are
// ignored, because a container may be able to create files in its log directory, and the number
// after a very high number would overflow.
const maxAttempt = 1 << 30

// nextAttempt returns the lowest attempt number that is higher than the attempt number of
// every log file in names.
func nextAttempt(names []string) (next uint32) {
	for _, name := range names {
		if n, ok := logs.ParseAttempt(name); ok && n <= maxAttempt {
			next = max(next, n+1)
		}
	}
	return next
}

// openContainerLogs opens the log directory of a container. It returns nil and no error if
// the directory does not exist.
func openContainerLogs(podLogs, container string) (*safepath.Dir, error) {
	if !isContainerName(container) {
		return nil, fmt.Errorf("opening the log directory of a container: %q is not a valid container name", container)
	}
	rootDir, err := safepath.Open(filepath.Dir(podLogs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log directory of container %s: %w", container, err)
	}
	defer rootDir.Close()
	dir, err := rootDir.Sub(filepath.Join(filepath.Base(podLogs), container))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the log directory of container %s: %w", container, err)
	}
	return dir, nil
}

// isContainerName reports whether name is valid for the log directory of a container: a
// single path element other than "." and "..".
func isContainerName(name string) bool {
	return filepath.IsLocal(name) && name != "." && filepath.Base(name) == name
}
