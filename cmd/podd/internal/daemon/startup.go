package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/printer"
	"podd/runtime/atomicfile"
	"podd/server"
)

// startErrorFileName is the name of a file in the run directory. If the last start of podd failed,
// the file contains the error.
const startErrorFileName = "podd-start-error"

// maxStartErrorSize is the maximum size of the file startErrorFileName in bytes.
const maxStartErrorSize = 64 << 10

// repeatedStartWindow limits the time between two starts that fail with the same error. After a
// shorter time, podd assumes that a service manager has repeated the start.
const repeatedStartWindow = 10 * time.Minute

// A startup explains why podd fails to start. A service manager starts podd again and again, but
// podd makes the checks only once for each error.
type startup struct {
	runDir string
	check  func(context.Context) check.Report
	isDone atomic.Bool // podd has started
}

// succeed records that podd has started.
func (s *startup) succeed(log *slog.Logger) {
	if s.isDone.Swap(true) {
		return
	}
	if err := os.Remove(filepath.Join(s.runDir, startErrorFileName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("failed to remove the stored error of the last failed start; if the next start fails with the same error, podd does not check this host again", "err", err)
	}
}

// explain returns err, the error with which podd stops. If podd has not started, the result also
// contains the failed checks, unless the last start failed with the same error.
func (s *startup) explain(ctx context.Context, err error) error {
	if err == nil || s.isDone.Load() || ctx.Err() != nil || !s.record(err.Error(), time.Now()) {
		return err
	}
	if failures := failedChecks(s.check(ctx)); len(failures) > 0 {
		return &startError{err, failures}
	}
	return err
}

// record stores the message of an error in the run directory. isNew is false if the last start
// failed with the same message less than repeatedStartWindow ago. If the message cannot be stored,
// for example because the run directory is invalid, isNew is true.
func (s *startup) record(message string, now time.Time) (isNew bool) {
	if server.PrepareRunDir(s.runDir) != nil {
		return true
	}
	path := filepath.Join(s.runDir, startErrorFileName)
	stored, err := atomicfile.Read(path, maxStartErrorSize)
	isNew = err != nil || string(stored) != message
	if info, err := os.Stat(path); err != nil || now.Sub(info.ModTime()).Abs() >= repeatedStartWindow {
		isNew = true
	}
	if err := atomicfile.Write(path, []byte(message)); err != nil {
		return true
	}
	return isNew
}

// failedChecks returns a line for each failure in a report. The lines are escaped, because they
// contain the names of processes.
func failedChecks(report check.Report) (failures []string) {
	for _, r := range report.Checks {
		for _, p := range r.Problems {
			if p.Outcome == check.Failed {
				failures = append(failures, r.Check+": "+printer.Escape(p.Err().Error()))
			}
		}
	}
	return failures
}

// A startError is an error together with the failed checks of the host.
type startError struct {
	err    error
	failed []string
}

// Error returns the error and a line for each failed check.
func (e *startError) Error() string {
	return e.err.Error() + "\nfailed checks of this host (\"podd check\" repeats the checks):\n  " + strings.Join(e.failed, "\n  ")
}

// Unwrap returns the error without the checks.
func (e *startError) Unwrap() error { return e.err }
