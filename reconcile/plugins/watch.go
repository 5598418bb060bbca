// Package plugins discovers plugins by their sockets in a directory (the kubelet's API
// pluginregistration/v1) and registers each with the Kind of its type.
//
//	plugin ◀─GetInfo, NotifyRegistrationStatus─ Watcher ──▶ Kind: device plugins, CSI drivers
//
// File system events only trigger a scan of the whole directory. If events are not
// available, for example because all inotify instances are in use, the directory is polled
// until they are.
//
// The data of a plugin is not trusted: its length is limited here, and its Kind checks it.
package plugins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"podd/manifest/dirwatch"
)

// Dir is the directory's name in a root directory.
const Dir = "plugins_registry"

// The back-off of the registration of a plugin, which doubles after each failure.
const (
	firstRetry = 500 * time.Millisecond
	maxRetry   = 2 * time.Minute
)

const (
	// resyncPeriod is the interval of scans while there are no events.
	resyncPeriod = time.Minute
	// pollPeriod is the interval of scans if events are not available.
	pollPeriod = time.Second
)

// maxSockets is the maximum number of plugins.
const maxSockets = 64

// A Plugin is a plugin's description of itself.
type Plugin struct {
	Name string
	// Endpoint is the absolute path of the socket of its service.
	Endpoint string
	Versions []string
}

// A Kind handles the plugins of one type. Its methods may be called concurrently.
type Kind interface {
	// Register registers a plugin. The plugin is notified of the error, if any. Register
	// returns soon after ctx is done.
	Register(ctx context.Context, p Plugin) (Registration, error)
}

// A Registration is a registered plugin.
type Registration interface {
	// Gone returns a channel that is closed when the plugin is no longer in use. It is
	// then registered again, unless Displaced.
	Gone() <-chan struct{}
	// Displaced reports whether another plugin of the same name replaced this one. It may
	// be called after Gone is closed.
	Displaced() bool
	// End ends the registration, because the socket of the plugin was removed.
	End()
}

// A Watcher registers the plugins in Dir. All fields are required.
type Watcher struct {
	Dir   string
	Kinds map[string]Kind // by PluginInfo.Type
	Log   *slog.Logger

	sockets map[string]watchedSocket // by name of the socket
	running sync.WaitGroup
	problem string // the last logged problem; "" if there is none
}

// A watchedSocket is a socket with a plugin that is registered or being registered.
type watchedSocket struct {
	fileID fileID
	cancel context.CancelFunc
	ended  chan struct{}
}

// A fileID distinguishes a socket from an earlier one of the same name.
type fileID struct {
	ino   uint64
	mtime unix.Timespec
}

// Run registers plugins while their sockets exist, until ctx is done. It must be called
// only once.
func (w *Watcher) Run(ctx context.Context) {
	var events dirwatch.Watcher
	defer events.Close()
	w.sockets = map[string]watchedSocket{}
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		next := time.NewTimer(w.sync(ctx, &events))
		select {
		case <-ctx.Done():
		case <-next.C:
		case e, ok := <-events.Events():
			switch {
			case !ok:
				events.Close()
			case e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename):
				events.Forget(e.Name)
			}
		case err, ok := <-events.Errors():
			if ok {
				w.Log.Warn("events of the plugin directory were lost; reading it again", "dir", w.Dir, "err", err)
			} else {
				events.Close()
			}
		}
		next.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// sync watches and scans the directory. It returns the time until the next call if there
// is no event.
func (w *Watcher) sync(ctx context.Context, events *dirwatch.Watcher) time.Duration {
	err := os.MkdirAll(w.Dir, 0o750)
	if err == nil {
		_, err = events.Watch([]string{w.Dir})
	}
	if failed := w.scan(ctx); failed != nil {
		err = failed
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch {
	case problem == w.problem:
	case problem == "":
		w.Log.Info("plugin directory watched again", "dir", w.Dir)
	default:
		w.Log.Warn("watching the plugin directory failed; polling it", "dir", w.Dir, "every", pollPeriod, "err", err)
	}
	w.problem = problem
	if err != nil {
		return pollPeriod
	}
	return resyncPeriod
}

func readFileID(path string) (fileID, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return fileID{st.Ino, st.Mtim}, err
}

// scan begins to register plugins with new sockets and ends the registrations of those
// without a socket. If the directory cannot be read, it changes nothing.
func (w *Watcher) scan(ctx context.Context) error {
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		return err
	}
	found, stopped := map[string]fileID{}, map[string]chan struct{}{}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { // sockets above the limit must not replace known ones
		_, isA := w.sockets[a.Name()]
		_, isB := w.sockets[b.Name()]
		switch {
		case isA == isB:
			return 0
		case isA:
			return -1
		}
		return 1
	})
	for _, e := range entries {
		s, err := readFileID(filepath.Join(w.Dir, e.Name()))
		if err == nil && e.Type() == os.ModeSocket && !strings.HasPrefix(e.Name(), ".") && len(found) < maxSockets {
			found[e.Name()] = s
		}
	}
	for name, k := range w.sockets {
		if s, ok := found[name]; !ok || s != k.fileID {
			k.cancel()
			stopped[name] = k.ended
			delete(w.sockets, name)
		}
	}
	for name, s := range found {
		if _, watched := w.sockets[name]; watched {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := watchedSocket{s, cancel, make(chan struct{})}
		w.sockets[name] = k
		w.running.Go(func() {
			defer close(k.ended)
			if earlier := stopped[name]; earlier != nil {
				<-earlier // it may have the same name, so its registration must end first
			}
			w.maintain(ctx, filepath.Join(w.Dir, name))
		})
	}
	return nil
}

// maintain registers the plugin at a socket, and again whenever it is no longer in use, until
// ctx is done. If another plugin of the same name displaced it, maintain waits for a new
// socket, because the two would displace each other forever.
func (w *Watcher) maintain(ctx context.Context, socket string) {
	wait := firstRetry
	for ctx.Err() == nil {
		r, err := w.register(ctx, socket)
		if err == nil {
			since := time.Now()
			select {
			case <-r.Gone():
				if r.Displaced() && ctx.Err() == nil {
					w.Log.Warn("plugin was displaced by another one of the same name; registering it again when its socket is recreated", "socket", socket)
					<-ctx.Done()
					return
				}
				if time.Since(since) > maxRetry {
					wait = firstRetry
				}
			case <-ctx.Done():
				r.End()
				return
			}
		} else if errors.As(err, new(unsupportedKind)) {
			w.Log.Info("plugin of an unsupported type ignored", "socket", socket, "reason", err)
			<-ctx.Done()
			return
		} else if ctx.Err() == nil {
			w.Log.Warn("registering a plugin failed; retrying", "socket", socket, "err", err, "retryAfter", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxRetry)
	}
}

// unsupportedKind is the error for a plugin of a type that podd does not support.
type unsupportedKind string

func (k unsupportedKind) Error() string { return string(k) }

func (w *Watcher) unsupported(kind string) unsupportedKind {
	served := strings.Join(slices.Sorted(maps.Keys(w.Kinds)), ", ")
	return unsupportedKind(fmt.Sprintf("its type is %q; podd supports %s", Bounded(kind), served))
}
