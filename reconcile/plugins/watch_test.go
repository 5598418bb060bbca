package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestScan_TooManySockets checks that a registered plugin is not unregistered if there are
// more sockets than the limit.
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
