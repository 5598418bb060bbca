//go:build vm

package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// property is what systemd says of podd's service.
func property(t testing.TB, name string) string {
	t.Helper()
	value, err := system("systemctl show podd --value --property=" + name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// restart restarts podd as its unit files say now.
func restart(t testing.TB) {
	t.Helper()
	run(t, "systemctl daemon-reload")
	run(t, "systemctl restart podd")
}

// TestService: systemd starts podd and waits for it, watches it, and starts it
// again, and no pod notices.
func TestService(t *testing.T) {
	if _, err := system("systemctl start podd"); err != nil {
		t.Fatal(err)
	}
	apply(t, map[string]string{"steady": pod("steady", "", container("steady", forever, ""))})
	untilReady(t, "steady")
	before, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fed := property(t, "WatchdogTimestampMonotonic")
	eventually(t, "the watchdog is fed", func() error {
		if property(t, "WatchdogTimestampMonotonic") == fed {
			return errors.New("it is not")
		}
		return nil
	})
	if text := property(t, "StatusText"); !strings.HasPrefix(text, "1 pods, 1 ready") {
		t.Errorf("systemd says of podd %q", text)
	}
	for _, tt := range []struct{ name, command string }{
		{"restarted", "systemctl restart podd"},
		{"killed", "systemctl kill --signal=KILL podd"},
		{"hung until the watchdog bites", "systemctl kill --signal=STOP podd"},
	} {
		pid := property(t, "MainPID")
		if _, err := system(tt.command); err != nil {
			t.Fatal(err)
		}
		eventually(t, "podd runs after it was "+tt.name, func() error {
			if now, state := property(t, "MainPID"), property(t, "ActiveState"); now == pid || now == "0" || state != "active" {
				return fmt.Errorf("process %s, %s", now, state)
			}
			return nil
		})
		untilReady(t, "steady")
		after, err := look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after.runs["steady/steady"] != before.runs["steady/steady"] {
			t.Errorf("podd was %s, and the container is another one", tt.name)
		}
	}
	remove(t, "steady")
	untilClean(t)
}
