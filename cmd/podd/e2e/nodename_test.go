//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// singletonScript returns a script that notes its start and SIGTERM like that of serve. It takes a second
// to stop, and also notes if another container with the same name is running.
func singletonScript(name string) string {
	lock := "/trace/" + name + ".lock"
	return "mkdir " + lock + " || " + note(name+" runs twice") +
		"trap 'sleep 1; rmdir " + lock + "; " + note(name+" TERM") + "exit 0' TERM; " + note(name+" runs") + "sleep 3600 & wait"
}

// TestHostnameChanges checks that a change of the hostname does not replace pods until a user accepts
// the new name with podd accept node-name. Then the pod with the old node name must stop before the pod
// with the new node name starts. A node name that is given by flag must take effect at podd's next
// start.
func TestHostnameChanges(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	first, second, third := d.node+"-first", d.node+"-second", d.node+"-third"
	d.host, d.hostname = first, first
	d.start()
	d.apply(d.pod("web", shell("main", singletonScript("web"))))
	d.untilApplied("web")
	was := d.container("web", "main")

	// The hostname changes while podd runs, and again while podd does not run.
	rename := exec.Command("nsenter", fmt.Sprintf("--uts=/proc/%d/ns/uts", d.proc.pid()), "sh", "-c", `echo "$0" >/proc/sys/kernel/hostname`, second)
	if out, err := rename.CombinedOutput(); err != nil {
		t.Fatalf("changing the hostname: %v: %s", err, out)
	}
	d.untilProblem(first, second, "podd accept node-name")
	d.hostname = second
	d.crash()
	d.untilProblem(first, second, "podd accept node-name")
	d.untilApplied("web")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after a change of the hostname: got %+v, want %+v", now, was)
	}

	_, stderr := d.verb("accept", "node-name")
	if !strings.Contains(stderr, first) || !strings.Contains(stderr, second) {
		t.Errorf("podd accept node-name: got %q, want the names %s and %s in it", stderr, first, second)
	}
	d.host = second
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs")
	d.untilNoProblems()
	accepted := d.container("web", "main")
	d.crash()
	d.untilApplied("web")
	d.untilNoProblems()
	if now := d.container("web", "main"); now != accepted {
		t.Errorf("container after a restart of podd with the accepted name: got %+v, want %+v", now, accepted)
	}

	d.kill()
	d.host, d.hostname = third, ""
	d.start()
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs", "web TERM", "web runs")
	d.untilNoProblems()

	// With a hostname that is not a valid node name, podd keeps the current node name.
	d.kill()
	d.hostname = "not_" + third
	d.start()
	d.untilProblem(third, d.hostname, "cannot name a node")
	d.untilApplied("web")
	d.untilNoted("web runs", "web TERM", "web runs", "web TERM", "web runs")
}

// untilNoProblems waits until podd shows no problem.
func (d *daemon) untilNoProblems() {
	d.t.Helper()
	d.eventually("podd reports no problem", func() error {
		v, err := d.state()
		if err != nil {
			return err
		}
		if all := problems(v); len(all) > 0 {
			return fmt.Errorf("got problems %q, want none", all)
		}
		return nil
	})
}
