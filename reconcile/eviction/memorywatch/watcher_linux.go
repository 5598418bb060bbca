// Package memorywatch receives notifications of the kernel when the memory of the node may be
// short, so that podd need not wait for its next check.
//
//	cgroup v1: thresholds of memory.usage_in_bytes (eventfd)           ─┐
//	cgroup v2: memory.events.local of the cgroup of all pods (inotify) ─┼▶ Events
//	/proc/pressure/memory: PSI trigger                                 ─┘
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
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Watcher sends an event when the kernel reports that memory may be short. Arm and Close must be
// called by the same goroutine.
type Watcher struct {
	events     chan struct{} // capacity 1
	closed     chan struct{} // closed by Close
	log        *slog.Logger
	node, pods usageWatch
	stop       *os.File // closing the trigger's poll; nil without a trigger
	limits     *limitWatch
	readers    sync.WaitGroup
}

// Paths contains the paths of the kernel's interfaces. Tests use other paths.
type Paths struct {
	// MemoryCgroup is the directory of the root memory cgroup (v1); "" if there is none.
	MemoryCgroup string
	// PodsMemoryCgroups returns the possible directories of the memory cgroup of all pods (v1). The first
	// one that exists is used. nil means that the host has no cgroup v1 for memory.
	PodsMemoryCgroups func() []string
	// Pressure is the file of the memory pressure of the node (PSI).
	Pressure string
	// LimitEvents are the possible paths of the file memory.events.local (v2) of the cgroup of all pods.
	// The files need not exist. The kernel changes a file when the cgroup reaches a limit. Unlike
	// memory.events, the file does not change when a container reaches its own limit. Then the node is
	// not short of memory.
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
	w := &Watcher{events: make(chan struct{}, 1), closed: make(chan struct{}), log: log, pods: usageWatch{dirs: p.PodsMemoryCgroups}}
	if p.MemoryCgroup != "" {
		w.node.dirs = func() []string { return []string{p.MemoryCgroup} }
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

// Arm requests an event when the memory usage of the node has grown by node bytes, and another one when
// the usage of all pods has grown by pods bytes. An amount of 0 or less requests none. The requests
// replace the earlier ones. Without cgroup v1 for memory, Arm ignores both amounts. It then only requests
// events when the cgroup of all pods reaches a limit, if this cgroup exists by now.
func (w *Watcher) Arm(node, pods int64) {
	w.limits.add()
	w.arm(&w.node, node)
	w.arm(&w.pods, pods)
}

// minReadInterval is the minimum interval between two notifications of a usage or limit that podd reads.
const minReadInterval = time.Second

// forward calls notify after each successful call of read. It returns when read returns an error or stop
// is closed. Between two calls of read, it waits for minReadInterval. The kernel merges the
// notifications of that time, of which there may be 100 per second, and keeps them for the next read.
func forward(read func() error, notify func(), stop <-chan struct{}) {
	for read() == nil {
		notify()
		select {
		case <-stop:
			return
		case <-time.After(minReadInterval):
		}
	}
}

// Close ends all notifications and waits for the goroutines of w.
func (w *Watcher) Close() {
	close(w.closed)
	w.node.disarm()
	w.pods.disarm()
	w.limits.close()
	if w.stop != nil {
		w.stop.Close()
	}
	w.readers.Wait()
}
