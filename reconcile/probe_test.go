package reconcile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/runtime/runtimetest"
)

const probed = `containers:
- name: app
  image: "web:1"
  env: [{name: WORD, value: hello}]
  startupProbe: {exec: {command: [started, $(WORD), $(OTHER)]}, periodSeconds: 1}
  livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, terminationGracePeriodSeconds: 3}
  readinessProbe: {exec: {command: [ready]}, periodSeconds: 10}`

// commands configures the results of commands in containers.
type commands struct {
	mu      sync.Mutex                     // guards all following fields
	results map[string]runtimetest.Program // the behavior of a command, by its first word; a command without an entry succeeds
	ran     []string                       // the commands that were run and that takeCount has not counted yet
}

func newCommands(m *machine) *commands {
	c := &commands{results: map[string]runtimetest.Program{}}
	m.OnExec(func(_ string, command []string) runtimetest.Program {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ran = append(c.ran, strings.Join(command, " "))
		if p, found := c.results[command[0]]; found {
			return p
		}
		return runtimetest.Program{ExitsByItself: true}
	})
	return c
}

func (c *commands) setResult(command string, p runtimetest.Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[command] = p
}

func (c *commands) succeed(command string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.results, command)
}

// takeCount returns how often a command was run since the last call.
func (c *commands) takeCount(command string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.ran)
	c.ran = slices.DeleteFunc(c.ran, func(line string) bool { return strings.HasPrefix(line, command) })
	return n - len(c.ran)
}

var bad = runtimetest.Program{ExitsByItself: true, ExitCode: 1, Output: "\x1b[1mno disk\nmore\n"}

// probeState returns the fields started and ready of the published container status and the status
// of the condition Ready, separated by spaces.
func (m *machine) probeState(name string) string {
	r := m.report(name)
	if r == nil || r.Pod == nil || len(r.Pod.Status.ContainerStatuses) == 0 {
		return "unknown"
	}
	c := r.Pod.Status.ContainerStatuses[0]
	condition := v1.ConditionUnknown
	for _, one := range r.Pod.Status.Conditions {
		if one.Type == v1.PodReady {
			condition = one.Status
		}
	}
	return fmt.Sprintf("%v %v %s", *c.Started, c.Ready, condition)
}

func (m *machine) wantProbeState(name, want string) {
	m.t.Helper()
	if got := m.probeState(name); got != want {
		m.t.Fatalf("pod %s: started, ready and condition Ready: got %s, want %s\n%s", name, got, want, m.state())
	}
}

// TestProbes checks that a container starts up, becomes ready, is unready for a while,
// and is restarted when its liveness probe fails.
func TestProbes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var log bytes.Buffer
		m.log = slog.NewTextHandler(&log, nil)
		c := newCommands(m)
		c.setResult("started", bad)
		c.setResult("ready", bad)
		m.start()
		m.setPods(pod(t, "web", probed))
		m.advance(1500 * time.Millisecond)
		m.wantProbeState("web", "false false False")
		if got := c.ran[0]; got != "started hello $(OTHER)" {
			t.Errorf("command of the probe: got %q, want the expanded variable", got)
		}
		c.succeed("started")
		m.advance(2 * time.Second)
		m.wantProbeState("web", "true false False")
		if got := m.report("web").Decision.Steps[0].Why; got != "readiness probe failed: exit 1: [1mno disk" {
			t.Errorf("reason of the step: got %q, want the output of the probe", got)
		}
		c.succeed("ready")
		m.advance(10 * time.Second)
		m.wantProbeState("web", "true true True")
		if c.takeCount("started"); c.takeCount("alive") < 2 {
			t.Error("commands of the liveness probe after the startup probe has passed: got fewer than 2, want at least 2")
		}

		c.setResult("ready", bad)
		m.advance(21 * time.Second)
		m.wantProbeState("web", "true true True")
		m.advance(10 * time.Second)
		m.wantProbeState("web", "true false False")
		c.succeed("ready")
		m.advance(11 * time.Second)
		m.wantProbeState("web", "true true True")
		if n := c.takeCount("started"); n > 0 {
			t.Errorf("startup probes after the startup: got %d, want none", n)
		}

		m.ForgetCalls()
		c.setResult("alive", runtimetest.Program{ExitsByItself: true, RunDuration: 5 * time.Second}) // too slow
		m.advance(20 * time.Second)
		c.succeed("alive")
		m.wantCalls("StopContainer web/app", "CreateContainer web/app", "StartContainer web/app")
		m.settle()
		m.wantProbeState("web", "true true True")
		m.kill()
		for _, want := range []string{
			`msg="container is unhealthy" pod=default/web container=app rule=NotReady why="readiness probe failed: exit 1: [1mno disk"`,
			`msg="container is healthy again" pod=default/web container=app probe=readiness`,
			`why="liveness probe failed: the command took longer than 1s"`,
		} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("log records with %q: got %d, want 1:\n%s", want, strings.Count(log.String(), want), log.String())
			}
		}
	})
}

// TestProbesAfterRestart checks that a restart of podd changes no readiness and restarts nothing,
// with or without its journal.
func TestProbesAfterRestart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		newCommands(m)
		web := pod(t, "web", probed)
		m.start()
		m.setPods(web)
		m.settle()
		m.wantProbeState("web", "true true True")
		m.kill()
		m.advance(time.Hour)
		m.ForgetCalls()
		first := atomic.Pointer[string]{}
		m.options = func(o *reconcile.Options) {
			publish := o.Publish
			o.Publish = func(c reconcile.Change) {
				publish(c)
				if r := m.report("web"); r != nil && len(r.Observed) > 0 {
					health := m.probeState("web")
					first.CompareAndSwap(nil, &health)
				}
			}
		}
		m.start()
		m.settle()
		if got := *first.Load(); got != "true true True" {
			t.Errorf("first report: started, ready and condition Ready: got %s, want true true True", got)
		}
		m.wantProbeState("web", "true true True")
		m.wantCalls()

		m.kill()
		if err := os.Remove(m.journal(web)); err != nil {
			t.Fatal(err)
		}
		m.start()
		m.advance(100 * time.Millisecond)
		if got := m.probeState("web"); got != "false false False" {
			t.Errorf("first report without a journal: started, ready and condition Ready: got %s, want false false False", got)
		}
		m.settle()
		m.wantProbeState("web", "true true True")
		m.wantCalls()
	})
}

// TestLivenessFailure_Restart checks that a container with a failed liveness probe is stopped,
// even if podd was killed before it could do so.
func TestLivenessFailure_Restart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		m.setPods(pod(t, "web", probed))
		m.settle()
		m.ForgetCalls()
		remove := m.Inject(runtimetest.Fault{Method: "StopContainer", Hangs: true})
		c.setResult("alive", bad)
		m.advance(16 * time.Second)
		m.kill()
		remove()
		c.succeed("alive")
		m.start()
		m.advance(5 * time.Second)
		m.wantCalls("StopContainer web/app", "CreateContainer web/app", "StartContainer web/app")
	})
}

// deaf is the pod probed with two changes: its container ignores the stop signal and stops only at
// the end of the grace period, and the first failed readiness probe makes it unready.
var deaf = strings.NewReplacer(`image: "web:1"`, `image: "web:1"
  command: [sleep, inf]`, "periodSeconds: 10", "periodSeconds: 2, failureThreshold: 1").Replace(probed)

// TestReadiness_Stopping checks the probes of a pod that is being stopped. The readiness probe
// continues until its container exits, and no other probe continues. An attempt that is in progress
// does not delay the stop.
func TestReadiness_Stopping(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		m.setPods(pod(t, "web", deaf))
		m.settle()
		m.wantProbeState("web", "true true True")
		m.setPods()
		m.advance(time.Second)
		c.takeCount("")
		m.advance(8 * time.Second)
		m.wantProbeState("web", "true true True")
		if ready, all := c.takeCount("ready"), c.takeCount(""); ready != 4 || all != 0 {
			t.Errorf("commands: got %d of the readiness probe and %d of other probes, want 4 and none", ready, all)
		}
		c.setResult("ready", bad)
		m.advance(3 * time.Second)
		m.wantProbeState("web", "true false False")
		c.succeed("ready")
		m.advance(3 * time.Second)
		m.wantProbeState("web", "true true True")

		m.Inject(runtimetest.Fault{Method: "ExecSync", Hangs: true})
		m.advance(14 * time.Second)
		m.wantProbeState("web", "true true True")
		m.advance(2 * time.Second)
		m.wantState()
	})
}

// TestReadiness_Replaced checks that the readiness probe of the earlier version of an edited pod
// continues, with the manifest of the earlier version.
func TestReadiness_Replaced(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		m.setPods(pod(t, "web", deaf))
		m.settle()
		m.ForgetCalls()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", readinessProbe: {exec: {command: [other]}}}]`))
		m.advance(time.Second)
		c.takeCount("")
		m.advance(20 * time.Second)
		if ready, all := c.takeCount("ready"), c.takeCount(""); ready != 10 || all != 0 {
			t.Errorf("commands: got %d of the readiness probe and %d of other probes, want 10 and none", ready, all)
		}
		m.settle()
		m.wantProbeState("web", "true true True")
		if ready, other := c.takeCount("ready"), c.takeCount("other"); ready > 5 || other == 0 {
			t.Errorf("probes of the removed version: got %d, want at most 5; probes of the new version: got %d, want at least 1", ready, other)
		}
		m.wantCallsWith("RemovePodSandbox web", "StopContainer web/app", "StopPodSandbox web", "RunPodSandbox web", "CreateContainer web/app", "StartContainer web/app")
	})
}

// TestProbes_FailedPod checks that a pod that failed because of its deadline is not probed, and
// that a pod without a manifest is not probed.
func TestProbes_FailedPod(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, m *machine){
		"deadline": func(*testing.T, *machine) {},
		"removed, and podd killed": func(_ *testing.T, m *machine) {
			m.setPods()
			m.advance(time.Second)
			m.kill()
			m.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				c := newCommands(m)
				m.start()
				m.setPods(pod(t, "web", "activeDeadlineSeconds: 20\n"+deaf))
				m.advance(20*time.Second - time.Millisecond)
				end(t, m)
				m.advance(time.Second)
				c.takeCount("")
				m.advance(20 * time.Second)
				if n := c.takeCount(""); n > 0 {
					t.Errorf("probes: got %d, want none", n)
				}
			})
		})
	}
}

// TestProbes_NotCanceled checks that podd does not cancel the command of a probe that the runtime is
// starting when the pod is stopped; see plan.IsCancellable.
func TestProbes_NotCanceled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		m.setPods(pod(t, "web", strings.ReplaceAll(probed, `image: "web:1"`, `image: "web:1"
  command: [sleep, inf]`)))
		m.settle()
		m.wantProbeState("web", "true true True")
		var under atomic.Int32
		m.Inject(runtimetest.Fault{Method: "ExecSync", Delay: time.Second, OnApply: func() { under.Add(1) }})
		c.takeCount("")
		for under.Load() == 0 {
			m.advance(100 * time.Millisecond)
		}
		m.setPods()
		m.advance(5 * time.Second)
		if n := c.takeCount(""); n != int(under.Load()) {
			t.Errorf("completed probes: got %d, want %d", n, under.Load())
		}
	})
}

// TestProbes_SameResult checks that attempts with an unchanged result are not published, logged
// or written, and trigger no observation.
func TestProbes_SameResult(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		lines := &lineCount{}
		m.log = slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})
		published := atomic.Int64{}
		m.options = func(o *reconcile.Options) {
			publish := o.Publish
			o.Publish = func(c reconcile.Change) { published.Add(int64(len(c.Reports))); publish(c) }
		}
		c := newCommands(m)
		m.start()
		var pods []*manifest.Pod
		for i := range 20 {
			pods = append(pods, pod(t, fmt.Sprintf("p%02d", i), probed))
		}
		m.setPods(pods...)
		m.settle()
		m.settle()
		c.takeCount("")
		published.Store(0)
		before, journal := lines.n.Load(), modified(t, m.journal(pods[0]))
		m.advance(time.Minute)
		if n := c.takeCount(""); n < 20*(12+6)-40 {
			t.Errorf("probes in a minute: got %d, want at least %d", n, 20*(12+6)-40)
		}
		if n := published.Load(); n > 0 {
			t.Errorf("published changes: got %d, want none", n)
		}
		if n := lines.n.Load() - before; n > 0 {
			t.Errorf("log lines: got %d, want none:\n%s", n, lines.last())
		}
		if !modified(t, m.journal(pods[0])).Equal(journal) {
			t.Error("journal: got a write, want none")
		}
	})
}

// lineCount counts the lines that are written to it.
type lineCount struct {
	n    atomic.Int64
	text atomic.Pointer[string]
}

func (l *lineCount) Write(p []byte) (int, error) {
	text := string(p)
	l.n.Add(1)
	l.text.Store(&text)
	return len(p), nil
}

func (l *lineCount) last() string { return *l.text.Load() }

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// TestSpreadAfterStart checks that a podd that finds many pods spreads their first probes
// over time.
func TestSpreadAfterStart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		var pods []*manifest.Pod
		for i := range 40 {
			pods = append(pods, pod(t, fmt.Sprintf("p%02d", i), `containers: [{name: app, image: "web:1", readinessProbe: {exec: {command: [ready]}}}]`))
		}
		m.setPods(pods...)
		m.settle()
		m.kill()
		m.start()
		c.takeCount("")
		most, all := 0, 0
		for range 100 {
			m.advance(100 * time.Millisecond)
			n := c.takeCount("ready")
			most, all = max(most, n), all+n
		}
		if all != 40 || most > 5 {
			t.Errorf("probes in the first period: got %d, want 40; most probes in a tenth of a second: got %d, want at most 5", all, most)
		}
	})
}
