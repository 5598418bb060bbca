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

	"podd/runtime/runtimetest/stack"
)

// patience is how long a test waits for what must come: a minute, or
// $PODD_E2E_PATIENCE on a machine that is slow.
var patience = func() time.Duration {
	if given, err := time.ParseDuration(os.Getenv("PODD_E2E_PATIENCE")); err == nil {
		return given
	}
	return time.Minute
}()

// poll is how often is asked where nothing is announced.
const poll = 10 * time.Millisecond

// daemon is a podd with everything of its own but the runtime. Its methods
// fail the test; they are for the test's goroutine.
type daemon struct {
	t        testing.TB
	on       *stack.Stack
	node     string // different for each daemon of a test binary
	host     string // the node's name, node unless changed before the start
	hostname string // of the machine, from which podd takes the node's name; "": host is given
	dir      string
	rootDir  string // the root directory; "" is one in dir
	endpoint string
	args     []string // beyond those that all have
	env      []string // beyond the test's own
	api      int      // the port of the kubelet's API; 0: off
	netns    string   // path of its network namespace; "": that of the test
	sources  bool     // that it has no other source than manifests()
	proc     *process // nil: never started
	closers  []func() // called when podd has ended

	noInotify bool // start it as if all inotify instances were in use
}

var daemons atomic.Int64

// newDaemon prepares a podd on a stack and starts nothing. It is ended with
// the test; what it left behind is an error, and removed.
func newDaemon(t testing.TB, on *stack.Stack, args ...string) *daemon {
	t.Helper()
	node := "n" + strconv.FormatInt(daemons.Add(1), 10)
	// Below the stack's own directory, so that it takes all of it away with
	// itself, mounts too, also when this process is killed.
	d := &daemon{
		t: t, on: on, node: node, host: node, args: args, endpoint: on.Endpoint(), sources: true,
		dir: filepath.Join(on.Dir, "stack", "podd", node),
	}
	for _, dir := range []string{d.manifests(), d.shared()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(d.end)
	return d
}

// begin is newDaemon on the shared stack, started.
func begin(t testing.TB, args ...string) *daemon {
	t.Helper()
	d := newDaemon(t, shared, args...)
	d.start()
	return d
}

func (d *daemon) root() string      { return cmp.Or(d.rootDir, filepath.Join(d.dir, "root")) }
func (d *daemon) runDir() string    { return filepath.Join(d.dir, "run") }
func (d *daemon) logs() string      { return filepath.Join(d.dir, "logs") }
func (d *daemon) manifests() string { return filepath.Join(d.dir, "manifests") }

// shared is a directory that the pods of a test see as /trace.
func (d *daemon) shared() string { return filepath.Join(d.dir, "trace") }

// cgroup is the parent of its pods' cgroups.
func (d *daemon) cgroup() string { return d.on.CgroupParent() + "/" + d.node }

func (d *daemon) output() string { return filepath.Join(d.dir, "podd.log") }

func (d *daemon) flags() []string {
	flags := []string{
		"--root-dir", d.root(), "--run-dir", d.runDir(), "--pod-logs-dir", d.logs(),
		"--container-runtime-endpoint", d.endpoint,
		"--cgroup-root", d.cgroup(), "--healthz-port", "0", "--v", "4",
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
		flags = append(flags, "--pod-manifest-path", d.manifests())
	}
	return append(flags, d.args...)
}

// start runs podd and returns when it answers.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	d.eventually("podd answers", func() error {
		if !d.proc.running() {
			return fmt.Errorf("it ended: %s", d.proc.cmd.ProcessState)
		}
		_, err := d.state()
		return err
	})
}

// launch runs podd.
func (d *daemon) launch() {
	d.t.Helper()
	if d.proc != nil && d.proc.running() {
		d.t.Fatal("podd runs already")
	}
	log, err := os.OpenFile(d.output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close() // podd has its own
	cmd := exec.Command(binary, d.flags()...)
	if d.hostname != "" {
		named := `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`
		cmd = exec.Command("unshare", append([]string{"--uts", "sh", "-c", named, d.hostname, binary}, d.flags()...)...)
	}
	if d.netns != "" { // nsenter becomes podd, with the same process ID
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

// kill ends podd as a power cut does.
func (d *daemon) kill() { d.proc.signal(syscall.SIGKILL) }

// crash is kill and start.
func (d *daemon) crash() {
	d.t.Helper()
	d.kill()
	d.start()
}

// verb runs a verb of podd's command line and returns its outputs.
func (d *daemon) verb(words ...string) (stdout, stderr string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("podd %s: %v: %s", strings.Join(words, " "), err, talk.String())
	}
	return out.String(), talk.String()
}

// eventually asks until what is true, and fails with the last reason why not.
func (d *daemon) eventually(what string, is func() error) {
	d.t.Helper()
	d.within(patience, what, is)
}

func (d *daemon) within(limit time.Duration, what string, is func() error) {
	d.t.Helper()
	again := time.NewTicker(poll)
	defer again.Stop()
	for deadline := time.Now().Add(limit); ; <-again.C {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("waiting until %s: %v", what, err)
		}
	}
}
