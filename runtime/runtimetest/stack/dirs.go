package stack

import (
	"os"
	"path/filepath"
)

// OpenDirs lets the root user of a pod with a user namespace traverse the directories of the
// runtime. This user can also traverse the usual directories of a runtime, below /run and /var/lib.
func (s *Stack) OpenDirs() error {
	for _, dir := range []string{s.Dir, s.privateDir(), filepath.Join(s.privateDir(), "run"), filepath.Join(s.privateDir(), "root")} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	return nil
}
