package lockfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A watcher detects that another process opens or removes a file. It uses inotify directly, because
// package fsnotify does not report that a file is opened.
type watcher struct {
	file    *os.File      // the watched file
	inotify *os.File      // the inotify instance
	done    chan struct{} // closed when the goroutine of start has ended; nil before start
}

// watch returns a watcher of f, which this process has opened before.
func watch(f *os.File) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("creating an inotify instance: %w", err)
	}
	w := &watcher{file: f, inotify: os.NewFile(uintptr(fd), "inotify")}
	// The path in /proc refers to the opened file, even if another file is now at its path. The
	// file exists as long as it is open, so the kernel does not report IN_DELETE_SELF. If the file
	// is removed, the kernel reports IN_ATTRIB, because the number of its names changes.
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ATTRIB); err != nil {
		w.close()
		return nil, fmt.Errorf("adding an inotify watch: %w", err)
	}
	return w, nil
}

// start calls onContention once when another process opens or removes the file. err is not nil if
// the file can no longer be watched. start does not block. It must be called at most once.
func (w *watcher) start(onContention func(err error)) {
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		if err := w.wait(); !errors.Is(err, os.ErrClosed) {
			onContention(err)
		}
	}()
}

// close stops the watcher, and waits until its goroutine has ended.
func (w *watcher) close() {
	w.inotify.Close()
	if w.done != nil {
		<-w.done
	}
}

// wait blocks until another process opens or removes the file. It returns an error that wraps
// os.ErrClosed if close is called before.
func (w *watcher) wait() error {
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return fmt.Errorf("reading inotify events: %w", err)
		}
		if n < unix.SizeofInotifyEvent {
			return io.ErrUnexpectedEOF
		}
		if hasOpen(buf[:n]) || w.isRemoved() {
			return nil
		}
	}
}

// hasOpen reports whether events contains an event other than IN_ATTRIB. It also returns true if the
// kernel reports lost events, because another process may have opened the file. Events of a watched
// file have no names, so all events have the same size.
func hasOpen(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		if mask := binary.NativeEndian.Uint32(events[4:]); mask != unix.IN_ATTRIB {
			return true
		}
		events = events[unix.SizeofInotifyEvent:]
	}
	return false
}

// isRemoved reports whether the file no longer has a name.
func (w *watcher) isRemoved() bool {
	var s unix.Stat_t
	return unix.Fstat(int(w.file.Fd()), &s) != nil || s.Nlink == 0
}
