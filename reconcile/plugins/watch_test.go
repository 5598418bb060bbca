package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestScan_TooManySockets checks that a registered plugin stays registered if there are more
// sockets than the limit.
func TestScan_TooManySockets(t *testing.T) {
	dir := t.TempDir()
	listen := func(name string) {
		ln, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
	}
	w := &Watcher{Dir: dir, Log: slog.New(slog.DiscardHandler), sockets: map[string]watchedSocket{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer w.running.Wait()
	defer cancel()
	listen("z.sock")
	scan := func() {
		if err := w.scan(ctx); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	for i := range 2 * maxSockets {
		listen(fmt.Sprintf("a%d.sock", i))
	}
	scan()
	if _, ok := w.sockets["z.sock"]; !ok || len(w.sockets) != maxSockets {
		t.Errorf("got %d sockets, first socket watched: %v; want %d sockets, true", len(w.sockets), ok, maxSockets)
	}
}

// TestRun_IgnoredType checks that a plugin of an ignored type causes only a debug message, and that a
// plugin of another unsupported type causes a message for users.
func TestRun_IgnoredType(t *testing.T) {
	for _, c := range []struct {
		ignored []string
		want    string
	}{{[]string{"any"}, "level=DEBUG"}, {nil, "level=INFO"}} {
		dir := t.TempDir()
		log := &logBuffer{wrote: make(chan struct{}, 1)}
		w := &Watcher{Dir: dir, Handlers: map[string]Handler{"other": anyKind{}}, Ignored: c.ignored, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		startPlugin(t, dir, "driver")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		log.until(c.want + " msg=\"plugin of an unsupported type ignored\"")
		cancel()
		<-ended
	}
}
