package memorywatch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// A limitWatch makes the kernel report changes of the files memory.events.local (cgroup v2). A nil
// limitWatch does nothing.
type limitWatch struct {
	inotify *os.File
	files   []string // possible paths of the file
	log     *slog.Logger
}

// openLimitWatch starts a goroutine that sends an event whenever one of the files changes, until
// Close. It does nothing if there are no paths.
func (w *Watcher) openLimitWatch(files []string) error {
	if len(files) == 0 {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("creating an inotify instance: %w", err)
	}
	l := &limitWatch{inotify: os.NewFile(uintptr(fd), "inotify"), files: files, log: w.log}
	w.limits = l
	w.readers.Go(func() {
		buf := make([]byte, 256*unix.SizeofInotifyEvent) // more events than the kernel sends in minReadInterval
		forward(func() error {
			_, err := l.inotify.Read(buf)
			return err // close has closed the file
		}, w.notify, w.closed)
	})
	return nil
}

// add watches the files that exist. The kernel ignores a file that is already watched. add is
// called at each check, because the cgroup may be created later, and again after it was removed.
func (l *limitWatch) add() {
	if l == nil {
		return
	}
	connection, err := l.inotify.SyscallConn()
	if err != nil {
		return // closed
	}
	for _, file := range l.files {
		var watchErr error
		_ = connection.Control(func(fd uintptr) { _, watchErr = unix.InotifyAddWatch(int(fd), file, unix.IN_MODIFY) })
		if watchErr != nil && !errors.Is(watchErr, fs.ErrNotExist) {
			l.log.Debug("watching the memory limit of the pods failed; podd checks the memory periodically", "path", file, "err", watchErr)
		}
	}
}

// close ends the notifications.
func (l *limitWatch) close() {
	if l != nil {
		l.inotify.Close()
	}
}
