//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
)

// TestDebug adds debug containers to a running pod and attaches to them. The other containers
// must keep running.
func TestDebug(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, _ := withRegistry(d, registry.Options{})
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	was := d.container("web", "main")
	with := func(words ...string) []string {
		return append([]string{"debug", "web", "--image", stack.BusyboxImage}, words...)
	}

	out, stderr, code := d.outcome(nil, with("-c", "looker", "--env", "COLOUR=green", "--", "sh", "-c", "echo $COLOUR; sleep 3600")...)
	if code != 0 || out != "" || stderr != "podd: container looker of web is running; run \"podd logs web -c looker\" for its output\n" {
		t.Errorf("podd debug: got stdout %q, stderr %q, exit code %d; want exit code 0, no output, and a message that container looker is running", out, stderr, code)
	}
	d.eventually("the log of container looker is \"green\"", func() error {
		if out, _, _ := d.outcome(nil, "logs", "web", "-c", "looker"); out != "green\n" {
			return fmt.Errorf("got log %q, want %q", out, "green\n")
		}
		return nil
	})
	if _, stderr, code := d.outcome(nil, with("-c", "looker")...); code != 1 || !strings.Contains(stderr, `already has a container "looker"`) {
		t.Errorf("podd debug with a used name: got stderr %q, exit code %d; want exit code 1 and stderr with %q", stderr, code, `already has a container "looker"`)
	}
	out, stderr, code = d.outcome(nil, with("--attach", "-c", "short", "--", "echo", "said at once")...)
	if code != 0 || out != "said at once\n" {
		t.Errorf("podd debug --attach: got stdout %q, stderr %q, exit code %d; want exit code 0 and output %q", out, stderr, code, "said at once\n")
	}
	// A client gets the output that the container writes before the client is attached, and the
	// response to its first input.
	const reader = "echo early; echo trouble >&2; read line; echo got $line; exit 7"
	out, stderr, code = d.outcome(strings.NewReader("word\n"), with("-i", "-c", "reader", "--", "sh", "-c", reader)...)
	if code != 7 || out != "early\ngot word\n" || !strings.HasPrefix(stderr, "trouble\n") {
		t.Errorf("podd debug -i: got stdout %q, stderr %q, exit code %d; want exit code 7, output %q and stderr that begins with %q", out, stderr, code, "early\ngot word\n", "trouble\n")
	}
	// The container only prints a count, because containerd 1.6 loses the last output of a
	// container if the output does not fit into the container's pipes (containerd#7289).
	out, stderr, code = d.outcome(strings.NewReader(strings.Repeat("0123456789\n", 20000)), with("-i", "-c", "count", "--", "wc", "-c")...)
	if code != 0 || strings.TrimSpace(out) != "220000" {
		t.Errorf("podd debug -i: got stdout %q, stderr %q, exit code %d; want %q", out, stderr, code, "220000")
	}

	cmd := d.command(with("-it", "--target", "main", "--", "sh")...)
	s := startOnTerminal(t, cmd, 200, 33)
	s.waitFor("podd: defaulting debug container name to debugger-")
	s.waitFor("# ")
	s.typeKeys("echo $((6*7)); tr '\\0' ' ' </proc/1/cmdline\r")
	s.waitFor("42\r\n")
	s.waitFor("sh -c") // part of the command line of the container main
	s.typeKeys("exit\r")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("podd debug -it: got exit code %d, want 0", code)
	}

	// The timeout is long enough for podd to try to pull the image.
	_, stderr, code = d.outcome(nil, "debug", "web", "--image", r.Host()+"/team/none:1", "-c", "none", "--timeout", "20s")
	if code != 1 || !strings.Contains(stderr, "container none of default/"+d.podName("web")+" is not running after 20s: ") || !strings.Contains(stderr, r.Host()) {
		t.Errorf("podd debug of an image that does not exist: got stderr %q, exit code %d; want exit code 1 and the registry's address", stderr, code)
	}
	if now := d.container("web", "main"); now != was {
		t.Errorf("container main after all debug containers: got %+v, want %+v", now, was)
	}
}
