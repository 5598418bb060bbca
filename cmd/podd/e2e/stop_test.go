//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func withGrace(d *daemon, seconds int64, name, script string) {
	d.t.Helper()
	p := d.pod(name, shell("main", script))
	p.Spec.TerminationGracePeriodSeconds = &seconds
	d.apply(p)
	d.untilApplied(name)
}

// untilJournal waits until a pod noted line.
func (d *daemon) untilJournal(line string) {
	d.t.Helper()
	d.eventually("a pod notes "+line, func() error {
		if !slices.Contains(d.journal(), line) {
			return fmt.Errorf("%q", d.journal())
		}
		return nil
	})
}

func TestStubbornIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	d := begin(t)
	withGrace(d, 5, "web", stubborn("web"))
	withGrace(d, 0, "none", stubborn("none"))
	d.untilNotedInAnyOrder("none runs", "web runs")
	web, none := d.runs("web", "main"), d.runs("none", "main")
	d.remove("web", "none")
	d.untilGone("web", "none")
	if alive(web.PID) || alive(none.PID) {
		t.Error("a process outlived its grace")
	}
	// Without a grace podd asks the runtime to kill.
	want := []string{"none runs", "web TERM", "web runs"}
	if !d.on.KillsAtOnce() && slices.Contains(d.journal(), "none TERM") {
		want = append([]string{"none TERM"}, want...)
	}
	d.untilNotedInAnyOrder(want...)
}

// untilNotedInAnyOrder is untilNoted for pods that do not wait for each other;
// want is sorted.
func (d *daemon) untilNotedInAnyOrder(want ...string) {
	d.t.Helper()
	d.eventually("the pods note what they should", func() error {
		if got := d.journal(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

func TestTerminationGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	script := "trap '" + note("TERM") + "sleep 2; " + note("two seconds later") + "' TERM; " + note("runs") + "while :; do sleep 3600 & wait; done"
	withGrace(d, 20, "web", script)
	d.untilNoted("runs")
	pid := d.runs("web", "main").PID
	p.onCall(nil)
	d.remove("web")
	d.untilJournal("two seconds later")
	if !alive(pid) {
		t.Fatal("the process ended before its grace")
	}
	d.crash()
	d.untilGone("web")
	if graces := p.graces(t); len(graces) != 2 || graces[0] < 19 || graces[1] > 18 {
		t.Errorf("the runtime was given %v seconds, want 20 and then the rest of it", graces)
	}
	if alive(pid) {
		t.Error("the process outlived its grace")
	}
}

func TestSuccessorOfTheSameName(t *testing.T) {
	t.Parallel()
	d := begin(t)
	slow := "trap '" + note("one TERM") + "sleep 1; " + note("one ends") + "exit 0' TERM; " + note("one runs") + "sleep 3600 & wait"
	withGrace(d, 30, "web", slow)
	d.untilNoted("one runs")
	first, err := os.ReadFile(d.file("web"))
	if err != nil {
		t.Fatal(err)
	}
	d.remove("web")
	d.untilJournal("one TERM")
	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "one ends", "two runs")

	// The very same again, while it ends.
	d.write("web", string(first))
	d.untilApplied("web")
	want := []string{"one runs", "one TERM", "one ends", "two runs", "two TERM", "one runs"}
	d.untilNoted(want...)
	was := d.runs("web", "main")
	d.remove("web")
	d.eventually("it is being ended", func() error {
		if n := len(d.journal()); n < len(want)+1 {
			return fmt.Errorf("%d notes", n)
		}
		return nil
	})
	d.write("web", string(first))
	d.untilNoted(append(want, "one TERM", "one ends", "one runs")...)
	d.untilApplied("web")
	if now := d.runs("web", "main"); now.PID == was.PID || alive(was.PID) {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
}

func TestEditsDuringGraceLastOneWins(t *testing.T) {
	t.Parallel()
	d := begin(t)
	slow := "trap '" + note("one TERM") + "until [ -e /trace/go ]; do sleep 0.1; done; " + note("one ends") + "exit 0' TERM; " + note("one runs") + "sleep 3600 & wait"
	withGrace(d, 60, "web", slow)
	d.untilNoted("one runs")
	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilJournal("one TERM")
	d.apply(d.pod("web", shell("main", serve("three"))))
	d.until("the edit is taken", d.taken("web"))
	d.apply(d.pod("web", shell("main", serve("four"))))
	d.until("the last edit is taken", d.taken("web"))
	d.tellPods("go")
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "one ends", "four runs")
}
