//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// TestPullIsShown: who asks is told what is fetched, who waits at a terminal sees
// it for as long as it takes, and off a terminal nothing is written but lines.
func TestPullIsShown(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{})
	d.apply(d.pod("web", from(ref, shell("main", serve("web")))))
	d.untilPod("is pulled", "web", func(p *server.PodView) error {
		if len(p.Pulls) != 1 || p.Pulls[0].Image != ref || p.Pulls[0].Container != "main" || p.Pulls[0].Since.IsZero() {
			return fmt.Errorf("it pulls %+v", p.Pulls)
		}
		return nil
	})
	if out, _ := d.verb("ps"); !strings.Contains(out, "(pulling "+ref+" for ") {
		t.Errorf("ps says\n%s", out)
	}
	if out, _ := d.verb("why", "web"); !strings.Contains(out, "  pull   "+ref+" for container main since ") {
		t.Errorf("why says\n%s", out)
	}
	if _, talk, code := d.outcome(nil, "wait", "--timeout=1500ms", "web"); code != 1 || strings.ContainsAny(talk, "\r\x1b") {
		t.Errorf("off a terminal: %q, %d", talk, code)
	}
	cmd := d.command("wait", "--timeout=0", "web")
	s := at(t, cmd, 200, 33)
	s.shows("\rpulling " + ref + " for ")
	s.shows("\rpulling " + ref + " for ") // again, a second later
	d.apply(d.pod("web", shell("main", serve("web"))))
	s.shows("\r\x1b[K") // it is gone
	s.shows("podd: default/web ready after ")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("it left with %d", code)
	}
	d.untilPod("is pulled no more", "web", func(p *server.PodView) error {
		if len(p.Pulls) > 0 {
			return errors.New("it still is")
		}
		return nil
	})
}

// TestRunOnceShowsPulls: at a terminal, and nothing of it stays there.
func TestRunOnceShowsPulls(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{})
	d.writePods("pods", d.job("job", v1.RestartPolicyNever, from(ref, shell("main", "true"))))
	cmd := exec.Command(binary, d.runWords("pods.yaml")...)
	cmd.Dir = d.manifests()
	s := at(t, cmd, 200, 33)
	s.shows("\rpulling " + ref + " for ")
	s.types("\x03")
	s.shows("\r\x1b[K")
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("interrupted, it left with %d", code)
	}
}
