// Package plugins discovers plugins by their sockets in a directory (the kubelet's API
// pluginregistration/v1) and registers each with the Handler of its type.
//
//	plugin ◀─GetInfo, NotifyRegistrationStatus─ Watcher ──▶ Handler: device plugins, CSI drivers
//
// File system events only trigger a scan of the whole directory. If events are not available, for
// example because all inotify instances are in use, the directory is polled until events are
// available.
//
// The data of a plugin is not trusted. This package limits the length of the data, and the Handler
// checks the values.
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
	"podd/manifest/order"
)

// DirName is the name of the directory of plugin sockets in a root directory, as in the kubelet.
const DirName = "plugins_registry"

// The delay before the next attempt to register a plugin doubles after each failure.
const (
	firstRetryDelay = 500 * time.Millisecond
	maxRetryDelay   = 2 * time.Minute
)

const (
	// resyncPeriod is the interval between scans if no event arrives.
	resyncPeriod = time.Minute
	// pollPeriod is the interval between scans if events are not available.
	pollPeriod = time.Second
)

// maxSockets is the maximum number of plugin sockets. Additional sockets are ignored.
const maxSockets = 64

// A Plugin is the description that a plugin returns from GetInfo.
type Plugin struct {
	Name string
	// Endpoint is the absolute path of the socket of the plugin's service. It may differ from the
	// socket in Watcher.Dir.
	Endpoint string
	Versions []string // supported versions of the service's API
}

// A Handler handles the plugins of one type. Its methods may be called concurrently.
type Handler interface {
	// Register registers a plugin. The caller reports an error of Register to the plugin.
	// Register must return soon after ctx is done.
	Register(ctx context.Context, p Plugin) (Registration, error)
}

// A Registration is a registered plugin.
type Registration interface {
	// Done returns a channel that is closed when the registration is no longer valid, for
	// example because the connection to the plugin was lost. The Watcher then registers the
	// plugin again, unless Displaced returns true.
	Done() <-chan struct{}
	// Displaced reports whether a different plugin with the same name replaced the plugin. It may
	// be called only after the channel of Done is closed.
	Displaced() bool
	// Unregister removes the registration. It is called when the socket of the plugin was
	// removed or when the Watcher stops.
	Unregister()
}

// A Watcher registers the plugins with sockets in Dir. All exported fields except Ignored are required.
type Watcher struct {
	Dir      string
	Handlers map[string]Handler // by PluginInfo.Type: "CSIPlugin", "DevicePlugin"
	// Ignored contains the types of plugins that another podd with the same root directory handles.
	// The Watcher logs such a plugin only at level debug, because the message would not help a
	// user.
	Ignored []string
	Log     *slog.Logger

	sockets map[string]watchedSocket // by the name of the socket
	running sync.WaitGroup           // goroutines of keepRegistered
	problem string                   // the last logged problem; "" if there is none
}

// A watchedSocket is a socket of a plugin that is registered or being registered.
type watchedSocket struct {
	fileID       fileID
	cancel       context.CancelFunc
	unregistered chan struct{} // closed after the plugin was unregistered
}

// A fileID distinguishes a socket from an earlier socket of the same name.
type fileID struct {
	ino   uint64
	mtime unix.Timespec
}

// Run registers plugins while their sockets exist. It returns after ctx is done and all
// plugins were unregistered. Run must be called only once.
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
				w.Log.Warn("some events of the plugin directory were lost; reading the directory again", "dir", w.Dir, "err", err)
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

// sync starts to watch the directory if necessary, and then scans it. If no event arrives, sync
// must be called again after the returned time.
func (w *Watcher) sync(ctx context.Context, events *dirwatch.Watcher) time.Duration {
	err := os.MkdirAll(w.Dir, 0o750)
	if err == nil {
		_, err = events.Watch([]string{w.Dir})
	}
	if scanErr := w.scan(ctx); scanErr != nil {
		err = scanErr
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

// readFileID returns the ID of the file at path. It does not follow symbolic links.
func readFileID(path string) (fileID, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return fileID{st.Ino, st.Mtim}, err
}

// scan starts to register plugins with new sockets and to unregister plugins whose sockets
// were removed or replaced. If the directory cannot be read, scan changes nothing.
func (w *Watcher) scan(ctx context.Context) error {
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		return err
	}
	fileIDs, unregistered := map[string]fileID{}, map[string]chan struct{}{}
	// A socket above the limit must not replace a registered socket.
	order.Stable(entries, func(a, b os.DirEntry) int {
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
		if err == nil && e.Type() == os.ModeSocket && !strings.HasPrefix(e.Name(), ".") && len(fileIDs) < maxSockets {
			fileIDs[e.Name()] = s
		}
	}
	for name, k := range w.sockets {
		if s, ok := fileIDs[name]; !ok || s != k.fileID {
			k.cancel()
			unregistered[name] = k.unregistered
			delete(w.sockets, name)
		}
	}
	for name, s := range fileIDs {
		if _, isWatched := w.sockets[name]; isWatched {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := watchedSocket{s, cancel, make(chan struct{})}
		w.sockets[name] = k
		w.running.Go(func() {
			defer close(k.unregistered)
			if earlierUnregistered := unregistered[name]; earlierUnregistered != nil {
				<-earlierUnregistered // the earlier plugin may have the same name, so it must be unregistered first
			}
			w.keepRegistered(ctx, filepath.Join(w.Dir, name))
		})
	}
	return nil
}

// keepRegistered registers the plugin at a socket, and registers it again whenever its registration
// is no longer valid, until ctx is done. If a different plugin with the same name displaced the
// plugin, it is not registered again, because the two plugins would displace each other forever.
// scan calls keepRegistered again when the socket is recreated.
func (w *Watcher) keepRegistered(ctx context.Context, socket string) {
	wait := firstRetryDelay
	for ctx.Err() == nil {
		r, err := w.register(ctx, socket)
		if err == nil {
			since := time.Now()
			select {
			case <-r.Done():
				if r.Displaced() && ctx.Err() == nil {
					w.Log.Warn("another plugin with the same name has registered and replaced this one; podd registers this plugin again when its socket is recreated", "socket", socket)
					<-ctx.Done()
					return
				}
				if time.Since(since) > maxRetryDelay {
					wait = firstRetryDelay
				}
			case <-ctx.Done():
				r.Unregister()
				return
			}
		} else if typeErr, ok := errors.AsType[unsupportedTypeError](err); ok {
			level := slog.LevelInfo
			if slices.Contains(w.Ignored, typeErr.kind) {
				level = slog.LevelDebug
			}
			w.Log.Log(ctx, level, "plugin of an unsupported type ignored", "socket", socket, "reason", err)
			<-ctx.Done()
			return
		} else if ctx.Err() == nil {
			w.Log.Warn("registering a plugin failed; retrying", "socket", socket, "err", err, "retryAfter", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxRetryDelay)
	}
}

// An unsupportedTypeError is the error for a plugin of a type that podd does not support.
type unsupportedTypeError struct {
	kind      string
	supported string // the supported types
}

func (e unsupportedTypeError) Error() string {
	return fmt.Sprintf("the type of the plugin is %q; podd supports %s", TruncateText(e.kind), e.supported)
}

// newUnsupportedTypeError returns the error for a plugin of the unsupported type kind.
func (w *Watcher) newUnsupportedTypeError(kind string) unsupportedTypeError {
	return unsupportedTypeError{kind, strings.Join(slices.Sorted(maps.Keys(w.Handlers)), ", ")}
}
