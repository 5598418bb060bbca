package reservation

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock locks the table for this process until unlock is called. It blocks while another process
// has the lock, which takes only the time of some file operations.
func (t *Table) lock() (unlock func(), err error) {
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the directory of subnet reservations: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(t.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of subnet reservations: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing releases the lock
		}
		if err != unix.EINTR {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
}
