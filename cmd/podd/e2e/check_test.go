//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podd/cmd/podd/internal/check"
	"podd/runtime/runtimetest/stack"
)

// TestCheck checks that podd check finds no failure on a node with a runtime, before podd starts
// and while it runs.
func TestCheck(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	before := d.check(0)
	if _, err := os.Stat(d.root()); err == nil {
		t.Errorf("after podd check: got the directory %s, want none", d.root())
	}
	if _, err := os.Stat(d.runDir()); err == nil {
		t.Errorf("after podd check: got the directory %s, want none", d.runDir())
	}
	d.start()
	running := d.check(0)
	for name, want := range map[string]string{
		"configuration": "valid", "kernel": "Linux", "runtime": "CRI v1", "sandbox image": "", "pod network": "ready", "ports": fmt.Sprintf("127.0.0.1:%d", d.api),
	} {
		for _, report := range []check.Report{before, running} {
			if r := result(t, report, name); r.Outcome != check.OK || !strings.Contains(r.Detail, want) {
				t.Errorf("%s: got %+v, want ok and %q", name, r, want)
			}
		}
	}
	// A warning is allowed, because the host of the test may have less free space than podd's default
	// eviction thresholds.
	if r := result(t, running, "disks"); r.Outcome == check.Failed || !strings.Contains(r.Detail, "free for pods") {
		t.Errorf("disks: got %+v, want no failure and the free space", r)
	}
	if r := result(t, running, "node agents"); len(r.Problems) == 0 && r.Detail != fmt.Sprintf("podd is running (PID %d)", d.proc.pid()) {
		t.Errorf("node agents: got %+v, want the running podd %d", r, d.proc.pid())
	}
}

// TestCheck_Runtime checks that podd check distinguishes a runtime that is stopped, one that does
// not respond and one without a CNI configuration.
func TestCheck_Runtime(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	if err := d.on.Pause(); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, d.check(1), "runtime", "does not respond: "+d.on.Socket(), "restart it")
	if err := d.on.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := d.on.DisconnectNetwork(); err != nil {
		t.Fatal(err)
	}
	d.eventually("podd check reports that the pod network is not ready", func() error {
		if r := result(t, d.checkOnce(), "pod network"); r.Outcome != check.Failed {
			return fmt.Errorf("got result %+v, want the outcome failed", r)
		}
		return nil
	})
	wantFailure(t, d.check(1), "pod network", "NetworkReady", "install a CNI configuration")
	if err := d.on.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := d.check(1)
	wantFailure(t, report, "runtime", d.on.Socket(), "start the container runtime")
	if r := result(t, report, "sandbox image"); r.Outcome != check.Skipped {
		t.Errorf("sandbox image: got %+v, want the outcome skipped", r)
	}
}

// TestCheck_Port checks that podd check names the process that uses a port. If podd cannot start because
// of the port, it must run the checks of podd check itself and log the name of the process. If the next
// start fails with the same error, podd must not repeat the checks.
func TestCheck_Port(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d.api = ln.Addr().(*net.TCPAddr).Port
	owner := fmt.Sprintf("(PID %d)", os.Getpid())
	wantFailure(t, d.check(1), "ports", fmt.Sprintf("127.0.0.1:%d (--port) is in use by ", d.api), "--port")
	wantFailure(t, d.check(1), "ports", owner, "stop this process")
	for starts := 1; starts <= 2; starts++ {
		d.launch()
		d.eventually("podd exits", func() error {
			if d.proc.running() {
				return errors.New("podd is still running")
			}
			return nil
		})
		if code := d.proc.cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("start %d: got exit code %d, want 1", starts, code)
		}
		log, err := os.ReadFile(d.logFile())
		if err != nil {
			t.Fatal(err)
		}
		if failures, explained := bytes.Count(log, []byte("podd: listening on")), bytes.Count(log, []byte("  ports: the port ")); failures != starts || explained != 1 || !bytes.Contains(log, []byte(owner)) {
			t.Errorf("log after start %d: got %d listen errors, %d results of the port check; want %d listen errors, 1 result of the port check, and %q in the log:\n%s", starts, failures, explained, starts, owner, log)
		}
	}
	ln.Close()
	d.start()
	d.eventually("after a successful start, podd removes the record of the start error", func() error {
		if _, err := os.Stat(filepath.Join(d.runDir(), "podd-start-error")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading the file podd-start-error: got error %v, want an error because the file does not exist", err)
		}
		return nil
	})
}

// TestCheck_Kubelet checks that podd check reports a process with the name of a kubelet. The report
// must contain the PID of the process, but not its command line.
func TestCheck_Kubelet(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	const secret = "--token=hunter2"
	p := startKubelet(t, d, secret)
	pid := fmt.Sprintf("kubelet (PID %d)", p.pid())
	r := result(t, d.check(0), "node agents")
	if text := fmt.Sprint(r.Problems); r.Outcome != check.Warning || !strings.Contains(text, pid+" is running") || strings.Contains(text, secret) {
		t.Errorf("node agents: got %+v, want a warning with %q and without the flag %s", r, pid+" is running", secret)
	}
	p.end()
	p = startKubelet(t, d, "--pod-manifest-path="+d.manifestDir())
	wantFailure(t, d.check(1), "node agents", fmt.Sprintf("kubelet (PID %d) also runs the pods in %s", p.pid(), d.manifestDir()), "systemctl disable --now kubelet")
	p.end()
	p = startKubelet(t, d, "--root-dir", d.root())
	wantFailure(t, d.check(1), "node agents", fmt.Sprintf("kubelet (PID %d) also uses the root directory %s", p.pid(), d.root()), "systemctl disable --now kubelet")
}

// A fakeKubelet is a process of a shell with the name and the flags of a kubelet.
type fakeKubelet struct {
	*process
	stdin *os.File // the shell exits when stdin is closed
}

func (k fakeKubelet) end() {
	k.stdin.Close()
	<-k.ended
}

// startKubelet starts a fakeKubelet, which ends with the test.
func startKubelet(t *testing.T, d *daemon, flags ...string) fakeKubelet {
	t.Helper()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(d.dir, "kubelet")
	if err := os.WriteFile(program, shell, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"-c", "read line", "kubelet"}, flags...)...)
	cmd.Stdin = in
	p, err := launch(cmd)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	k := fakeKubelet{p, out}
	t.Cleanup(k.end)
	d.eventually("the process has the name kubelet", func() error {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid()), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "kubelet" {
			return fmt.Errorf("got name %q, error %v; want kubelet", name, err)
		}
		return nil
	})
	return k
}

// check runs podd check with the daemon's flags. The test fails if the exit code is not wantCode.
func (d *daemon) check(wantCode int) check.Report {
	d.t.Helper()
	report := d.checkOnce()
	if failed := report.Outcome == check.Failed; failed != (wantCode == 1) {
		d.t.Errorf("podd check: got %+v, want exit code %d", report, wantCode)
	}
	return report
}

// checkOnce runs podd check with the daemon's flags. The exit code must agree with the report.
func (d *daemon) checkOnce() (report check.Report) {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(d.t.Context(), binary, append([]string{"check", "-o", "json"}, d.flags()...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || errs.Len() > 0 {
		d.t.Fatalf("podd check -o json: got %v, stderr %q and stdout %s, want JSON and no stderr", err, &errs, &out)
	}
	wantCode := 0
	if report.Outcome == check.Failed {
		wantCode = 1
	}
	if code := cmd.ProcessState.ExitCode(); code != wantCode {
		d.t.Errorf("podd check: got exit code %d with the result %s, want exit code %d", code, report.Outcome, wantCode)
	}
	return report
}

// result returns the result of the check with a name in a report.
func result(t *testing.T, report check.Report, name string) check.Result {
	t.Helper()
	for _, r := range report.Checks {
		if r.Check == name {
			return r
		}
	}
	t.Fatalf("podd check: got the report %+v, want a result of the check %q", report, name)
	return check.Result{}
}

// wantFailure fails the test unless the named check reports a failure whose cause and remedy contain
// the given texts.
func wantFailure(t *testing.T, report check.Report, name, cause, remedy string) {
	t.Helper()
	r := result(t, report, name)
	for _, p := range r.Problems {
		if p.Outcome == check.Failed && strings.Contains(p.Cause, cause) && strings.Contains(p.Remedy, remedy) {
			return
		}
	}
	t.Errorf("%s: got %+v, want a failure with the cause %q and the remedy %q", name, r, cause, remedy)
}
