package dynconfig

import (
	"io/fs"
	"path/filepath"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest/dirwatch"
)

const (
	// settleDelay is the time between the last change of a file and the check of the configuration, because
	// a user often changes several files, and an editor may write a file in several steps.
	settleDelay = time.Second
	// maxSettleDelay is the maximum time between the first change and the check.
	maxSettleDelay = 5 * time.Second
	// checkInterval is the interval between checks. It finds changes that caused no event.
	checkInterval = 30 * time.Second
)

// A checkTimer computes the time of the next check of the files.
type checkTimer struct {
	at           time.Time
	firstEventAt time.Time // zero if there was no event since the last check
}

func newCheckTimer(now time.Time) checkTimer { return checkTimer{at: now.Add(checkInterval)} }

// recordEvent delays the check until the files have settled.
func (t *checkTimer) recordEvent(now time.Time) {
	if t.firstEventAt.IsZero() {
		t.firstEventAt = now
	}
	t.at = earlier(now.Add(settleDelay), t.firstEventAt.Add(maxSettleDelay))
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// watchFiles watches the directories of the configuration files. If it cannot watch them, the periodic
// check finds changes.
func watchFiles(w *dirwatch.Watcher, flags *config.Flags) {
	var dirs []string
	if flags.Config != "" {
		dirs = append(dirs, filepath.Dir(flags.Config))
		if target, err := filepath.EvalSymlinks(flags.Config); err == nil && filepath.Dir(target) != dirs[0] {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	if flags.ConfigDir != "" {
		_ = filepath.WalkDir(flags.ConfigDir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	_, _ = w.Watch(dirs)
}
