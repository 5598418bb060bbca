package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A plugin that cannot be registered is tried again after a time that doubles.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Watch registers the plugins whose sockets are in dir, for as long as they are
// there, until ctx is done. Of what plugins can be, podd serves device plugins.
func (s *Server) Watch(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("making the directory of plugins: %w", err)
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching the plugins in %s: %w", dir, err)
	}
	defer events.Close()
	if err := events.Add(dir); err != nil {
		return fmt.Errorf("watching the plugins in %s: %w", dir, err)
	}
	w := watcher{server: s, dir: dir, kept: map[string]kept{}}
	defer w.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-events.Events:
		case err := <-events.Errors:
			s.Log.Warn("events of plugins were lost; it is looked again", "err", err)
		}
	}
}

// watcher is the state of one Watch.
type watcher struct {
	server  *Server
	dir     string
	kept    map[string]kept // by name of the socket
	running sync.WaitGroup
}

// kept is a socket that is cared for.
type kept struct {
	stamp  stamp
	cancel context.CancelFunc
}

// stamp tells a socket from another one of its name.
type stamp struct {
	ino   uint64
	mtime unix.Timespec
}

func stampOf(path string) (stamp, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return stamp{st.Ino, st.Mtim}, err
}

// look begins with sockets that are new and gives up those that are gone.
func (w *watcher) look(ctx context.Context) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.server.Log.Warn("the directory of plugins is not read", "err", err)
		return
	}
	there := map[string]stamp{}
	for _, e := range entries {
		s, err := stampOf(filepath.Join(w.dir, e.Name()))
		if err == nil && e.Type() == os.ModeSocket && !strings.HasPrefix(e.Name(), ".") && len(there) < mostResources {
			there[e.Name()] = s
		}
	}
	for name, k := range w.kept {
		if s, is := there[name]; !is || s != k.stamp {
			k.cancel()
			delete(w.kept, name)
		}
	}
	for name, s := range there {
		if _, known := w.kept[name]; known {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		w.kept[name] = kept{s, cancel}
		w.running.Go(func() { w.keep(ctx, filepath.Join(w.dir, name)) })
	}
}

// keep registers the plugin at a socket, again when it was lost, until ctx is done.
// One that gave way to another of its resource is left alone until its socket is
// another: they would take the resource from each other for ever.
func (w *watcher) keep(ctx context.Context, socket string) {
	wait := firstRetry
	for ctx.Err() == nil {
		c, err := w.server.admit(ctx, socket)
		if err == nil {
			since := time.Now()
			select {
			case <-c.followed:
				if c.displaced && ctx.Err() == nil {
					w.server.Log.Warn("a plugin gave way to another of its resource; it is registered again when its socket is made anew", "resource", c.resource, "socket", socket)
					<-ctx.Done()
					return
				}
				if time.Since(since) > lastRetry {
					wait = firstRetry
				}
			case <-ctx.Done():
				c.cancel()
				return
			}
		} else if errors.As(err, new(otherKind)) {
			w.server.Log.Info("a plugin is left alone", "socket", socket, "why", err)
			<-ctx.Done()
			return
		} else if ctx.Err() == nil {
			w.server.Log.Warn("a plugin is not registered", "socket", socket, "err", err, "next", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, lastRetry)
	}
}

// otherKind is the type of a plugin that is not for podd.
type otherKind string

func (k otherKind) Error() string {
	return fmt.Sprintf("it is a %q; podd serves plugins of the type %s", string(k), v1.DevicePlugin)
}

// admit asks the plugin at a socket what it is, registers it, and tells it so. One
// of another kind is told nothing: that it is not registered ends it, and whoever
// started it does so again.
func (s *Server) admit(ctx context.Context, socket string) (*registered, error) {
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	limited, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	api := v1.NewRegistrationClient(conn)
	info, err := api.GetInfo(limited, &v1.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("asking what it is: %w", plain(err))
	}
	if kind := info.GetType(); kind != v1.DevicePlugin {
		return nil, otherKind(kind)
	}
	c, err := s.introduced(ctx, info, socket)
	told := &v1.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		told.Error = err.Error()
	}
	limited, cancel = context.WithTimeout(ctx, connectTime)
	defer cancel()
	if _, failed := api.NotifyRegistrationStatus(limited, told); failed != nil && err == nil {
		s.Log.Warn("a plugin was not told that it is registered", "socket", socket, "err", plain(failed))
	}
	return c, err
}

func (s *Server) introduced(ctx context.Context, info *v1.PluginInfo, socket string) (*registered, error) {
	switch endpoint := info.GetEndpoint(); {
	case !slices.Contains(info.GetSupportedVersions(), v1beta1.Version):
		return nil, fmt.Errorf("it speaks none of podd's versions, %q", v1beta1.Version)
	case endpoint != "" && !filepath.IsAbs(endpoint):
		return nil, errors.New("its endpoint is not an absolute path")
	case endpoint != "":
		socket = endpoint
	}
	return s.connect(ctx, info.GetName(), socket)
}
