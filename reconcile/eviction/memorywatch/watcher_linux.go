// Package memorywatch receives notifications of the kernel when the memory of the node may be
// short, so that podd need not wait for its next check.
//
//	cgroup v1: threshold of memory.usage_in_bytes (eventfd)     ─┐
//	cgroup v2: memory.events of the cgroup of all pods (inotify) ─┼▶ Events
//	/proc/pressure/memory: PSI trigger                           ─┘
//
// A Watcher uses all kinds of notifications that the host has. Without any of them, it sends no
// event. A lost notification only delays the detection of memory pressure until the next check.
package memorywatch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Watcher sends an event when the kernel reports that memory may be short. Arm and Close must be
// called by the same goroutine.
type Watcher struct {
	events     chan struct{} // capacity 1
	log        *slog.Logger
	cgroup     string // directory of the memory cgroup (v1); "" if it has no notifications
	armedUsage int64  // usage in bytes at which the registered notification is sent; 0 if there is none
	usage      *os.File
	stop       *os.File // closing the trigger's poll; nil without a trigger
	limits     *limitWatch
	readers    sync.WaitGroup
}

// Paths contains the paths of the kernel's interfaces. Tests use other paths.
type Paths struct {
	// MemoryCgroup is the directory of the root memory cgroup (v1); "" if there is none.
	MemoryCgroup string
	// Pressure is the file of the memory pressure of the node (PSI).
	Pressure string
	// LimitEvents are the possible paths of the file memory.events (v2) of the cgroup of all pods.
	// The files need not exist. The kernel changes a file when the cgroup reaches a limit and when
	// it kills a process of the cgroup.
	LimitEvents []string
}

// psiTriggers request a notification if some task has waited for memory for a tenth of a window. The
// first has a window of 1 s. Without the capability CAP_SYS_RESOURCE, the kernel permits only windows
// that are multiples of 2 s. It sends at most one notification per window, so a node under constant
// pressure is checked once a second.
var psiTriggers = [...]string{"some 100000 1000000\x00", "some 200000 2000000\x00"}

// Open returns a Watcher. Notifications that the host does not support are logged at level debug,
// because podd then checks the memory periodically.
func Open(p Paths, log *slog.Logger) *Watcher {
	w := &Watcher{events: make(chan struct{}, 1), log: log}
	if _, err := os.Stat(filepath.Join(p.MemoryCgroup, "cgroup.event_control")); p.MemoryCgroup != "" && err == nil {
		w.cgroup = p.MemoryCgroup
	}
	if err := w.openTrigger(p.Pressure); err != nil {
		log.Debug("the kernel sends no notifications of memory pressure (PSI); podd checks the memory periodically", "err", err)
	}
	if err := w.openLimitWatch(p.LimitEvents); err != nil {
		log.Debug("the kernel sends no notifications of the memory limit of the pods; podd checks the memory periodically", "err", err)
	}
	return w
}

// Events returns the channel that receives a value when memory may be short. Several notifications
// may be sent as one value.
func (w *Watcher) Events() <-chan struct{} { return w.events }

// notify sends an event unless one is pending.
func (w *Watcher) notify() {
	select {
	case w.events <- struct{}{}:
	default:
	}
}

// registerTrigger opens the file of a kind of pressure and registers the first trigger that the
// kernel permits.
func registerTrigger(path string) (fd int, err error) {
	for _, trigger := range psiTriggers {
		if fd, err = unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
			return 0, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if _, err = unix.Write(fd, []byte(trigger)); err == nil {
			return fd, nil
		}
		unix.Close(fd)
	}
	return 0, &fs.PathError{Op: "write", Path: path, Err: err}
}

// openTrigger registers a PSI trigger and starts a goroutine that polls it until Close.
func (w *Watcher) openTrigger(path string) error {
	trigger, err := registerTrigger(path)
	if err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		unix.Close(trigger)
		return fmt.Errorf("creating a pipe: %w", err)
	}
	w.stop = os.NewFile(uintptr(pipe[1]), "stop")
	w.readers.Go(func() {
		defer unix.Close(trigger)
		defer unix.Close(pipe[0])
		w.pollTrigger(trigger, pipe[0])
	})
	return nil
}

// pollTrigger sends an event for each notification of the trigger until the other end of the pipe
// stop is closed. Go's network poller cannot wait for POLLPRI, so the goroutine blocks a thread.
func (w *Watcher) pollTrigger(trigger, stop int) {
	fds := []unix.PollFd{{Fd: int32(trigger), Events: unix.POLLPRI}, {Fd: int32(stop), Events: unix.POLLIN}}
	for {
		fds[0].Revents, fds[1].Revents = 0, 0
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return
		case fds[0].Revents&unix.POLLERR != 0: // the trigger was removed, for example with its cgroup
			return
		case fds[0].Revents&unix.POLLPRI != 0:
			w.notify()
		}
	}
}

// Arm requests an event when the usage of memory has grown by distance bytes. A distance of 0 or
// less requests none. The request replaces the earlier one. Without cgroup v1 for memory, Arm
// ignores distance. It then only requests events when the cgroup of all pods reaches a limit, if
// this cgroup exists by now.
func (w *Watcher) Arm(distance int64) {
	w.limits.add()
	if w.cgroup == "" {
		return
	}
	usage, err := readUsage(w.cgroup)
	if err == nil && distance > 0 && w.usage != nil && isNear(w.armedUsage, usage+distance) {
		return
	}
	w.disarm()
	if err == nil && distance > 0 {
		err = w.register(usage + distance)
	}
	if err != nil {
		w.log.Debug("the kernel sends no notifications of the memory usage; podd checks the memory periodically", "err", err)
		w.cgroup = ""
	}
}

// isNear reports whether two amounts of memory differ by at most 16 MiB. Registering a notification
// again for a smaller difference would not be worth the system calls.
func isNear(a, b int64) bool { return max(a, b)-min(a, b) <= 16<<20 }

// readUsage returns the memory usage of a cgroup in bytes.
func readUsage(cgroup string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(cgroup, usageFile))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

const usageFile = "memory.usage_in_bytes"

// register requests an event when the memory usage of the cgroup crosses limit.
func (w *Watcher) register(limit int64) error {
	watched, err := os.Open(filepath.Join(w.cgroup, usageFile))
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
	if err := os.WriteFile(filepath.Join(w.cgroup, "cgroup.event_control"), []byte(control), 0); err != nil {
		events.Close()
		return err
	}
	w.usage, w.armedUsage = events, limit
	w.readers.Go(func() {
		buf := make([]byte, 8) // an eventfd returns a 64-bit counter
		for {
			if _, err := events.Read(buf); err != nil {
				return // disarm has closed the file
			}
			w.notify()
		}
	})
	return nil
}

// disarm removes the registered notification, if there is one.
func (w *Watcher) disarm() {
	if w.usage != nil {
		w.usage.Close() // this also ends the goroutine that reads the file
		w.usage, w.armedUsage = nil, 0
	}
}

// Close ends all notifications and waits for the goroutines of w.
func (w *Watcher) Close() {
	w.disarm()
	w.limits.close()
	if w.stop != nil {
		w.stop.Close()
	}
	w.readers.Wait()
}
