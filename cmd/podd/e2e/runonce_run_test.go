//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runLabel is the label of every pod of a run; its value is the node of the daemon.
const runLabel = "e2e-run"

// newRunner prepares the root directory of a daemon for podd run --runonce. It does not start
// the daemon.
func newRunner(t testing.TB) *daemon {
	t.Helper()
	d := newDaemon(t, shared)
	d.sources = false
	return d
}

// jobPod returns a pod for a run with the given restart policy.
func (d *daemon) jobPod(name string, policy v1.RestartPolicy, containers ...v1.Container) *v1.Pod {
	p := withRestartPolicy(d.pod(name, containers...), policy)
	p.Labels = map[string]string{runLabel: d.node}
	return p
}

// A onceRun is a process of podd run --runonce.
type onceRun struct {
	*process
	d   *daemon
	out bytes.Buffer
	err lines
}

// startRun starts podd run --runonce with additional arguments. stdin may be nil.
func (d *daemon) startRun(stdin io.Reader, args ...string) *onceRun {
	d.t.Helper()
	r := &onceRun{d: d}
	r.launch(stdin, &r.out, args...)
	return r
}

// startRunTo is like startRun, but the run writes its stdout to a file.
func (d *daemon) startRunTo(stdout *os.File, args ...string) *onceRun {
	d.t.Helper()
	r := &onceRun{d: d}
	r.launch(nil, stdout, args...)
	return r
}

// launch starts the process of a run.
func (r *onceRun) launch(stdin io.Reader, stdout io.Writer, args ...string) {
	d := r.d
	d.t.Helper()
	r.err.name = "podd run"
	cmd := exec.Command(binary, d.runArgs(args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.manifestDir(), stdin, stdout, &r.err
	var err error
	if r.process, err = launch(cmd); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { // kills a process that a failed test has left running
		if r.running() {
			r.signal(syscall.SIGKILL)
		}
	})
}

// runArgs returns podd's command line for a run, with additional arguments.
func (d *daemon) runArgs(args ...string) []string {
	return append([]string{
		"run", "--runonce", "--root-dir", d.root(), "--pod-logs-dir", d.logDir(),
		"--hostname-override", d.host, "--container-runtime-endpoint", d.endpoint, "--cgroup-root", d.parentCgroup(),
	}, args...)
}

// run starts a run and waits until it has exited.
func (d *daemon) run(args ...string) *onceRun {
	d.t.Helper()
	r := d.startRun(nil, args...)
	r.wait()
	return r
}

// runPods writes the pods to a file and runs the file.
func (d *daemon) runPods(pods ...*v1.Pod) *onceRun {
	d.t.Helper()
	d.writePods("pods", pods...)
	return d.run("pods.yaml")
}

// writePods writes one manifest with all pods.
func (d *daemon) writePods(file string, pods ...*v1.Pod) {
	d.t.Helper()
	var all []any
	for _, p := range pods {
		all = append(all, p)
	}
	d.write(file, manifestText(d, all...))
}

func (r *onceRun) wait() { <-r.ended }

// wantExit waits until the run has exited. The test fails unless the exit code is code, stderr contains
// all given texts, and the run has left nothing on the host.
func (r *onceRun) wantExit(code int, stderr ...string) {
	r.d.t.Helper()
	r.wait()
	r.wantNothingLeft()
	r.wantExitCode(code, stderr...)
}

// wantExitCode is like wantExit, but does not check whether the run has left something on the host.
func (r *onceRun) wantExitCode(code int, stderr ...string) {
	r.d.t.Helper()
	r.wait()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.d.t.Errorf("podd run --runonce: got exit code %d, want %d", got, code)
	}
	for _, s := range stderr {
		if !strings.Contains(r.err.String(), s) {
			r.d.t.Errorf("podd run --runonce: got no %q in stderr, want it", s)
		}
	}
	if r.d.t.Failed() {
		r.d.t.Logf("stdout (its end):\n%.2000s\nstderr:\n%.4000s", r.out.String(), r.err.String())
	}
}

// wantNothingLeft checks, without waiting, that nothing of a finished run is left on the host.
func (r *onceRun) wantNothingLeft() {
	r.d.t.Helper()
	left, err := r.d.runLeftovers()
	if err != nil || len(left) > 0 {
		r.d.t.Errorf("leftovers of the finished run: got (error %v)\n%s\nwant none", err, strings.Join(left, "\n"))
	}
}

// runLeftovers returns a line for each sandbox, directory, mount and cgroup of the runs.
func (d *daemon) runLeftovers() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all []string
	conn, err := connect(d.on)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	sandboxes, err := cri.NewRuntimeServiceClient(conn).ListPodSandbox(ctx, &cri.ListPodSandboxRequest{
		Filter: &cri.PodSandboxFilter{LabelSelector: map[string]string{runLabel: d.node}},
	})
	errs := []error{err}
	for _, s := range sandboxes.GetItems() {
		all = append(all, fmt.Sprintf("sandbox of %s, %s", s.GetMetadata().GetName(), s.GetState()))
	}
	add := func(paths []string, err error) { all, errs = append(all, paths...), append(errs, err) }
	add(pathsIn(filepath.Join(d.root(), "once")))
	add(pathsIn(d.logDir()))
	add(d.mounts())
	add(d.podCgroups())
	return all, errors.Join(errs...)
}

// filePath returns the path of a file in the daemon's directory.
func (d *daemon) filePath(name string) string { return filepath.Join(d.dir, name) }

func (d *daemon) readFile(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(d.filePath(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}
