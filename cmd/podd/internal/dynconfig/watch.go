package dynconfig

import (
	"io/fs"
	"path/filepath"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest/dirwatch"
)

const (
	// settleDelay is the time between a change of a file and the check of the configuration, because a
	// user often changes several files.
	settleDelay = time.Second
	// checkInterval is the interval between checks. It finds changes that caused no event.
	checkInterval = 30 * time.Second
)

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
