// Package plugins finds the programs that wait to be found by their sockets in one
// directory, pluginregistration/v1, and hands each to what serves its type.
//
//	plugin ◀─GetInfo, NotifyRegistrationStatus─ Watcher ──▶ Kind: device plugins, CSI drivers
//
// An event of the directory only wakes: each time all of it is looked at again.
// What a plugin says is not trusted: it is bounded here, and checked by its Kind.
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
)

// Dir is the directory's name in a root directory.
const Dir = "plugins_registry"

// A plugin that cannot be registered is tried again after a time that doubles.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// lookAgain is how often the directory is looked at though nothing was told of it.
const lookAgain = time.Minute

// mostSockets bounds how many are cared for.
const mostSockets = 64

// Plugin is what one says of itself.
type Plugin struct {
	Name string
	// Endpoint is the absolute path of the socket at which it serves.
	Endpoint string
	Versions []string
}

// Kind serves the plugins of one type. Its methods may be called concurrently.
type Kind interface {
	// Register takes a plugin, which is told the error, if any. It ends with ctx.
	Register(ctx context.Context, p Plugin) (Registration, error)
}

// Registration is a plugin that was taken.
type Registration interface {
	// Gone is closed when the plugin is served no more. It is registered again
	// then, unless its place was taken, which may be asked as soon as it is closed.
	Gone() <-chan struct{}
	Displaced() bool
	// End gives the plugin up, for its socket is gone.
	End()
}

// Watcher registers the plugins in Dir. All fields are required.
type Watcher struct {
	Dir   string
	Kinds map[string]Kind // by the type that plugins say they are of
	Log   *slog.Logger

	kept    map[string]kept // by name of the socket
	running sync.WaitGroup
}

// kept is a socket that is cared for.
type kept struct {
	stamp  stamp
	cancel context.CancelFunc
	ended  chan struct{}
}

// stamp tells a socket from another one of its name.
type stamp struct {
	ino   uint64
	mtime unix.Timespec
}

// Run has plugins registered for as long as their sockets are there, until ctx is
// done. To be called once.
func (w *Watcher) Run(ctx context.Context) error {
	if err := os.MkdirAll(w.Dir, 0o750); err != nil {
		return fmt.Errorf("making the directory of plugins: %w", err)
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the plugins in %s: %w", w.Dir, err)
	}
	defer events.Close()
	if err := events.Add(w.Dir); err != nil {
		return fmt.Errorf("watching the plugins in %s: %w", w.Dir, err)
	}
	every := time.NewTicker(lookAgain)
	defer every.Stop()
	w.kept = map[string]kept{}
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-events.Events:
		case <-every.C: // the directory may have been made anew, which no event tells
			if err := os.MkdirAll(w.Dir, 0o750); err == nil {
				_ = events.Add(w.Dir) // else at the next turn
			}
		case err := <-events.Errors:
			w.Log.Warn("events of plugins were lost; it is looked again", "err", err)
		}
	}
}

func stampOf(path string) (stamp, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return stamp{st.Ino, st.Mtim}, err
}

// look begins with sockets that are new and gives up those that are gone.
func (w *Watcher) look(ctx context.Context) {
	entries, err := os.ReadDir(w.Dir)
	if err != nil {
		w.Log.Warn("the directory of plugins is not read", "err", err)
		return
	}
	there, before := map[string]stamp{}, map[string]chan struct{}{}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int { // more than are cared for end none of these
		_, isA := w.kept[a.Name()]
		_, isB := w.kept[b.Name()]
		switch {
		case isA == isB:
			return 0
		case isA:
			return -1
		}
		return 1
	})
	for _, e := range entries {
		s, err := stampOf(filepath.Join(w.Dir, e.Name()))
		if err == nil && e.Type() == os.ModeSocket && !strings.HasPrefix(e.Name(), ".") && len(there) < mostSockets {
			there[e.Name()] = s
		}
	}
	for name, k := range w.kept {
		if s, is := there[name]; !is || s != k.stamp {
			k.cancel()
			before[name] = k.ended
			delete(w.kept, name)
		}
	}
	for name, s := range there {
		if _, known := w.kept[name]; known {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := kept{s, cancel, make(chan struct{})}
		w.kept[name] = k
		w.running.Go(func() {
			defer close(k.ended)
			if earlier := before[name]; earlier != nil {
				<-earlier // it may have the same name, which is given up first
			}
			w.keep(ctx, filepath.Join(w.Dir, name))
		})
	}
}

// keep registers the plugin at a socket, again when it was lost, until ctx is done.
// One that gave way to another of its name is left alone until its socket is
// another: they would take the name from each other for ever.
func (w *Watcher) keep(ctx context.Context, socket string) {
	wait := firstRetry
	for ctx.Err() == nil {
		r, err := w.admit(ctx, socket)
		if err == nil {
			since := time.Now()
			select {
			case <-r.Gone():
				if r.Displaced() && ctx.Err() == nil {
					w.Log.Warn("a plugin gave way to another of its name; it is registered again when its socket is made anew", "socket", socket)
					<-ctx.Done()
					return
				}
				if time.Since(since) > lastRetry {
					wait = firstRetry
				}
			case <-ctx.Done():
				r.End()
				return
			}
		} else if errors.As(err, new(otherKind)) {
			w.Log.Info("a plugin is left alone", "socket", socket, "why", err)
			<-ctx.Done()
			return
		} else if ctx.Err() == nil {
			w.Log.Warn("a plugin is not registered", "socket", socket, "err", err, "next", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, lastRetry)
	}
}

// otherKind says that a plugin is not for podd.
type otherKind string

func (k otherKind) Error() string { return string(k) }

func (w *Watcher) other(kind string) otherKind {
	served := strings.Join(slices.Sorted(maps.Keys(w.Kinds)), ", ")
	return otherKind(fmt.Sprintf("it is a %q; podd serves plugins of the type %s", Bounded(kind), served))
}
