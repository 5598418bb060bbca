//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"podd/reconcile/device/plugin/plugintest"
)

// TestFaultNoInotify starts podd while all inotify instances are in use. podd must poll for
// manifests, plugins and log lines instead, and report a problem.
func TestFaultNoInotify(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.noInotify = true
	d.start()
	d.untilProblem(d.manifestDir(), "all inotify instances are in use")

	p := &plugintest.Plugin{Dir: filepath.Join(d.root(), "plugins_registry"), Resource: fancy, WaitsForDiscovery: true}
	p.SetDevices("one")
	d.eventually("podd has created the directory for plugins", func() error { _, err := os.Stat(p.Dir); return err })
	startPlugin(t, p)
	web := d.pod("web", withDevices(shell("main", "echo first; until [ -e /trace/go ]; do sleep 0.1; done; echo second; "+serve("web")), "1"))
	d.apply(web)
	d.untilApplied("web")

	follow := d.follow("logs", "--follow", "web")
	wantLine(t, follow, "first")
	if err := os.WriteFile(filepath.Join(d.traceDir(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantLine(t, follow, "second")

	web.Spec.Containers[0].Command[2] = serve("edited")
	d.apply(web)
	d.untilNote("edited runs")
	d.untilApplied("web")
	d.remove("web")
	d.untilGone("web")
}

// follow starts a podd command and returns a scanner of the lines that it prints. The command is
// killed at the end of the test.
func (d *daemon) follow(words ...string) *bufio.Scanner {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the error is ignored, because the command was killed
	})
	return bufio.NewScanner(out)
}

// wantLine fails the test unless the next line equals want.
func wantLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("got the line %q, error %v; want %q", lines.Text(), lines.Err(), want)
	}
}
