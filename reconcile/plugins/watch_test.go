package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestFlood: sockets that come by the hundred end the registration of none that was
// there before.
func TestFlood(t *testing.T) {
	dir := t.TempDir()
	listen := func(name string) {
		ln, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
	}
	w := &Watcher{Dir: dir, Log: slog.New(slog.DiscardHandler), kept: map[string]kept{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer w.running.Wait()
	defer cancel()
	listen("z.sock")
	w.look(ctx)
	for i := range 2 * mostSockets {
		listen(fmt.Sprintf("a%d.sock", i))
	}
	w.look(ctx)
	if _, is := w.kept["z.sock"]; !is || len(w.kept) != mostSockets {
		t.Errorf("of %d that are cared for it is one: %v", len(w.kept), is)
	}
}
