//go:build vm

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// setClock sets the wall clock to a time or by a difference, in the syntax of date(1).
func setClock(t *testing.T, to string) {
	t.Helper()
	run(t, "date --set="+to)
}

// keepClock corrects the wall clock at the end of the test.
func keepClock(t *testing.T) {
	began := time.Now() // with a monotonic reading
	t.Cleanup(func() {
		right := began.Add(time.Since(began))
		run(t, fmt.Sprintf("date --set=@%d", right.Unix()))
	})
}

// active returns a pod with a deadline of an hour.
func active(name string) string {
	return pod(name, "  activeDeadlineSeconds: 3600\n", container(name, forever, ""))
}

// patient returns a pod that ends after TERM only once the file NAME.go exists. Its grace
// is half an hour.
func patient(name string) string {
	script := "trap 'echo TERM >/notes/" + name + ".told; until [ -e /notes/" + name + ".go ]; do sleep 1; done; echo >/notes/" + name + ".went; exit 0' TERM; while :; do sleep 1; done"
	return strings.Replace(pod(name, "", container(name, script, "")), "Seconds: 2\n", "Seconds: 1800\n", 1)
}

// untilFile waits until a file in notes exists.
func untilFile(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" exists", func() error {
		_, err := os.Stat(filepath.Join(notes, name))
		return err
	})
}

// untilUp waits until the uptime of the machine has grown by longer.
func untilUp(t *testing.T, longer time.Duration) {
	t.Helper()
	up := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	end := up() + longer
	eventually(t, fmt.Sprintf("the machine is up for %s more", longer), func() error {
		if up() < end {
			return errors.New("it is not")
		}
		return nil
	})
}

// TestClock sets the clock by days while podd runs and while it does not: no pod ends by
// its deadline, and a pod that is being stopped keeps its grace.
func TestClock(t *testing.T) {
	keepClock(t)
	run(t, "systemctl start podd") // unless an earlier step did
	apply(t, map[string]string{"active": active("active"), "patient": patient("patient")})
	untilReady(t, "active", "patient")
	remove(t, "patient")
	untilFile(t, "patient.told")
	for _, by := range []string{"+1day", "-3days", "+40days"} {
		stepClock(t, by)
	}
	if err := os.WriteFile(filepath.Join(notes, "patient.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	untilFile(t, "patient.went")
	untilReady(t, "active")
	if n, _ := starts(t, "active"); n != 1 {
		t.Errorf("active has started %d times", n)
	}
	run(t, "systemctl disable podd") // TestClockAfterBoot starts it
	unix.Sync()
}

// stepClock sets the clock by a difference while podd does not run, and again while it
// does. Both pods still run then.
func stepClock(t *testing.T, by string) {
	t.Helper()
	run(t, "systemctl stop podd")
	setClock(t, by)
	run(t, "systemctl start podd")
	eventually(t, "podd has seen both pods after "+by, func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if p := pods["active"]; p == nil || !p.Ready {
			return fmt.Errorf("active: %+v", p)
		}
		if p := pods["patient"]; p == nil || p.Rule != "Stop" {
			return fmt.Errorf("patient: %+v", p)
		}
		return nil
	})
	setClock(t, by)
	untilUp(t, 10*time.Second)
	now, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now.runs["active/active"] == "" || now.runs["patient/patient"] == "" {
		t.Fatalf("after %s the runtime runs %v, want active and patient", by, now.runs)
	}
}

// TestClockAfterBoot starts podd with a clock that is behind by years, as it is after a
// boot of a machine whose clock has no battery. A pod with a deadline of an hour runs, and
// still runs when the clock has been corrected.
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
		t.Errorf("active has started %d times, %d of them in this boot", all, now)
	}
	remove(t, "active")
	untilClean(t)
	for _, name := range []string{"active", "patient", "patient.told", "patient.go", "patient.went"} {
		if err := os.Remove(filepath.Join(notes, name)); err != nil {
			t.Error(err)
		}
	}
}
