//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// shutdownConfig gives ordinary pods 4 seconds, important ones 3, the system's 2.
const shutdownConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 4}
- {priority: 1000, shutdownGracePeriodSeconds: 3}
- {priority: 2000000000, shutdownGracePeriodSeconds: 2}
`

// ofPriority is a pod with a grace of its own, and noted ends.
func (d *daemon) ofPriority(name string, priority int32, class string, grace int64, script string) *v1.Pod {
	p := d.pod(name, shell("main", script))
	p.Spec.TerminationGracePeriodSeconds, p.Spec.PriorityClassName = &grace, class
	if class == "" {
		p.Spec.Priority = &priority
	}
	return p
}

// beginShutdown runs three pods of three priorities and a job that has finished.
func beginShutdown(t *testing.T) *daemon {
	d := newDaemon(t, shared)
	config := filepath.Join(d.dir, "config.yaml")
	if err := os.WriteFile(config, []byte(shutdownConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	d.args = append(d.args, "--config", config)
	d.start()
	job := d.pod("job", shell("main", "exit 0"))
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	d.apply(
		d.ofPriority("low", 0, "", 60, serve("low")),
		d.ofPriority("mid", 1500, "", 1, stubborn("mid")),
		d.ofPriority("system", 0, "system-node-critical", 60, serve("system")),
		job,
	)
	d.untilNotedInAnyOrder("low runs", "mid runs", "system runs")
	d.until("the job rests", func(v *server.View) error {
		if p := v.Pod(server.Key{Namespace: "default", Name: "job-" + d.host}); p == nil || p.Phase != "rest" {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
	return d
}

// phase tells whether a pod has a phase and a reason.
func (d *daemon) phase(v *server.View, name string, phase v1.PodPhase, reason string) error {
	p := v.Pod(server.Key{Namespace: "default", Name: name + "-" + d.host})
	if p == nil {
		return fmt.Errorf("%s is not there", name)
	}
	if s := p.Pod.Status; s.Phase != phase || s.Reason != reason {
		return fmt.Errorf("%s is %s, reason %q: %s", name, s.Phase, s.Reason, s.Message)
	}
	return nil
}

// allTerminated tells whether the pods show what a shutdown made of them.
func (d *daemon) allTerminated(v *server.View) error {
	for _, name := range []string{"low", "mid", "system"} {
		if err := d.phase(v, name, v1.PodFailed, "Terminated"); err != nil {
			return err
		}
	}
	return d.phase(v, "job", v1.PodSucceeded, "")
}

// TestShutdown: pods end by priority and stay so for a podd that is started again;
// after the boot they run, and what had finished does not.
func TestShutdown(t *testing.T) {
	t.Parallel()
	d := beginShutdown(t)
	_, talk := d.verb("shutdown")
	if !strings.Contains(talk, "\npodd: 3 pods stopped in ") || !strings.Contains(talk, "; no pod starts until the node has booted") {
		t.Errorf("podd shutdown says %q", talk)
	}
	want := []string{"low TERM", "mid TERM", "system TERM"}
	ends := slices.DeleteFunc(d.journal(), func(l string) bool { return strings.HasSuffix(l, " runs") })
	if !slices.Equal(ends, want) {
		t.Errorf("they ended in the order %q, want %q", ends, want)
	}
	d.until("all show it", func(v *server.View) error {
		if !v.ShuttingDown {
			return fmt.Errorf("podd does not show that the machine shuts down")
		}
		return d.allTerminated(v)
	})
	list, talk := d.verb("ps")
	if strings.Count(list, "Terminated") != 3 || !strings.Contains(talk, "the node is shutting down") {
		t.Errorf("podd ps:\n%s%s", list, talk)
	}
	if node, _ := d.verb("get", "node", "-o", "json"); !strings.Contains(node, "node is shutting down") {
		t.Errorf("the node does not show it:\n%s", node)
	}
	if told, _ := d.verb("events"); !strings.Contains(told, "Shutdown manager detected shutdown event") {
		t.Errorf("there is no event:\n%s", told)
	}
	// Neither a podd that is started again nor a new manifest runs anything.
	d.crash()
	d.apply(d.pod("new", shell("main", serve("new"))))
	d.until("the new pod is refused", func(v *server.View) error {
		if err := d.allTerminated(v); err != nil {
			return err
		}
		return d.phase(v, "new", v1.PodPending, "NodeShutdown")
	})
	if runs := d.journal(); slices.Contains(runs, "new runs") || len(runs) != 6 {
		t.Errorf("something ran: %q", runs)
	}
	d.kill()
	d.boot()
	d.start()
	d.until("the pods run", func(v *server.View) error {
		for _, name := range []string{"low", "mid", "system", "new"} {
			if err := d.phase(v, name, v1.PodRunning, ""); err != nil {
				return err
			}
		}
		return d.phase(v, "job", v1.PodSucceeded, "")
	})
	d.eventually("each has run once more", func() error {
		for line, n := range map[string]int{"low runs": 2, "mid runs": 2, "system runs": 2, "new runs": 1} {
			if got := len(slices.DeleteFunc(d.journal(), func(l string) bool { return l != line })); got != n {
				return fmt.Errorf("%s %d times", line, got)
			}
		}
		return nil
	})
}

// boot makes the shutdown one of an earlier life of the machine.
func (d *daemon) boot() {
	d.t.Helper()
	path := filepath.Join(d.runDir(), "shutdown.json")
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	var known map[string]any
	if err := json.Unmarshal(text, &known); err != nil {
		d.t.Fatal(err)
	}
	known["boot"] = "earlier"
	if text, err = json.Marshal(known); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// TestShutdownGoesOn: a podd that is killed amid it goes on where it was, and a
// shutdown that is cancelled has all run again.
func TestShutdownGoesOn(t *testing.T) {
	t.Parallel()
	d := beginShutdown(t)
	slow := d.ofPriority("slow", -5, "", 60, stubborn("slow"))
	d.apply(slow)
	d.untilJournal("slow runs")
	done := make(chan struct{})
	go func() { // its answer is lost with the podd that is killed
		defer close(done)
		cmd := exec.Command(binary, "shutdown", "--grace=20s")
		cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
		_ = cmd.Run()
	}()
	d.untilJournal("slow TERM")
	d.kill()
	<-done
	d.start()
	if _, talk := d.verb("shutdown", "--grace=1s"); !strings.Contains(talk, " stopped in ") {
		t.Errorf("podd shutdown says %q", talk)
	}
	d.until("all have ended", d.allTerminated)
	d.verb("shutdown", "--cancel")
	d.until("all run", func(v *server.View) error {
		for _, name := range []string{"low", "mid", "system", "slow"} {
			if err := d.phase(v, name, v1.PodRunning, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if ends := d.journal(); slices.Index(ends, "low TERM") > slices.Index(ends, "mid TERM") || slices.Index(ends, "mid TERM") > slices.Index(ends, "system TERM") {
		t.Errorf("they ended in another order: %q", ends)
	}
}
