//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"podd/cmd/podd/e2e/harness"
	"podd/runtime/runtimetest/stack"
)

// patience is the maximum time that a test waits for an event.
var patience = harness.MaxWait(3 * time.Minute)

// A daemon is a podd with separate directories, cgroups and node name. It shares the runtime with the
// daemons of other tests. Its methods fail the test on errors. Only the test's goroutine may call them.
type daemon struct {
	t        testing.TB
	on       *stack.Stack
	node     string // suffix of the daemon's paths and cgroups, unique in a test binary
	host     string // node name; equal to node, unless a test changes it before the start
	hostname string // hostname of podd's UTS namespace; "": the node name is given by flag
	dir      string
	rootDir  string   // the root directory; "": a directory in dir
	endpoint string   // endpoint of the runtime; "": podd has no flag for it
	args     []string // additional flags
	env      []string // additional environment variables
	api      int      // the port of the kubelet API; 0: off
	netns    string   // path of podd's network namespace; "": the namespace of the test
	sources  bool     // manifests() is the only source
	proc     *process // nil: not started yet
	closers  []func() // called after podd has exited

	noInotify bool // start podd as if all inotify instances were in use
}

var daemons atomic.Int64

// newDaemon prepares a podd on a stack, but does not start it. At the end of the test, podd is
// stopped. The test fails if podd has left pods, mounts or cgroups behind, which are then removed.
func newDaemon(t testing.TB, on *stack.Stack, args ...string) *daemon {
	t.Helper()
	node := "n" + strconv.FormatInt(daemons.Add(1), 10)
	// The stack removes its directory and all mounts below it, also after this process was killed.
	d := &daemon{
		t: t, on: on, node: node, host: node, args: args, endpoint: on.Endpoint(), sources: true,
		dir: filepath.Join(on.Dir, "stack", "podd", node),
	}
	for _, dir := range []string{d.manifestDir(), d.traceDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(d.end)
	return d
}

// startDaemon starts a podd on the shared stack.
func startDaemon(t testing.TB, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, shared, args...)
	d.start()
	return d
}

func (d *daemon) root() string        { return cmp.Or(d.rootDir, filepath.Join(d.dir, "root")) }
func (d *daemon) runDir() string      { return filepath.Join(d.dir, "run") }
func (d *daemon) logDir() string      { return filepath.Join(d.dir, "logs") }
func (d *daemon) manifestDir() string { return filepath.Join(d.dir, "manifests") }

// traceDir returns the directory of the host that the pods of a test mount at /trace.
func (d *daemon) traceDir() string { return filepath.Join(d.dir, "trace") }

// parentCgroup returns the parent cgroup of the daemon's pods.
func (d *daemon) parentCgroup() string { return d.on.CgroupParent() + "/" + d.node }

func (d *daemon) logFile() string { return filepath.Join(d.dir, "podd.log") }

// flags returns podd's command-line flags.
func (d *daemon) flags() []string {
	flags := []string{
		"--root-dir", d.root(), "--run-dir", d.runDir(), "--pod-logs-dir", d.logDir(),
		"--cgroup-root", d.parentCgroup(), "--healthz-port", "0", "--v", "4",
		"--image-gc-high-threshold", "100", // the tests share the images of a stack
		"--eviction-hard", "memory.available<1Mi", // a test host may be short of disk space
	}
	if d.endpoint != "" {
		flags = append(flags, "--container-runtime-endpoint", d.endpoint)
	}
	if d.hostname == "" {
		flags = append(flags, "--hostname-override", d.host)
	}
	if d.api == 0 {
		flags = append(flags, "--enable-server=false")
	} else {
		flags = append(flags, "--port", strconv.Itoa(d.api))
	}
	if d.sources {
		flags = append(flags, "--pod-manifest-path", d.manifestDir())
	}
	return append(flags, d.args...)
}

// start starts podd and returns when podd responds.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	d.eventually("podd responds", func() error {
		if !d.proc.running() {
			return fmt.Errorf("podd exited: %s", d.proc.cmd.ProcessState)
		}
		_, err := d.state()
		return err
	})
}

// launch starts podd and does not wait for a response.
func (d *daemon) launch() {
	d.t.Helper()
	if d.proc != nil && d.proc.running() {
		d.t.Fatal("podd is already running")
	}
	log, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close() // podd has its own copy of the file descriptor
	cmd := exec.Command(binary, d.flags()...)
	if d.hostname != "" {
		named := `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`
		cmd = exec.Command("unshare", append([]string{"--uts", "sh", "-c", named, d.hostname, binary}, d.flags()...)...)
	}
	if d.netns != "" { // nsenter replaces itself by podd, which then has the process ID of nsenter
		cmd = exec.Command("nsenter", append([]string{"--net=" + d.netns, "--", binary}, d.flags()...)...)
	}
	if d.noInotify {
		cmd = withoutInotify(d.t, cmd)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(cmd.Environ(), d.env...)
	if d.proc, err = launch(cmd); err != nil {
		d.t.Fatal(err)
	}
}

// kill kills podd with SIGKILL and waits until it has exited.
func (d *daemon) kill() { d.proc.signal(syscall.SIGKILL) }

// crash kills podd and starts it again.
func (d *daemon) crash() {
	d.t.Helper()
	d.kill()
	d.start()
}

// verb runs a podd command, which must succeed, and returns its stdout and stderr.
func (d *daemon) verb(words ...string) (stdout, stderr string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("podd %s: %v: %s", strings.Join(words, " "), err, errs.String())
	}
	return out.String(), errs.String()
}

// eventually polls until check returns nil. After patience the test fails with the last error.
func (d *daemon) eventually(condition string, check func() error) {
	d.t.Helper()
	harness.Eventually(d.t, patience, condition, check)
}

// within is like eventually, with another limit.
func (d *daemon) within(limit time.Duration, condition string, check func() error) {
	d.t.Helper()
	harness.Eventually(d.t, limit, condition, check)
}
