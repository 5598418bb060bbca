//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestOnceOrder checks that a pod with restartPolicy Always must be ready before the others
// start, is stopped after the last of them, and does not determine the exit code.
func TestOnceOrder(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	db := d.job("db", always, shell("pg", "trap '"+note("db TERM")+"exit 9' TERM; touch /trace/db; sleep 3600 & wait"))
	db.Spec.InitContainers = []v1.Container{shell("setup", "sleep 0.3; "+note("db setup"))}
	d.runPods(
		d.job("a", never, shell("c", "while [ ! -e /trace/b ]; do sleep 0.1; done; "+note("a ends"))),
		db,
		d.job("b", onFailure, shell("c", note("b begins")+"while [ ! -e /trace/db ]; do sleep 0.1; done; touch /trace/b")),
	).wantExit(0, "exit code 0; stopping db", "ok    db ready in ", ", stopped")
	d.untilNoted("db setup", "b begins", "a ends", "db TERM")
}

func TestOnce_OnlyRestartPolicyAlways(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.runPods(d.job("db", always, shell("pg", serve("db")))).wantExit(0, "warning: no pod ends by itself (restartPolicy Always)")
}

// TestOnceSidecarsEnd checks that sidecars stop with their pod, and that the output they write
// then is printed.
func TestOnceSidecarsEnd(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	p := d.job("job", never, shell("c", "until [ -e /trace/up ]; do sleep 0.1; done; exit 5"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	p.Spec.InitContainers = []v1.Container{sidecar("log", "trap 'echo the last; exit 0' TERM; echo up; touch /trace/up; sleep 3600 & wait")}
	r := d.runPods(p)
	r.wantExit(5, "FAIL  job/c exit 5")
	if r.out.String() != "job/log | up\njob/log | the last\n" {
		t.Errorf("stdout: got %q, want %q", r.out.String(), "job/log | up\njob/log | the last\n")
	}
}

// TestOnceEvicted checks that a pod that exceeds its storage limit, here by its termination
// message, is evicted and that the reason is shown.
func TestOnceEvicted(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	c := withStorageLimit(shell("c", "head -c 8388608 /dev/zero >/dev/termination-log; sleep 3600"), "4Mi")
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(65534))}
	d.runPods(d.job("job", never, c)).wantExit(125, "FAIL  job Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. It holds 8")
}

// TestOnceInterrupted checks that the first signal stops the pods with their grace period, and
// the second one without.
func TestOnceInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		d := newRunner(t)
		p := d.job("job", never, shell("c", "trap '"+note("TERM")+"echo ended; exit 0' TERM; "+note("runs")+"sleep 3600 & wait"))
		p.Spec.TerminationGracePeriodSeconds = new(int64(20))
		d.writePods("pods", p)
		r := d.startRun(nil, "pods.yaml")
		d.untilNote("runs")
		r.signal(sig)
		r.wantExit(130, "interrupted; stopping job")
		d.untilNoted("runs", "TERM")
		if r.out.String() != "ended\n" {
			t.Errorf("stdout: got %q, want ended", r.out.String())
		}
	}
	d := newRunner(t)
	p := d.job("job", never, shell("c", stubborn("job")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	d.writePods("pods", p)
	r := d.startRun(nil, "pods.yaml")
	d.untilNote("job runs")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.untilNote("job TERM")
	r.signal(syscall.SIGINT)
	r.wantExit(130)
}

// TestOnceWithoutReader checks that the run ends and leaves nothing behind when the reader of
// stdout is closed.
func TestOnceWithoutReader(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.job("job", never, shell("c", "trap 'exit 0' TERM; while :; do echo more; sleep 0.01; done")))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := d.startRunTo(write, "pods.yaml")
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	r.wantExit(125, "writing stdout: broken pipe")
}

// TestOnceParallel checks that five runs of one manifest with a fixed UID and a daemon with the
// same pod do not affect one another.
func TestOnceParallel(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	mine := d.pod("job", shell("c", serve("daemon")))
	mine.UID = "fixed-uid"
	d.apply(mine)
	d.untilApplied("job")
	was := d.container("job", "c")
	p := d.job("job", never, shell("c", "echo run $N; sleep 1; exit $N"))
	p.UID = "fixed-uid"
	if err := os.WriteFile(d.path("run.yaml"), []byte(text(d, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	var runs []*onceRun
	for n := range 5 {
		runs = append(runs, d.startRun(nil, "-e", fmt.Sprint("N=", n), d.path("run.yaml")))
	}
	for n, r := range runs {
		r.wait()
		if code := r.cmd.ProcessState.ExitCode(); code != n || r.out.String() != fmt.Sprintf("run %d\n", n) {
			t.Errorf("run %d: got exit code %d, stdout %q, stderr:\n%s", n, code, r.out.String(), r.err.String())
		}
	}
	if now := d.container("job", "c"); now != was {
		t.Errorf("pod of the daemon: got %+v, want %+v", now, was)
	}
	d.remove("job")
	d.untilGone("job")
	runs[0].wantNothingLeft()
}

// TestOnceKilled checks that the next podd with the same root directory, a run or a daemon,
// removes what a killed run left behind, and does not touch runs that are still running.
func TestOnceKilled(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"run", "daemon"} {
		t.Run(next, func(t *testing.T) {
			d := newRunner(t)
			killed := d.job("killed", never, shell("c", stubborn("killed")))
			killed.Spec.TerminationGracePeriodSeconds = new(int64(3600))
			d.writePods("killed", killed)
			d.writePods("lives", d.job("lives", never, shell("c", note("lives")+"while [ ! -e /trace/enough ]; do sleep 0.1; done; exit 8")))
			r, lives := d.startRun(nil, "killed.yaml"), d.startRun(nil, "lives.yaml")
			d.untilNote("killed runs")
			d.untilNote("lives")
			r.signal(syscall.SIGKILL)
			if next == "run" {
				d.writePods("next", d.job("next", never, shell("c", "exit 0")))
				d.run("next.yaml").wait()
			} else {
				d.start()
			}
			d.eventually("the killed run is removed", func() error {
				left, err := d.runLeftovers()
				if err == nil && strings.Contains(strings.Join(left, "\n"), "sandbox of killed-") {
					err = fmt.Errorf("got leftovers %s", strings.Join(left, "\n"))
				}
				return err
			})
			if !lives.running() {
				t.Error("the other run was stopped")
			}
			d.touch("enough")
			lives.wait()
			if code := lives.cmd.ProcessState.ExitCode(); code != 8 {
				t.Errorf("the other run: got exit code %d, want 8\n%s", code, lives.err.String())
			}
			lives.wantNothingLeft()
		})
	}
}
