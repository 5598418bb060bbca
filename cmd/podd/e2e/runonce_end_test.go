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

// TestRunOnce_PodOrder checks a pod with restartPolicy Always. It must be ready before the other pods
// start, must be stopped after the last of them has finished, and must not affect the exit code.
func TestRunOnce_PodOrder(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	db := d.jobPod("db", always, shell("pg", "trap '"+note("db TERM")+"exit 9' TERM; touch /trace/db; sleep 3600 & wait"))
	db.Spec.InitContainers = []v1.Container{shell("setup", "sleep 0.3; "+note("db setup"))}
	d.runPods(
		d.jobPod("a", never, shell("c", "while [ ! -e /trace/b ]; do sleep 0.1; done; "+note("a ends"))),
		db,
		d.jobPod("b", onFailure, shell("c", note("b begins")+"while [ ! -e /trace/db ]; do sleep 0.1; done; touch /trace/b")),
	).wantExit(0, "exit code 0; stopping db", "ok    db ready in ", ", stopped")
	d.untilNoted("db setup", "b begins", "a ends", "db TERM")
}

func TestRunOnce_OnlyRestartPolicyAlways(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.runPods(d.jobPod("db", always, shell("pg", serve("db")))).wantExit(0, "warning: no pod ends by itself (restartPolicy Always)")
}

// TestRunOnce_Sidecars checks that podd stops the sidecars of a finished pod, and prints the output that
// they write while they stop.
func TestRunOnce_Sidecars(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	p := d.jobPod("job", never, shell("c", "until [ -e /trace/up ]; do sleep 0.1; done; exit 5"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	p.Spec.InitContainers = []v1.Container{sidecar("log", "trap 'echo the last; exit 0' TERM; echo up; touch /trace/up; sleep 3600 & wait")}
	r := d.runPods(p)
	r.wantExit(5, "FAIL  job/c exit 5")
	if r.out.String() != "job/log | up\njob/log | the last\n" {
		t.Errorf("stdout of the run: got %q, want %q", r.out.String(), "job/log | up\njob/log | the last\n")
	}
}

// TestRunOnce_Eviction checks that podd evicts a pod whose termination message exceeds its storage limit,
// and prints the reason.
func TestRunOnce_Eviction(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	c := withStorageLimit(shell("c", "head -c 8388608 /dev/zero >/dev/termination-log; sleep 3600"), "4Mi")
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(65534))}
	d.runPods(d.jobPod("job", never, c)).wantExit(125, "FAIL  job Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. The usage is 8")
}

// TestRunOnce_Interrupt checks that podd stops the pods with their grace period after the first signal,
// and without a grace period after the second one.
func TestRunOnce_Interrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		d := newRunner(t)
		p := d.jobPod("job", never, shell("c", "trap '"+note("TERM")+"echo ended; exit 0' TERM; "+note("runs")+"sleep 3600 & wait"))
		p.Spec.TerminationGracePeriodSeconds = new(int64(20))
		d.writePods("pods", p)
		r := d.startRun(nil, "pods.yaml")
		d.untilNote("runs")
		r.signal(sig)
		r.wantExit(130, "interrupted; stopping job")
		d.untilNoted("runs", "TERM")
		if r.out.String() != "ended\n" {
			t.Errorf("stdout of the run after signal %s: got %q, want %q", sig, r.out.String(), "ended\n")
		}
	}
	d := newRunner(t)
	p := d.jobPod("job", never, shell("c", ignoreTerm("job")))
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

// TestRunOnce_ClosedStdout checks that the run ends and leaves nothing behind if the reader of
// stdout closes the pipe.
func TestRunOnce_ClosedStdout(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.writePods("pods", d.jobPod("job", never, shell("c", "trap 'exit 0' TERM; while :; do echo more; sleep 0.01; done")))
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

// TestRunOnce_ConcurrentRuns checks that five runs of one manifest with a fixed UID do not affect one
// another, nor a daemon that runs a pod with the same name and UID.
func TestRunOnce_ConcurrentRuns(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	mine := d.pod("job", shell("c", serve("daemon")))
	mine.UID = "fixed-uid"
	d.apply(mine)
	d.untilApplied("job")
	was := d.container("job", "c")
	p := d.jobPod("job", never, shell("c", "echo run $N; sleep 1; exit $N"))
	p.UID = "fixed-uid"
	if err := os.WriteFile(d.filePath("run.yaml"), []byte(manifestText(d, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	var runs []*onceRun
	for n := range 5 {
		runs = append(runs, d.startRun(nil, "-e", fmt.Sprint("N=", n), d.filePath("run.yaml")))
	}
	for n, r := range runs {
		r.wait()
		if code := r.cmd.ProcessState.ExitCode(); code != n || r.out.String() != fmt.Sprintf("run %d\n", n) {
			t.Errorf("run %d: got exit code %d, stdout %q, want code %d and one line of stdout; stderr:\n%s", n, code, r.out.String(), n, r.err.String())
		}
	}
	if now := d.container("job", "c"); now != was {
		t.Errorf("container of the daemon's pod: got %+v, want %+v", now, was)
	}
	d.remove("job")
	d.untilGone("job")
	runs[0].wantNothingLeft()
}

// TestRunOnce_AfterKill checks that a run or a daemon with the same root directory removes the pod
// and the files of a killed run. Other runs in progress must not be affected.
func TestRunOnce_AfterKill(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"run", "daemon"} {
		t.Run(next, func(t *testing.T) {
			d := newRunner(t)
			killed := d.jobPod("killed", never, shell("c", ignoreTerm("killed")))
			killed.Spec.TerminationGracePeriodSeconds = new(int64(3600))
			d.writePods("killed", killed)
			d.writePods("lives", d.jobPod("lives", never, shell("c", note("lives")+"while [ ! -e /trace/enough ]; do sleep 0.1; done; exit 8")))
			r, lives := d.startRun(nil, "killed.yaml"), d.startRun(nil, "lives.yaml")
			d.untilNote("killed runs")
			d.untilNote("lives")
			r.signal(syscall.SIGKILL)
			if next == "run" {
				d.writePods("next", d.jobPod("next", never, shell("c", "exit 0")))
				d.run("next.yaml").wait()
			} else {
				d.start()
			}
			d.eventually("the sandbox of the killed run is removed", func() error {
				left, err := d.runLeftovers()
				if err == nil && strings.Contains(strings.Join(left, "\n"), "sandbox of killed-") {
					err = fmt.Errorf("got leftovers of the killed run, want none: %s", strings.Join(left, "\n"))
				}
				return err
			})
			if !lives.running() {
				t.Error("run of pod lives: got it stopped, want it to keep running")
			}
			d.touch("enough")
			lives.wait()
			if code := lives.cmd.ProcessState.ExitCode(); code != 8 {
				t.Errorf("run of pod lives: got exit code %d, want 8; stderr:\n%s", code, lives.err.String())
			}
			lives.wantNothingLeft()
		})
	}
}
