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
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	d.untilNoted("one runs")
	one := d.container("web", "main")

	d.apply(d.pod("web", shell("main", serve("two"))))
	d.untilApplied("web")
	// The old container got TERM and exited before the new one started.
	d.untilNoted("one runs", "one TERM", "two runs")
	two := d.container("web", "main")
	if two.PID == one.PID || two.Sandbox == one.Sandbox {
		t.Errorf("after the edit: got container %+v, want one whose process and sandbox differ from those of %+v", two, one)
	}
	if alive(one.PID) {
		t.Errorf("after the edit: the old process %d runs, want it to have exited", one.PID)
	}
	if all := d.containers("web", ""); len(all) != 1 {
		t.Errorf("after the edit: got %d running containers, want 1", len(all))
	}
	d.eventually("nothing is left of the first version", func() error {
		now, err := d.inventory(t.Context())
		if err == nil && (len(now.sandboxes) != 1 || len(now.containers) != 1) {
			err = fmt.Errorf("got %d sandboxes, %d containers, want 1 of each", len(now.sandboxes), len(now.containers))
		}
		return err
	})

	d.remove("web")
	d.untilGone("web")
	d.untilNoted("one runs", "one TERM", "two runs", "two TERM")
	if alive(two.PID) {
		t.Errorf("after the manifest was removed: got the running process %d, want it to have exited", two.PID)
	}
}

func TestRestart_KeepsContainers(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("a", shell("main", serve("a"))), d.pod("b", shell("main", serve("b"))), d.pod("c", shell("main", serve("c"))))
	for _, name := range []string{"a", "b", "c"} {
		d.untilApplied(name)
	}
	d.untilNotedUnordered("a runs", "b runs", "c runs")
	a, b, c := d.container("a", "main"), d.container("b", "main"), d.container("c", "main")
	d.crash()
	for _, name := range []string{"a", "b", "c"} {
		d.untilApplied(name)
	}
	for name, was := range map[string]runningContainer{"a": a, "b": b, "c": c} {
		if now := d.container(name, "main"); now != was {
			t.Errorf("after podd was killed: container of pod %s: got %+v, want %+v", name, now, was)
		}
	}

	// Edits that are made while podd does not run take effect when it starts.
	d.kill()
	d.apply(d.pod("b", shell("main", serve("b2"))))
	d.remove("c")
	d.start()
	d.untilGone("c")
	d.untilApplied("b")
	if now := d.container("a", "main"); now != a {
		t.Errorf("container of pod a, which was not edited: got %+v, want %+v", now, a)
	}
	if now := d.container("b", "main"); now.ID == b.ID || alive(b.PID) || alive(c.PID) {
		t.Errorf("edited pod b and removed pod c: got container %+v of b, old processes alive: b %t, c %t; want a container of b other than %+v, old processes alive: b false, c false", now, alive(b.PID), alive(c.PID), b)
	}
	d.untilNotedUnordered("a runs", "b TERM", "b runs", "b2 runs", "c TERM", "c runs")
}

// broken is a manifest with errors in lines 4 and 5.
const broken = `apiVersion: v1
kind: Pod
metadata:
  name: Not_A_Name
spec: {containers: [{name: main}]}
`

func TestBrokenEdit_KilledDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("good"))))
	d.untilApplied("web")
	d.untilNoted("good runs")
	d.untilStored("web")
	was := d.container("web", "main")
	d.write("web", broken)
	d.untilProblem("web.yaml:4", "error")
	for range 2 {
		d.until("the last valid version runs", func(v *server.View) error {
			if p := d.find(v, "web"); p == nil || !p.Ready {
				return fmt.Errorf("pod web: got %+v, want a ready pod", p)
			}
			return nil
		})
		d.untilProblem("web.yaml:4", "error")
		if now := d.container("web", "main"); now != was {
			t.Errorf("after the broken edit: got container %+v, want %+v", now, was)
		}
		if out, stderr := d.verb("ps"); !strings.Contains(out, "web") || !strings.Contains(stderr, "web.yaml:4") {
			t.Errorf("podd ps: got stdout %q, stderr %q; want the pod in stdout and %q in stderr", out, stderr, "web.yaml:4")
		}
		if out, stderr := d.verb("why", "web"); !strings.Contains(out+stderr, "web.yaml:4") {
			t.Errorf("podd why: got stdout %q, stderr %q; want %q in one of them", out, stderr, "web.yaml:4")
		}
		d.crash()
	}
	d.apply(d.pod("web", shell("main", serve("fixed"))))
	d.untilApplied("web")
	d.untilNoted("good runs", "good TERM", "fixed runs")
}

func TestPartlyWrittenFile(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	was := d.container("web", "main")
	// The text before the cut is itself a valid manifest. Therefore podd can notice only by the open file
	// descriptor that the file is not complete.
	whole := manifestText(d, d.pod("web", shell("main", serve("two"))), d.pod("more", shell("main", serve("more"))))
	cut := strings.Index(whole, "---\n")
	f, err := os.OpenFile(d.manifestFile("web"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(whole[:cut]); err != nil {
		t.Fatal(err)
	}
	d.consistently(2, "the incomplete file has no effect", func(v *server.View) error {
		p := d.find(v, "web")
		if p == nil || !p.Ready || !p.IsCurrent || d.find(v, "more") != nil {
			return fmt.Errorf("got the pods %+v, want only web, ready and in its current version", v.Pods)
		}
		return nil
	})
	if now := d.container("web", "main"); now != was {
		t.Errorf("while the file is incomplete: got container %+v, want %+v", now, was)
	}
	if _, err := f.WriteString(whole[cut:]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	d.until("the pod of the second document in the file runs too", func(v *server.View) error {
		if p := d.find(v, "more"); p == nil || !p.Ready {
			return fmt.Errorf("pod more: got %+v, want a ready pod", p)
		}
		return nil
	})
}
