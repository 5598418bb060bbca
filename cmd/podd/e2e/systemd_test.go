//go:build e2e

package e2e

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSystemdNotify checks podd's notifications to systemd: readiness, the status of its pods,
// and the watchdog.
func TestSystemdNotify(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	socket := filepath.Join(d.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d.env = []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=200000"}
	d.start()
	d.apply(d.pod("web", shell("main", serve("web"))))
	wantMessages(t, conn, "READY=1", "STATUS=1 pod, 1 ready, 0 problems", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1")
}

// wantMessages reads notifications until podd has sent all lines in this order. It ignores other lines.
func wantMessages(t *testing.T, conn *net.UnixConn, lines ...string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 4096)
	for len(lines) > 0 {
		n, err := conn.Read(message)
		if err != nil {
			t.Fatalf("reading notifications: got error %v, want the line %q", err, lines[0])
		}
		for line := range strings.Lines(string(message[:n])) {
			if len(lines) > 0 && strings.TrimSpace(line) == lines[0] {
				lines = lines[1:]
			}
		}
	}
}
