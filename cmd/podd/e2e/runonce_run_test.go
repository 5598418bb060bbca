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

// runLabel is on every pod of a run, with the node of its daemon.
const runLabel = "e2e-run"

// withRuns prepares a root directory for runs, and no daemon on it.
func withRuns(t testing.TB) *daemon {
	t.Helper()
	d := newDaemon(t, shared)
	d.sources = false
	return d
}

// job is a pod of a run.
func (d *daemon) job(name string, policy v1.RestartPolicy, containers ...v1.Container) *v1.Pod {
	p := once(d.pod(name, containers...), policy)
	p.Labels = map[string]string{runLabel: d.node}
	return p
}

// oneRun is a run to completion.
type oneRun struct {
	*process
	d        *daemon
	out, err bytes.Buffer
}

// beginRun starts podd run --runonce with more arguments; stdin may be nil.
func (d *daemon) beginRun(stdin io.Reader, args ...string) *oneRun {
	d.t.Helper()
	r := &oneRun{d: d}
	r.begin(stdin, &r.out, args...)
	return r
}

// beginRunTo is beginRun with another stdout.
func (d *daemon) beginRunTo(stdout *os.File, args ...string) *oneRun {
	d.t.Helper()
	r := &oneRun{d: d}
	r.begin(nil, stdout, args...)
	return r
}

func (r *oneRun) begin(stdin io.Reader, stdout io.Writer, args ...string) {
	d := r.d
	d.t.Helper()
	cmd := exec.Command(binary, d.runWords(args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.manifests(), stdin, stdout, &r.err
	var err error
	if r.process, err = launch(cmd); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { // of a test that failed
		if r.running() {
			r.signal(syscall.SIGKILL)
		}
	})
}

// runWords is podd's command line for a run with more arguments.
func (d *daemon) runWords(args ...string) []string {
	return append([]string{
		"run", "--runonce", "--root-dir", d.root(), "--run-dir", d.runDir(), "--pod-logs-dir", d.logs(),
		"--hostname-override", d.host, "--container-runtime-endpoint", d.endpoint, "--cgroup-root", d.cgroup(),
	}, args...)
}

// run runs to completion.
func (d *daemon) run(args ...string) *oneRun {
	d.t.Helper()
	r := d.beginRun(nil, args...)
	r.wait()
	return r
}

// runPods writes the pods to a file and runs that.
func (d *daemon) runPods(pods ...*v1.Pod) *oneRun {
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
	d.write(file, text(d, all...))
}

func (r *oneRun) wait() { <-r.ended }

// ends wants an exit code and texts on stderr, and that nothing is left.
func (r *oneRun) ends(code int, said ...string) {
	r.d.t.Helper()
	r.wait()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.d.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, s := range said {
		if !strings.Contains(r.err.String(), s) {
			r.d.t.Errorf("stderr says nothing of %q", s)
		}
	}
	r.leavesNothing()
	if r.d.t.Failed() {
		r.d.t.Logf("stdout (its end):\n%.2000s\nstderr:\n%.4000s", r.out.String(), r.err.String())
	}
}

// leavesNothing: a run that is over is gone already, without any waiting.
func (r *oneRun) leavesNothing() {
	r.d.t.Helper()
	left, err := r.d.runLeftovers()
	if err != nil || len(left) > 0 {
		r.d.t.Errorf("left over: %v\n%s", err, strings.Join(left, "\n"))
	}
}

// runLeftovers is everything that runs have on the machine.
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
	add(below(filepath.Join(d.root(), "once")))
	add(below(d.logs()))
	add(d.mounts())
	add(d.podCgroups())
	return all, errors.Join(errs...)
}

// untilNotedAny waits for a line among those that the pods note.
func (d *daemon) untilNotedAny(line string) {
	d.t.Helper()
	d.eventually("a pod notes "+line, func() error {
		for _, l := range d.journal() {
			if l == line {
				return nil
			}
		}
		return fmt.Errorf("noted %q", d.journal())
	})
}

// path is a file in the test's directory.
func (d *daemon) path(name string) string { return filepath.Join(d.dir, name) }

func (d *daemon) read(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}
