//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// TestPullProgress checks that podd ps and podd why show a pull. podd wait must show the
// progress on a terminal, and must print only lines elsewhere.
func TestPullProgress(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{})
	d.apply(d.pod("web", withImage(ref, shell("main", serve("web")))))
	d.untilPod("has a pull in progress", "web", func(p *server.PodView) error {
		if len(p.Pulls) != 1 || p.Pulls[0].Image != ref || p.Pulls[0].Container != "main" || p.Pulls[0].Since.IsZero() {
			return fmt.Errorf("got pulls %+v, want one pull of %s for container main", p.Pulls, ref)
		}
		return nil
	})
	if out, _ := d.verb("ps"); !strings.Contains(out, "(pulling "+ref+" for ") {
		t.Errorf("podd ps: got\n%s, want %q in it", out, "(pulling "+ref+" for ")
	}
	if out, _ := d.verb("why", "web"); !strings.Contains(out, "  pull   "+ref+" for container main since ") {
		t.Errorf("podd why: got\n%s, want %q in it", out, "  pull   "+ref+" for container main since ")
	}
	if _, stderr, code := d.outcome(nil, "wait", "--timeout=1500ms", "web"); code != 1 || strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("podd wait without a terminal: got stderr %q and exit code %d, want no control characters and exit code 1", stderr, code)
	}
	cmd := d.command("wait", "--timeout=0", "web")
	s := startOnTerminal(t, cmd, 200, 33)
	s.waitFor("\rpulling " + ref + " for ")
	s.waitFor("\rpulling " + ref + " for ") // the line is printed again a second later
	d.apply(d.pod("web", shell("main", serve("web"))))
	s.waitFor("\r\x1b[K") // the progress line is erased
	s.waitFor("podd: default/web ready after ")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("podd wait on a terminal: got exit code %d, want 0", code)
	}
	d.untilPod("has no pull in progress", "web", func(p *server.PodView) error {
		if len(p.Pulls) > 0 {
			return fmt.Errorf("got pulls %+v, want none", p.Pulls)
		}
		return nil
	})
}

// TestPullProgress_RunOnce checks that podd run --runonce shows the progress of pulls on a
// terminal and erases it afterwards.
func TestPullProgress_RunOnce(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{})
	d.writePods("pods", d.jobPod("job", v1.RestartPolicyNever, withImage(ref, shell("main", "true"))))
	cmd := exec.Command(binary, d.runArgs("pods.yaml")...)
	cmd.Dir = d.manifestDir()
	s := startOnTerminal(t, cmd, 200, 33)
	s.waitFor("\rpulling " + ref + " for ")
	s.typeKeys("\x03")
	s.waitFor("\r\x1b[K")
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("podd run after Ctrl-C: got exit code %d, want 130", code)
	}
}
