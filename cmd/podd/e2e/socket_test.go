//go:build e2e

package e2e

import (
	"errors"
	"os"
	"strings"
	"testing"

	"podd/runtime/runtimetest/stack"
)

// TestRunDirIsRecreated removes the run directory of a running podd. podd must create it again,
// so that commands work, and the pod must keep running.
func TestRunDirIsRecreated(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	was := d.container("web", "main")
	for range 2 {
		if err := os.RemoveAll(d.runDir()); err != nil {
			t.Fatal(err)
		}
		d.eventually("podd responds again", func() error {
			_, err := d.state()
			return err
		})
		if out, _ := d.verb("ps"); !strings.Contains(out, "web") {
			t.Errorf("podd ps after the run directory was removed: got %q, want web in it", out)
		}
	}
	for path, want := range map[string]os.FileMode{d.runDir(): 0o700 | os.ModeDir, d.runDir() + "/podd.sock": 0o600 | os.ModeSocket} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, error %v; want mode %v", path, info, err, want)
		}
	}
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the run directory was removed: got %+v, want %+v", now, was)
	}
}

// TestFaultSocketsAreRemoved removes the sockets of podd and of the runtime, as if /run were emptied.
// podd must create its socket again and keep its connection to the runtime. If podd is restarted while
// the runtime has no socket, podd must wait for the socket, and must find its running pods.
func TestFaultSocketsAreRemoved(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	was := d.container("web", "main")
	if err := errors.Join(os.RemoveAll(d.runDir()), os.Remove(d.on.Socket())); err != nil {
		t.Fatal(err)
	}
	d.eventually("podd responds again", func() error {
		_, err := d.state()
		return err
	})
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.untilApplied("late")

	if err := os.RemoveAll(d.runDir()); err != nil {
		t.Fatal(err)
	}
	d.crash()
	d.untilReason("web", d.on.Socket())
	if err := errors.Join(d.on.Kill(t.Context()), d.on.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	d.untilApplied("late")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of pod web: got %+v, want %+v", now, was)
	}
}
