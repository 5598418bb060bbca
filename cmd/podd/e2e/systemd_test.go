//go:build e2e

package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTellsSystemd: podd is ready, says how its pods are, and feeds the
// watchdog for as long as its router turns.
func TestTellsSystemd(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	socket := filepath.Join(d.dir, "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	d.env = []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=200000"}
	d.start()
	d.apply(d.pod("web", shell("main", serve("web"))))
	hears(t, told, "READY=1", "STATUS=1 pods, 1 ready, 0 problems", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1")
}

// hears reads until each of the lines was told, in this order.
func hears(t *testing.T, told *net.UnixConn, lines ...string) {
	t.Helper()
	if err := told.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 4096)
	for len(lines) > 0 {
		n, err := told.Read(message)
		if err != nil {
			t.Fatalf("waiting for %q: %v", lines[0], err)
		}
		for line := range strings.Lines(string(message[:n])) {
			if len(lines) > 0 && strings.TrimSpace(line) == lines[0] {
				lines = lines[1:]
			}
		}
	}
}
