//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// property returns the value of a property of podd's unit.
func property(t testing.TB, name string) string {
	t.Helper()
	value, err := system("systemctl show podd --value --property=" + name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// restart restarts podd with its current unit files.
func restart(t testing.TB) {
	t.Helper()
	run(t, "systemctl daemon-reload")
	run(t, "systemctl restart podd")
}

// TestService checks that systemd waits until podd is ready, and that the watchdog restarts a
// podd that does not respond. No restart may affect a pod.
func TestService(t *testing.T) {
	if _, err := system("systemctl start podd"); err != nil {
		t.Fatal(err)
	}
	apply(t, map[string]string{"steady": pod("steady", "", container("steady", forever, ""))})
	untilReady(t, "steady")
	before, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fed := property(t, "WatchdogTimestampMonotonic")
	eventually(t, "podd sends a watchdog notification", func() error {
		if property(t, "WatchdogTimestampMonotonic") == fed {
			return errors.New("got no notification since the start of the check")
		}
		return nil
	})
	if text, want := property(t, "StatusText"), "1 pod, 1 ready"; !strings.HasPrefix(text, want) {
		t.Errorf("StatusText: got %q, want the prefix %q", text, want)
	}
	for _, tt := range []struct{ name, command string }{
		{"restarted", "systemctl restart podd"},
		{"killed", "systemctl kill --signal=KILL podd"},
		{"stopped by the watchdog", "systemctl kill --signal=STOP podd"},
	} {
		pid := property(t, "MainPID")
		if _, err := system(tt.command); err != nil {
			t.Fatal(err)
		}
		eventually(t, "podd runs after it was "+tt.name, func() error {
			if now, state := property(t, "MainPID"), property(t, "ActiveState"); now == pid || now == "0" || state != "active" {
				return fmt.Errorf("got main process %s, state %s; want a process other than %s, state active", now, state, pid)
			}
			return nil
		})
		untilReady(t, "steady")
		after, err := getInventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after.running["steady/steady"] != before.running["steady/steady"] {
			t.Errorf("after podd was %s: got another container, want the same", tt.name)
		}
	}
	remove(t, "steady")
	untilClean(t)
}
