//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// startWithGracePeriod starts a pod with a grace period and a script, and waits until it runs.
func startWithGracePeriod(d *daemon, seconds int64, name, script string) {
	d.t.Helper()
	p := d.pod(name, shell("main", script))
	p.Spec.TerminationGracePeriodSeconds = &seconds
	d.apply(p)
	d.untilApplied(name)
}

func TestGracePeriodExceeded(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	startWithGracePeriod(d, 5, "web", ignoreTerm("web"))
	startWithGracePeriod(d, 0, "none", ignoreTerm("none"))
	d.untilNotedUnordered("none runs", "web runs")
	web, none := d.container("web", "main"), d.container("none", "main")
	d.remove("web", "none")
	d.untilGone("web", "none")
	if alive(web.PID) || alive(none.PID) {
		t.Errorf("processes after their grace periods: got alive: web %t, none %t; want alive: web false, none false", alive(web.PID), alive(none.PID))
	}
	// A container without a grace period gets no SIGTERM, because podd makes the runtime kill it at once. But
	// some runtimes send SIGTERM nevertheless.
	want := []string{"none runs", "web TERM", "web runs"}
	if !d.on.KillsAtOnce() && slices.Contains(d.notes(), "none TERM") {
		want = append([]string{"none TERM"}, want...)
	}
	d.untilNotedUnordered(want...)
}

// untilNotedUnordered is like untilNoted, but ignores the order of the notes. want must be
// sorted.
func (d *daemon) untilNotedUnordered(want ...string) {
	d.t.Helper()
	d.eventually("the pods have noted exactly the expected lines, in any order", func() error {
		if got := d.notes(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			return fmt.Errorf("got notes %q, want %q", got, want)
		}
		return nil
	})
}

func TestTermination_KilledDaemon(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	script := "trap '" + note("TERM") + "sleep 2; " + note("two seconds later") + "' TERM; " + note("runs") + "while :; do sleep 3600 & wait; done"
	startWithGracePeriod(d, 20, "web", script)
	d.untilNoted("runs")
	pid := d.container("web", "main").PID
	p.onCall(nil)
	d.remove("web")
	d.untilNote("two seconds later")
	if !alive(pid) {
		t.Fatalf("process %d two seconds after SIGTERM: got it exited, want it running until the end of its grace period", pid)
	}
	d.crash()
	d.untilGone("web")
	if graces := p.gracePeriods(t); len(graces) != 2 || graces[0] < 19 || graces[1] > 18 {
		t.Errorf("grace periods in the calls of StopContainer: got %v seconds, want at least 19 and then, after podd was killed, at most 18", graces)
	}
	if alive(pid) {
		t.Errorf("process %d after its grace period: got it alive, want it killed", pid)
	}
}

func TestReplacement_SameName(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	slow := "trap '" + note("one TERM") + "sleep 1; " + note("one ends") + "exit 0' TERM; " + note("one runs") + "sleep 3600 & wait"
	startWithGracePeriod(d, 30, "web", slow)
	d.untilNoted("one runs")
	first, err := os.ReadFile(d.manifestFile("web"))
	if err != nil {
		t.Fatal(err)
	}
	d.remove("web")
	d.untilNote("one TERM")
	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "one ends", "two runs")

	// Now a manifest is removed, and the same manifest is written again while the pod stops. The pod must
	// stop and then start again.
	d.write("web", string(first))
	d.untilApplied("web")
	want := []string{"one runs", "one TERM", "one ends", "two runs", "two TERM", "one runs"}
	d.untilNoted(want...)
	was := d.container("web", "main")
	d.remove("web")
	d.eventually("the pod is stopping", func() error {
		if n := len(d.notes()); n < len(want)+1 {
			return fmt.Errorf("got notes %q, want one more than %q", d.notes(), want)
		}
		return nil
	})
	d.write("web", string(first))
	d.untilNoted(append(want, "one TERM", "one ends", "one runs")...)
	d.untilApplied("web")
	if now := d.container("web", "main"); now.PID == was.PID || alive(was.PID) {
		t.Errorf("after the same manifest was written again: got container %+v, old process alive: %t; want a container other than %+v, old process alive: false", now, alive(was.PID), was)
	}
}

func TestEdit_DuringGracePeriod(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	slow := "trap '" + note("one TERM") + "until [ -e /trace/go ]; do sleep 0.1; done; " + note("one ends") + "exit 0' TERM; " + note("one runs") + "sleep 3600 & wait"
	startWithGracePeriod(d, 60, "web", slow)
	d.untilNoted("one runs")
	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilNote("one TERM")
	d.apply(d.pod("web", shell("main", serve("three"))))
	d.until("podd uses the second edit", d.usesFile("web"))
	d.apply(d.pod("web", shell("main", serve("four"))))
	d.until("podd uses the third edit", d.usesFile("web"))
	d.touch("go")
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "one ends", "four runs")
}
