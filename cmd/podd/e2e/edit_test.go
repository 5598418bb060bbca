//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"podd/server"
)

func TestAddEditRemove(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	d.untilNoted("one runs")
	one := d.runs("web", "main")

	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilApplied("web")
	// The old one heard TERM and was gone before the new one began.
	d.untilNoted("one runs", "one TERM", "two runs")
	two := d.runs("web", "main")
	if two.PID == one.PID || two.Sandbox == one.Sandbox || alive(one.PID) {
		t.Errorf("after the edit %+v runs, before it %+v did", two, one)
	}
	if all := d.allRunning("web", ""); len(all) != 1 {
		t.Errorf("%d containers run, want 1", len(all))
	}
	d.eventually("the first version has left nothing", func() error {
		now, err := d.look(t.Context())
		if err == nil && (len(now.sandboxes) != 1 || len(now.containers) != 1) {
			err = fmt.Errorf("%d sandboxes, %d containers", len(now.sandboxes), len(now.containers))
		}
		return err
	})

	d.remove("web")
	d.untilGone("web")
	d.untilNoted("one runs", "one TERM", "two runs", "two TERM")
	if alive(two.PID) {
		t.Error("the process outlived its manifest")
	}
}

func TestKillAndStartRestartsNothing(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("a", shell("main", serve("a"))), d.pod("b", shell("main", serve("b"))), d.pod("c", shell("main", serve("c"))))
	for _, name := range []string{"a", "b", "c"} {
		d.untilApplied(name)
	}
	d.untilNotedInAnyOrder("a runs", "b runs", "c runs")
	a, b, c := d.runs("a", "main"), d.runs("b", "main"), d.runs("c", "main")
	d.crash()
	for _, name := range []string{"a", "b", "c"} {
		d.untilApplied(name)
	}
	for name, was := range map[string]running{"a": a, "b": b, "c": c} {
		if now := d.runs(name, "main"); now != was {
			t.Errorf("%s is now %+v, was %+v", name, now, was)
		}
	}

	// What happened to the manifests meanwhile is followed.
	d.kill()
	d.apply(d.pod("b", shell("main", serve("b2"))))
	d.remove("c")
	d.start()
	d.untilGone("c")
	d.untilApplied("b")
	if now := d.runs("a", "main"); now != a {
		t.Errorf("a is now %+v, was %+v", now, a)
	}
	if now := d.runs("b", "main"); now.ID == b.ID || alive(b.PID) || alive(c.PID) {
		t.Errorf("b is now %+v, was %+v; alive %v; c alive %v", now, b, alive(b.PID), alive(c.PID))
	}
	d.untilNotedInAnyOrder("a runs", "b TERM", "b runs", "b2 runs", "c TERM", "c runs")
}

// broken is a manifest with two faults, in its lines 4 and 5.
const broken = `apiVersion: v1
kind: Pod
metadata:
  name: Not_A_Name
spec: {containers: [{name: main}]}
`

func TestBrokenEditSurvivesKill(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("good"))))
	d.untilApplied("web")
	d.untilNoted("good runs")
	was := d.runs("web", "main")
	d.write("web", broken)
	d.untilProblem("web.yaml:4", "error")
	for range 2 {
		d.until("the last good version runs", func(v *server.View) error {
			if p := d.find(v, "web"); p == nil || !p.Ready {
				return fmt.Errorf("there is %v", p)
			}
			return nil
		})
		d.untilProblem("web.yaml:4", "error")
		if now := d.runs("web", "main"); now != was {
			t.Errorf("it is now %+v, was %+v", now, was)
		}
		if out, talk := d.verb("ps"); !strings.Contains(out, "web") || !strings.Contains(talk, "web.yaml:4") {
			t.Errorf("podd ps says %q and %q, want the pod and its file's line", out, talk)
		}
		if out, talk := d.verb("why", "web"); !strings.Contains(out+talk, "web.yaml:4") {
			t.Errorf("podd why says %q and %q, want the file's line", out, talk)
		}
		d.crash()
	}
	d.apply(d.pod("web", shell("main", serve("mended"))))
	d.untilApplied("web")
	d.untilNoted("good runs", "good TERM", "mended runs")
}

func TestHalfWrittenFileIsNotActedOn(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	was := d.runs("web", "main")
	// A whole document comes first: cut here, the text is a good manifest.
	whole := text(d, d.pod("web", shell("main", serve("two"))), d.pod("more", shell("main", serve("more"))))
	cut := strings.Index(whole, "---\n")
	f, err := os.OpenFile(d.file("web"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(whole[:cut]); err != nil {
		t.Fatal(err)
	}
	d.stays(2, "nothing is acted on", func(v *server.View) error {
		p := d.find(v, "web")
		if p == nil || !p.Ready || !p.Current || d.find(v, "more") != nil {
			return fmt.Errorf("there is %+v", v.Pods)
		}
		return nil
	})
	if now := d.runs("web", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	if _, err := f.WriteString(whole[cut:]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	d.until("the second document runs too", func(v *server.View) error {
		if p := d.find(v, "more"); p == nil || !p.Ready {
			return fmt.Errorf("there is %+v", p)
		}
		return nil
	})
}
