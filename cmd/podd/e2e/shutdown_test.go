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

// shutdownConfig contains the grace periods of a node shutdown: 40 seconds for pods with priority 0
// and above, 30 seconds for those with priority 1000 and above, and 20 seconds for system pods. After
// a grace period, podd stops the next pods even if the previous pods have not stopped. Therefore the
// periods are longer than pods need on a slow host.
const shutdownConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 40}
- {priority: 1000, shutdownGracePeriodSeconds: 30}
- {priority: 2000000000, shutdownGracePeriodSeconds: 20}
`

// priorityPod returns a pod with a priority, a grace period and a script.
func (d *daemon) priorityPod(name string, priority int32, class string, grace int64, script string) *v1.Pod {
	p := d.pod(name, shell("main", script))
	p.Spec.TerminationGracePeriodSeconds, p.Spec.PriorityClassName = &grace, class
	if class == "" {
		p.Spec.Priority = &priority
	}
	return p
}

// startForShutdown starts a podd with three pods of three priorities and a finished job.
func startForShutdown(t *testing.T) *daemon {
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
		d.priorityPod("low", 0, "", 60, serve("low")),
		d.priorityPod("mid", 1500, "", 5, ignoreTerm("mid")),
		d.priorityPod("system", 0, "system-node-critical", 60, serve("system")),
		job,
	)
	d.untilNotedUnordered("low runs", "mid runs", "system runs")
	d.until("the job is in podd's phase \"rest\"", func(v *server.View) error {
		if p := v.Pod(server.Key{Namespace: "default", Name: "job-" + d.host}); p == nil || p.Phase != "rest" {
			return fmt.Errorf("got pod %+v, want one in the phase \"rest\"", p)
		}
		return nil
	})
	return d
}

// checkPhase returns an error unless a pod has the phase and the reason.
func (d *daemon) checkPhase(v *server.View, name string, phase v1.PodPhase, reason string) error {
	p := v.Pod(server.Key{Namespace: "default", Name: name + "-" + d.host})
	if p == nil {
		return fmt.Errorf("got no pod %s, want one", name)
	}
	if s := p.Pod.Status; s.Phase != phase || s.Reason != reason {
		return fmt.Errorf("pod %s: got phase %s, reason %q and message %q, want phase %s and reason %q", name, s.Phase, s.Reason, s.Message, phase, reason)
	}
	return nil
}

// checkShutdownPhases returns an error unless the pods have the phases and reasons that a node
// shutdown sets.
func (d *daemon) checkShutdownPhases(v *server.View) error {
	for _, name := range []string{"low", "mid", "system"} {
		if err := d.checkPhase(v, name, v1.PodFailed, "Terminated"); err != nil {
			return err
		}
	}
	return d.checkPhase(v, "job", v1.PodSucceeded, "")
}

// TestShutdown checks that pods are stopped in the order of their priorities and do not start
// when podd is restarted. After a reboot they must run again, except for the finished job.
func TestShutdown(t *testing.T) {
	t.Parallel()
	d := startForShutdown(t)
	_, stderr := d.verb("shutdown")
	if !strings.Contains(stderr, "\npodd: 3 pods stopped in ") || !strings.Contains(stderr, "; no pod starts before the next boot") {
		t.Errorf("podd shutdown: got stderr %q, want %q and %q in it", stderr, "\npodd: 3 pods stopped in ", "; no pod starts before the next boot")
	}
	want := []string{"low TERM", "mid TERM", "system TERM"}
	ends := slices.DeleteFunc(d.notes(), func(l string) bool { return strings.HasSuffix(l, " runs") })
	if !slices.Equal(ends, want) {
		t.Errorf("order in which the pods were stopped: got %q, want %q", ends, want)
	}
	d.until("all pods are terminated", func(v *server.View) error {
		if !v.ShuttingDown {
			return fmt.Errorf("shutting down: got false, want true")
		}
		return d.checkShutdownPhases(v)
	})
	list, stderr := d.verb("ps")
	if strings.Count(list, "Terminated") != 3 || !strings.Contains(stderr, "the node is shutting down") {
		t.Errorf("podd ps: got\n%s%s, want \"Terminated\" three times in stdout and %q in stderr", list, stderr, "the node is shutting down")
	}
	if node, _ := d.verb("get", "node", "-o", "json"); !strings.Contains(node, "node is shutting down") {
		t.Errorf("podd get node: got\n%s, want %q in it", node, "node is shutting down")
	}
	if events, _ := d.verb("events"); !strings.Contains(events, "Shutdown manager detected shutdown event") {
		t.Errorf("podd events: got\n%s, want %q in it", events, "Shutdown manager detected shutdown event")
	}
	// After a restart of podd no pod starts, not even the pod of a new manifest.
	d.crash()
	d.apply(d.pod("new", shell("main", serve("new"))))
	d.until("pod new waits because of the shutdown", func(v *server.View) error {
		if err := d.checkShutdownPhases(v); err != nil {
			return err
		}
		return d.checkPhase(v, "new", v1.PodPending, "NodeShutdown")
	})
	if runs := d.notes(); slices.Contains(runs, "new runs") || len(runs) != 6 {
		t.Errorf("after a restart of podd during the shutdown: got the notes %q, want only the 6 from before", runs)
	}
	d.kill()
	d.simulateReboot()
	d.start()
	d.until("the pods run", func(v *server.View) error {
		for _, name := range []string{"low", "mid", "system", "new"} {
			if err := d.checkPhase(v, name, v1.PodRunning, ""); err != nil {
				return err
			}
		}
		return d.checkPhase(v, "job", v1.PodSucceeded, "")
	})
	d.eventually("each pod has been started again", func() error {
		for line, n := range map[string]int{"low runs": 2, "mid runs": 2, "system runs": 2, "new runs": 1} {
			if got := len(slices.DeleteFunc(d.notes(), func(l string) bool { return l != line })); got != n {
				return fmt.Errorf("got the note %q %d times, want it %d times", line, got, n)
			}
		}
		return nil
	})
}

// simulateReboot changes the boot ID in podd's record of the shutdown. At its next start, podd then
// assumes that the node has been rebooted since the shutdown. podd must not be running.
func (d *daemon) simulateReboot() {
	d.t.Helper()
	path := filepath.Join(d.runDir(), "shutdown.json")
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(text, &stored); err != nil {
		d.t.Fatal(err)
	}
	stored["boot"] = "earlier"
	if text, err = json.Marshal(stored); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// TestShutdown_KilledDaemon kills podd during a node shutdown. After its restart, podd must continue the
// shutdown. All pods must run again after the shutdown is canceled.
func TestShutdown_KilledDaemon(t *testing.T) {
	t.Parallel()
	d := startForShutdown(t)
	slow := d.priorityPod("slow", -5, "", 60, ignoreTerm("slow"))
	d.apply(slow)
	d.untilNote("slow runs")
	done := make(chan struct{})
	go func() { // the request gets no response, because podd is killed
		defer close(done)
		cmd := exec.Command(binary, "shutdown", "--grace=60s")
		cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
		_ = cmd.Run()
	}()
	d.untilNote("slow TERM")
	d.kill()
	<-done
	d.start()
	if _, stderr := d.verb("shutdown", "--grace=1s"); !strings.Contains(stderr, " stopped in ") {
		t.Errorf("podd shutdown: got %q, want %q in it", stderr, " stopped in ")
	}
	d.until("all pods are terminated", d.checkShutdownPhases)
	d.verb("shutdown", "--cancel")
	d.until("all pods run", func(v *server.View) error {
		for _, name := range []string{"low", "mid", "system", "slow"} {
			if err := d.checkPhase(v, name, v1.PodRunning, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if ends := d.notes(); slices.Index(ends, "low TERM") > slices.Index(ends, "mid TERM") || slices.Index(ends, "mid TERM") > slices.Index(ends, "system TERM") {
		t.Errorf("order in which the pods were stopped: got the notes %q, want \"low TERM\", \"mid TERM\" and \"system TERM\" in this order", ends)
	}
}
