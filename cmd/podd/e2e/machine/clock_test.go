//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// setClock sets the wall clock. The parameter to is a time or a difference, such as "+1day", in the
// syntax of date(1).
func setClock(t *testing.T, to string) {
	t.Helper()
	run(t, "date --set="+to)
}

// keepClock restores the wall clock at the end of the test.
func keepClock(t *testing.T) {
	began := time.Now() // contains a monotonic reading, which setClock does not change
	t.Cleanup(func() {
		right := began.Add(time.Since(began))
		run(t, fmt.Sprintf("date --set=@%d", right.Unix()))
	})
}

// active returns a pod with an active deadline of an hour.
func active(name string) string {
	return pod(name, "  activeDeadlineSeconds: 3600\n", container(name, forever, ""))
}

// patient returns a pod that does not exit after TERM until the file NAME.go exists. Its grace
// period is half an hour.
func patient(name string) string {
	script := "trap 'echo TERM >/notes/" + name + ".term; until [ -e /notes/" + name + ".go ]; do sleep 1; done; echo >/notes/" + name + ".exited; exit 0' TERM; while :; do sleep 1; done"
	return strings.Replace(pod(name, "", container(name, script, "")), "Seconds: 2\n", "Seconds: 1800\n", 1)
}

// untilFile waits until a file exists in the directory notes.
func untilFile(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" exists", func() error {
		_, err := os.Stat(filepath.Join(notes, name))
		return err
	})
}

// untilUptime waits until the uptime has grown by a duration.
func untilUptime(t *testing.T, by time.Duration) {
	t.Helper()
	up := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	end := up() + by
	eventually(t, fmt.Sprintf("the uptime has grown by %s", by), func() error {
		if up() < end {
			return fmt.Errorf("got an uptime of %s, want %s", up(), end)
		}
		return nil
	})
}

// TestClock sets the clock forward and back by days, while podd runs and while podd does not run. The
// pod "active" must not exceed its deadline. The pod "patient" is terminating and must keep its grace
// period.
func TestClock(t *testing.T) {
	keepClock(t)
	run(t, "systemctl start podd") // does nothing if an earlier step has started podd
	apply(t, map[string]string{"active": active("active"), "patient": patient("patient")})
	untilReady(t, "active", "patient")
	remove(t, "patient")
	untilFile(t, "patient.term")
	for _, by := range []string{"+1day", "-3days", "+40days"} {
		stepClock(t, by)
	}
	if err := os.WriteFile(filepath.Join(notes, "patient.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	untilFile(t, "patient.exited")
	untilReady(t, "active")
	if n, _ := starts(t, "active"); n != 1 {
		t.Errorf("pod active: got %d starts, want 1", n)
	}
	run(t, "systemctl disable podd") // podd must not start at the next boot, because TestClockAfterBoot starts it
	unix.Sync()
}

// stepClock sets the clock by a difference while podd does not run, and again while podd runs.
// Both pods must still run afterwards.
func stepClock(t *testing.T, by string) {
	t.Helper()
	run(t, "systemctl stop podd")
	setClock(t, by)
	run(t, "systemctl start podd")
	eventually(t, "podd shows both pods after "+by, func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if p := pods["active"]; p == nil || !p.Ready {
			return fmt.Errorf("pod active: got %+v, want a ready pod", p)
		}
		if p := pods["patient"]; p == nil || p.Rule != "Stop" {
			return fmt.Errorf("pod patient: got %+v, want a terminating pod", p)
		}
		return nil
	})
	setClock(t, by)
	untilUptime(t, 10*time.Second)
	now, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now.running["active/active"] == "" || now.running["patient/patient"] == "" {
		t.Fatalf("after the clock was set by %s: got running containers %v, want those of the pods active and patient", by, now.running)
	}
}

// TestClockAfterBoot starts podd with a clock that is years behind, like a host without a
// battery after a boot. A pod with a deadline of an hour must run, and must still run after the
// clock is corrected.
func TestClockAfterBoot(t *testing.T) {
	keepClock(t)
	setClock(t, "-10years")
	run(t, "systemctl enable podd")
	run(t, "systemctl start podd")
	untilReady(t, "active")
	for _, step := range []string{"+10years", "+1hour"} {
		setClock(t, step)
		run(t, "systemctl restart podd")
		untilReady(t, "active")
	}
	if all, now := starts(t, "active"); all != 2 || now != 1 {
		t.Errorf("pod active: got %d starts, %d of them in this boot; want 2 starts, 1 of them in this boot", all, now)
	}
	remove(t, "active")
	untilClean(t)
	for _, name := range []string{"active", "patient", "patient.term", "patient.go", "patient.exited"} {
		if err := os.Remove(filepath.Join(notes, name)); err != nil {
			t.Error(err)
		}
	}
}
