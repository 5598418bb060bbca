//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// single is a script that notes its start and end, and any other container of that
// name that runs at the same time.
func single(name string) string {
	lock := "/trace/" + name + ".lock"
	return "mkdir " + lock + " || " + note(name+" runs twice") +
		"trap 'sleep 1; rmdir " + lock + "; " + note(name+" TERM") + "exit 0' TERM; " + note(name+" runs") + "sleep 3600 & wait"
}

// TestHostnameChanges: a changed hostname replaces no pod before a user accepts it; then
// each pod stops before its successor starts. A name that is given takes effect at once.
func TestHostnameChanges(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	first, second, third := d.node+"-first", d.node+"-second", d.node+"-third"
	d.host, d.hostname = first, first
	d.start()
	d.apply(d.pod("web", shell("main", single("web"))))
	d.untilApplied("web")
	was := d.runs("web", "main")

	// While podd runs, and before it starts.
	rename := exec.Command("nsenter", fmt.Sprintf("--uts=/proc/%d/ns/uts", d.proc.pid()), "sh", "-c", `echo "$0" >/proc/sys/kernel/hostname`, second)
	if out, err := rename.CombinedOutput(); err != nil {
		t.Fatalf("changing the hostname: %v: %s", err, out)
	}
	d.untilProblem(first, second, "podd accept node-name")
	d.hostname = second
	d.crash()
	d.untilProblem(first, second, "podd accept node-name")
	d.untilApplied("web")
	if now := d.runs("web", "main"); now != was {
		t.Errorf("another hostname: it runs as %+v, was %+v", now, was)
	}

	_, talk := d.verb("accept", "node-name")
	if !strings.Contains(talk, first) || !strings.Contains(talk, second) {
		t.Errorf("podd accept node-name printed %q, without both names", talk)
	}
	d.host = second
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs")
	d.noProblems()
	accepted := d.runs("web", "main")
	d.crash()
	d.untilApplied("web")
	d.noProblems()
	if now := d.runs("web", "main"); now != accepted {
		t.Errorf("after a restart it runs as %+v, was %+v", now, accepted)
	}

	d.kill()
	d.host, d.hostname = third, ""
	d.start()
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs", "web TERM", "web runs")
	d.noProblems()

	// A hostname that cannot name a node.
	d.kill()
	d.hostname = "not_" + third
	d.start()
	d.untilProblem(third, d.hostname, "cannot name a node")
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs", "web TERM", "web runs")
}

// noProblems waits until podd shows no problem.
func (d *daemon) noProblems() {
	d.t.Helper()
	d.eventually("there is no problem", func() error {
		v, err := d.state()
		if err != nil {
			return err
		}
		if all := problems(v); len(all) > 0 {
			return fmt.Errorf("the problems are %q", all)
		}
		return nil
	})
}
