package memorywatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A usageWatch requests a notification when the memory usage of a cgroup (v1) crosses a limit.
type usageWatch struct {
	dirs   func() []string // returns the possible directories of the cgroup; nil if the kernel sends no notifications
	events *os.File        // eventfd of the registered notification; nil if there is none
	limit  int64           // usage in bytes at which the registered notification is sent
	cgroup fs.FileInfo     // control file of the cgroup with the registered notification
}

// The files of a cgroup with its memory usage in bytes and with its notifications.
const (
	usageFile   = "memory.usage_in_bytes"
	controlFile = "cgroup.event_control"
)

// find returns the directory of the cgroup, and its control file. The directory is "" if the cgroup does
// not exist.
func (u *usageWatch) find() (dir string, control fs.FileInfo) {
	if u.dirs == nil {
		return "", nil
	}
	for _, dir := range u.dirs() {
		if control, err := os.Stat(filepath.Join(dir, controlFile)); err == nil {
			return dir, control
		}
	}
	return "", nil
}

// arm requests an event when the memory usage of the cgroup has grown by distance bytes. A distance of 0
// or less requests none. The request replaces the earlier one. The kernel forgets a request when the
// cgroup is removed, so arm registers it again in a cgroup that was created again.
func (w *Watcher) arm(u *usageWatch, distance int64) {
	dir, control := u.find()
	if dir == "" || distance <= 0 {
		u.disarm()
		return
	}
	usage, err := readUsage(dir)
	if err == nil && u.events != nil && os.SameFile(u.cgroup, control) && isNear(u.limit, usage+distance) {
		return
	}
	u.disarm()
	if err == nil {
		u.cgroup = control
		err = w.register(u, dir, usage+distance)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // the cgroup may have been removed, also while it was used
		w.log.Debug("the kernel sends no notifications of the memory usage; podd checks the memory periodically", "cgroup", dir, "err", err)
		u.dirs = nil
	}
}

// isNear reports whether two amounts of memory differ by at most 16 MiB. Registering a notification
// again for a smaller difference would not be worth the system calls.
func isNear(a, b int64) bool { return max(a, b)-min(a, b) <= 16<<20 }

// readUsage returns the memory usage of the cgroup dir in bytes.
func readUsage(dir string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, usageFile))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// register requests an event when the memory usage of the cgroup dir crosses limit.
func (w *Watcher) register(u *usageWatch, dir string, limit int64) error {
	watched, err := os.Open(filepath.Join(dir, usageFile))
	if err != nil {
		return err
	}
	defer watched.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an eventfd: %w", err)
	}
	events := os.NewFile(uintptr(fd), "eventfd")
	control := fmt.Sprintf("%d %d %d", fd, watched.Fd(), limit)
	if err := os.WriteFile(filepath.Join(dir, controlFile), []byte(control), 0); err != nil {
		events.Close()
		return err
	}
	u.events, u.limit = events, limit
	w.readers.Go(func() {
		buf := make([]byte, 8) // an eventfd returns a 64-bit counter
		forward(func() error {
			_, err := events.Read(buf)
			return err // disarm has closed the file
		}, w.notify, w.closed)
	})
	return nil
}

// disarm removes the registered notification, if there is one.
func (u *usageWatch) disarm() {
	if u.events != nil {
		u.events.Close() // this also ends the goroutine that reads the file
		u.events = nil
	}
}
