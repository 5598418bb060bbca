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

// TestOnceOrder: what goes on is ready before the others start, is ended after
// the last of them, and never sets the code.
func TestOnceOrder(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	db := d.job("db", always, shell("pg", "trap '"+note("db TERM")+"exit 9' TERM; touch /trace/db; sleep 3600 & wait"))
	db.Spec.InitContainers = []v1.Container{shell("setup", "sleep 0.3; "+note("db setup"))}
	d.runPods(
		d.job("a", never, shell("c", "while [ ! -e /trace/b ]; do sleep 0.1; done; "+note("a ends"))),
		db,
		d.job("b", onFailure, shell("c", note("b begins")+"while [ ! -e /trace/db ]; do sleep 0.1; done; touch /trace/b")),
	).ends(0, "exit code 0; ending db", "ok    db ready in ", ", stopped")
	d.untilNoted("db setup", "b begins", "a ends", "db TERM")
}

func TestOnceOnlySuchThatGoOn(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	d.runPods(d.job("db", always, shell("pg", serve("db")))).ends(0, "warning: no pod ends by itself (restartPolicy Always)")
}

// TestOnceSidecarsEnd with the pod, and what they say then arrives.
func TestOnceSidecarsEnd(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	p := d.job("job", never, shell("c", "until [ -e /trace/up ]; do sleep 0.1; done; exit 5"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	p.Spec.InitContainers = []v1.Container{sidecar("log", "trap 'echo the last; exit 0' TERM; echo up; touch /trace/up; sleep 3600 & wait")}
	r := d.runPods(p)
	r.ends(5, "FAIL  job/c exit 5")
	if r.out.String() != "job/log | up\njob/log | the last\n" {
		t.Errorf("stdout %q", r.out.String())
	}
}

// TestOnceEvicted checks that a pod that exceeds its storage limit, here by its termination
// message, is evicted and the reason is shown.
func TestOnceEvicted(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	c := withStorageLimit(shell("c", "head -c 8388608 /dev/zero >/dev/termination-log; sleep 3600"), "4Mi")
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(65534))}
	d.runPods(d.job("job", never, c)).ends(125, "FAIL  job Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. It holds 8")
}

// TestOnceInterrupted: the first signal ends with grace, the second without.
func TestOnceInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		d := withRuns(t)
		p := d.job("job", never, shell("c", "trap '"+note("TERM")+"echo ended; exit 0' TERM; "+note("runs")+"sleep 3600 & wait"))
		p.Spec.TerminationGracePeriodSeconds = new(int64(20))
		d.writePods("pods", p)
		r := d.beginRun(nil, "pods.yaml")
		d.untilNotedAny("runs")
		r.signal(sig)
		r.ends(130, "interrupted; ending job")
		d.untilNoted("runs", "TERM")
		if r.out.String() != "ended\n" {
			t.Errorf("stdout %q", r.out.String())
		}
	}
	d := withRuns(t)
	p := d.job("job", never, shell("c", stubborn("job")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	d.writePods("pods", p)
	r := d.beginRun(nil, "pods.yaml")
	d.untilNotedAny("job runs")
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.untilNotedAny("job TERM")
	r.signal(syscall.SIGINT)
	r.ends(130)
}

// TestOnceWithoutReader: a reader that went away ends the run, and nothing of it
// stays.
func TestOnceWithoutReader(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	d.writePods("pods", d.job("job", never, shell("c", "trap 'exit 0' TERM; while :; do echo more; sleep 0.01; done")))
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := d.beginRunTo(write, "pods.yaml")
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	r.ends(125, "writing stdout: broken pipe")
}

// TestOnceSideBySide: five runs of one manifest, with a fixed uid, and a daemon
// with the same pod do not disturb one another.
func TestOnceSideBySide(t *testing.T) {
	t.Parallel()
	d := begin(t)
	mine := d.pod("job", shell("c", serve("daemon")))
	mine.UID = "fixed-uid"
	d.apply(mine)
	d.untilApplied("job")
	was := d.runs("job", "c")
	p := d.job("job", never, shell("c", "echo run $N; sleep 1; exit $N"))
	p.UID = "fixed-uid"
	if err := os.WriteFile(d.path("run.yaml"), []byte(text(d, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	var runs []*oneRun
	for n := range 5 {
		runs = append(runs, d.beginRun(nil, "-e", fmt.Sprint("N=", n), d.path("run.yaml")))
	}
	for n, r := range runs {
		r.wait()
		if code := r.cmd.ProcessState.ExitCode(); code != n || r.out.String() != fmt.Sprintf("run %d\n", n) {
			t.Errorf("run %d: exit code %d, stdout %q, stderr:\n%s", n, code, r.out.String(), r.err.String())
		}
	}
	if now := d.runs("job", "c"); now != was {
		t.Errorf("the daemon's pod is %+v, was %+v", now, was)
	}
	d.remove("job")
	d.untilGone("job")
	runs[0].leavesNothing()
}

// TestOnceKilled: what a killed run left, the next podd on the root removes,
// another run or a daemon, and the runs that live are left alone.
func TestOnceKilled(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"run", "daemon"} {
		t.Run(next, func(t *testing.T) {
			d := withRuns(t)
			killed := d.job("killed", never, shell("c", stubborn("killed")))
			killed.Spec.TerminationGracePeriodSeconds = new(int64(3600))
			d.writePods("killed", killed)
			d.writePods("lives", d.job("lives", never, shell("c", note("lives")+"while [ ! -e /trace/enough ]; do sleep 0.1; done; exit 8")))
			r, lives := d.beginRun(nil, "killed.yaml"), d.beginRun(nil, "lives.yaml")
			d.untilNotedAny("killed runs")
			d.untilNotedAny("lives")
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
					err = fmt.Errorf("left over: %s", strings.Join(left, "\n"))
				}
				return err
			})
			if !lives.running() {
				t.Error("the run that lives was ended")
			}
			d.tellPods("enough")
			lives.wait()
			if code := lives.cmd.ProcessState.ExitCode(); code != 8 {
				t.Errorf("the run that lives: exit code %d\n%s", code, lives.err.String())
			}
			lives.leavesNothing()
		})
	}
}
