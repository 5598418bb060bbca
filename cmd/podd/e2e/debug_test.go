//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
)

// TestDebug: a container is added to a pod that runs, and taken part in; the pod's
// own go on.
func TestDebug(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, _ := withRegistry(d, registry.Options{})
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	was := d.runs("web", "main")
	with := func(words ...string) []string {
		return append([]string{"debug", "web", "--image", stack.BusyboxImage}, words...)
	}

	out, talk, code := d.outcome(nil, with("-c", "looker", "--env", "COLOUR=green", "--", "sh", "-c", "echo $COLOUR; sleep 3600")...)
	if code != 0 || out != "" || talk != "podd: container looker of web is running; podd logs web -c looker\n" {
		t.Errorf("%q, %q, %d", out, talk, code)
	}
	d.eventually("the log of looker says green", func() error {
		if out, _, _ := d.outcome(nil, "logs", "web", "-c", "looker"); out != "green\n" {
			return fmt.Errorf("it says %q", out)
		}
		return nil
	})
	if _, talk, code := d.outcome(nil, with("-c", "looker")...); code != 1 || !strings.Contains(talk, `already has a container "looker"`) {
		t.Errorf("%q, %d", talk, code)
	}
	out, talk, code = d.outcome(nil, with("--attach", "-c", "short", "--", "echo", "said at once")...)
	if code != 0 || out != "said at once\n" {
		t.Errorf("%q, %q, %d", out, talk, code)
	}
	// What is said before anybody can attach, and at once to what comes in.
	const reader = "echo early; echo trouble >&2; read line; echo got $line; exit 7"
	out, talk, code = d.outcome(strings.NewReader("word\n"), with("-i", "-c", "reader", "--", "sh", "-c", reader)...)
	if code != 7 || out != "early\ngot word\n" || !strings.HasPrefix(talk, "trouble\n") {
		t.Errorf("%q, %q, %d", out, talk, code)
	}
	// It counts: containerd 1.6 loses what a container writes in its last moments, when
	// that is more than its pipes hold (containerd#7289).
	out, talk, code = d.outcome(strings.NewReader(strings.Repeat("0123456789\n", 20000)), with("-i", "-c", "count", "--", "wc", "-c")...)
	if code != 0 || strings.TrimSpace(out) != "220000" {
		t.Errorf("%q, %q, %d", out, talk, code)
	}

	cmd := d.command(with("-it", "--target", "main", "--", "sh")...)
	s := at(t, cmd, 200, 33)
	s.shows("podd: defaulting debug container name to debugger-")
	s.shows("# ")
	s.types("echo $((6*7)); tr '\\0' ' ' </proc/1/cmdline\r")
	s.shows("42\r\n")
	s.shows("sh -c") // main's
	s.types("exit\r")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("it left with %d", code)
	}

	_, talk, code = d.outcome(nil, "debug", "web", "--image", r.Host()+"/team/none:1", "-c", "none", "--timeout", "5s")
	if code != 1 || !strings.Contains(talk, "container none of default/"+d.full("web")+" is not running after 5.0s: ") || !strings.Contains(talk, r.Host()) {
		t.Errorf("%q, %d", talk, code)
	}
	if now := d.runs("web", "main"); now != was {
		t.Errorf("main is now %+v, was %+v", now, was)
	}
}
