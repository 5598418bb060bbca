//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// A scenario is an operation for which podd makes several CRI calls. The result must be the same if
// podd is killed before, during or after one of these calls.
type scenario struct {
	name  string
	first func(*daemon) // creates the initial state; podd is not killed during this function
	act   func(*daemon) // changes the desired state
	wait  func(*daemon) // waits for the result
	noted []string      // the notes of the pods that are expected at the end, in this order
	kept  string        // the lines that are expected in the pods' claim at the end, separated by spaces
	// hooks is true if the pod has hooks. podd runs a hook again if podd was killed while the hook ran.
	hooks bool
}

var scenarios = []scenario{
	{
		name: "start",
		act:  func(d *daemon) { d.apply(d.scenarioPod("one")) },
		wait: func(d *daemon) { d.untilApplied("web") },
		noted: []string{
			"one init", "one runs",
		},
		kept: "one",
	},
	{
		name:  "stop",
		first: func(d *daemon) { d.apply(d.scenarioPod("one")); d.untilApplied("web"); d.untilNote("one runs") },
		act:   func(d *daemon) { d.remove("web") },
		wait:  func(d *daemon) { d.untilGone("web") },
		noted: []string{"one init", "one runs", "one TERM"},
		kept:  "one",
	},
	{
		name:  "replace",
		first: func(d *daemon) { d.apply(d.scenarioPod("one")); d.untilApplied("web"); d.untilNote("one runs") },
		act:   func(d *daemon) { d.apply(d.scenarioPod("two")) },
		wait:  func(d *daemon) { d.untilApplied("web") },
		noted: []string{"one init", "one runs", "one TERM", "two init", "two runs"},
		kept:  "one two",
	},
	{
		name:  "start hook",
		act:   func(d *daemon) { d.apply(d.hookedPod()) },
		wait:  func(d *daemon) { d.untilApplied("web") },
		noted: []string{"one runs", "one postStart"},
		hooks: true,
	},
	{
		name:  "stop hook",
		first: func(d *daemon) { d.apply(d.hookedPod()); d.untilApplied("web") },
		act:   func(d *daemon) { d.remove("web") },
		wait:  func(d *daemon) { d.untilGone("web") },
		noted: []string{"one runs", "one postStart", "one preStop", "one TERM"},
		hooks: true,
	},
	{
		name: "finish",
		act: func(d *daemon) {
			p := withRestartPolicy(d.pod("web", shell("main", note("one runs"))), v1.RestartPolicyNever)
			withVolume(p, "data", "/data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
			d.withSecret(p)
			d.apply(p)
		},
		wait: func(d *daemon) {
			d.untilPod("succeeded", "web", inPhase(v1.PodSucceeded))
			d.untilWoundDown("web")
		},
		noted: []string{"one runs"},
	},
}

// scenarioPod returns a pod with an init container, volumes and a container that serves.
func (d *daemon) scenarioPod(version string) *v1.Pod {
	p := d.pod("web", shell("main", "echo "+version+" >>/kept/x; "+serve(version)))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	p.Spec.InitContainers = []v1.Container{shell("init", note(version+" init"))}
	withVolume(p, "data", "/data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.withSecret(p)
	d.write("claim", manifestText(d, newClaim("data", v1.ReadWriteOncePod)))
	withVolume(p, "kept", "/kept", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
	withSubPath(p, "data", "/part", "a/b")
	withSubPath(p, "key", "/pass", "pass")
	return p
}

// hookedPod returns a pod with a postStart and a preStop hook. Its grace period is long enough for a
// restart of podd and another run of the preStop hook.
func (d *daemon) hookedPod() *v1.Pod {
	p := d.pod("web", withHooks(shell("main", scriptWithUp("one")), hookAfterUp(note("one postStart")), execHook(note("one preStop"))))
	p.Spec.TerminationGracePeriodSeconds = new(int64(40))
	return p
}

// withSecret writes a Secret and mounts it into p, so that p has a tmpfs mount.
func (d *daemon) withSecret(p *v1.Pod) {
	d.t.Helper()
	d.write("secret", manifestText(d, newSecret("key", "", map[string]string{"pass": password})))
	withVolume(p, "key", "/key", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "key"}})
}

// TestKillAtEveryCall kills podd before, during and after each call of each scenario. After its restart,
// podd must reach the expected final state of the scenario.
func TestKillAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calls := s.calls(t)
			last := lastEffect(calls)
			if last.Method == "" {
				t.Fatalf("calls of the scenario: got %v, want one that changes something", calls)
			}
			for _, c := range calls {
				for _, m := range moments(c) {
					t.Run(fmt.Sprintf("%s %s", m, c), func(t *testing.T) {
						t.Parallel()
						s.runWithKill(t, m, c, last)
					})
				}
			}
		})
	}
}

// effects are the CRI methods that change something in the runtime.
var effects = []string{
	"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ExecSync",
}

// queries are the CRI methods that change nothing and that podd calls for a pod. podd calls the
// remaining methods for the node.
var queries = []string{"ImageStatus", "PodSandboxStatus", "ContainerStatus", "ListPodSandbox", "ListContainers"}

// moments returns the moments of a call at which podd is killed.
func moments(c call) []moment {
	if c.Method == "RunPodSandbox" || c.Method == "StartContainer" {
		return []moment{before, during, after, duringTerm}
	}
	if slices.Contains(effects, c.Method) {
		return []moment{before, during, after}
	}
	return []moment{before, after}
}

// calls runs the scenario without a kill and returns the calls at which podd is to be killed: all calls
// of the methods in effects, and the first call of each method in queries.
func (s scenario) calls(t *testing.T) []call {
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	s.prepare(d)
	p.onCall(nil)
	s.act(d)
	s.wait(d)
	s.check(d, tolerance{})
	var calls []call
	for _, c := range p.recordedCalls() {
		if slices.Contains(effects, c.Method) || slices.Contains(queries, c.Method) && c.Nth == 1 {
			calls = append(calls, c)
		}
	}
	return calls
}

// lastEffect returns the last of the calls whose method is in effects.
func lastEffect(calls []call) (last call) {
	for _, c := range calls {
		if slices.Contains(effects, c.Method) {
			last = c
		}
	}
	return last
}

// prepare creates the initial state of the scenario.
func (s scenario) prepare(d *daemon) {
	if s.first != nil {
		s.first(d)
	}
}

// runWithKill runs the scenario and kills podd at the moment m of the call target. If target is a query,
// podd may complete the scenario without this query, because podd makes queries only when necessary.
// Therefore podd is not killed any more once it has made the call last.
func (s scenario) runWithKill(t *testing.T, m moment, target, last call) {
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	s.prepare(d)
	killed := make(chan bool, 1)
	podd := d.proc
	var mu sync.Mutex // guards the variable over, which is set when podd must not be killed any more
	over := false
	p.onCall(func(now moment, c call) bool {
		mu.Lock()
		defer mu.Unlock()
		if over || c.String() != target.String() {
			return false
		}
		switch {
		case now == during && m == duringTerm:
			// After SIGTERM, podd waits for the response to the call. The proxy forwards the response when
			// this function has returned, so only the goroutine waits for the exit.
			_ = podd.cmd.Process.Signal(syscall.SIGTERM) // the error is ignored, because podd may have exited
			go func() {
				<-podd.ended
				killed <- false
			}()
		case now == m:
			cut := p.isStarting()
			podd.signal(syscall.SIGKILL)
			killed <- cut
		}
		return now == m
	})
	s.act(d)
	cut := false
	d.eventually("podd is killed", func() error {
		select {
		case cut = <-killed:
			d.start()
			return nil
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		over = len(killed) == 0 && slices.Contains(queries, target.Method) && p.hasCalled(last)
		if !over {
			return fmt.Errorf("calls of podd: got no %s, want one that kills podd", target)
		}
		return nil
	})
	s.wait(d)
	s.check(d, tolerance{twice: cut || s.hooks, noTERM: m == during && target.Method == "StopContainer"})
}

// A tolerance lists deviations from the expected notes that are allowed, because containerd may cause
// them when podd exits before it receives the response to a call.
type tolerance struct {
	// twice: a container or a hook may have run twice, because podd was killed during the call that
	// started the container or hook, when its process was already running.
	twice bool
	// noTERM: containerd may assume that it has sent TERM although it has not, and then
	// never sends it.
	noTERM bool
	// restarted: the container was restarted because its postStart hook failed.
	restarted bool
}

// check compares the final state with the expected state.
func (s scenario) check(d *daemon, m tolerance) {
	d.t.Helper()
	isTERM := func(line string) bool { return strings.HasSuffix(line, " TERM") }
	d.eventually("the pods have written the expected notes", func() error {
		got, want := d.notes(), slices.Clone(s.noted)
		if m.twice {
			got = slices.Compact(got)
		}
		if from := len(got) - len(want) + 1; m.restarted && from > 1 {
			got = slices.Delete(got, 1, from) // keep the note of the init container, which runs only once
		}
		if m.noTERM && !slices.ContainsFunc(got, isTERM) {
			want = slices.DeleteFunc(want, isTERM)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got notes %q, want %q", d.notes(), s.noted)
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(d.root(), "claims/default/data/x")); s.kept != "" {
		got := strings.Fields(string(text))
		if m.twice {
			got = slices.Compact(got)
		}
		if strings.Join(got, " ") != s.kept {
			d.t.Errorf("lines in the claim: got %q, error %v; want %q", text, err, s.kept)
		}
	}
	if s.name == "stop" || s.name == "stop hook" || s.name == "finish" {
		// The test asks the runtime, because podd shows no pods immediately after its start.
		d.eventually("no container is running", func() error {
			if all := d.containers("web", ""); len(all) > 0 {
				return fmt.Errorf("got running containers %+v, want none", all)
			}
			return nil
		})
		return
	}
	if all := d.containers("web", ""); len(all) != 1 {
		d.t.Errorf("pod web at the end of the scenario: got running containers %+v, want one", all)
	}
	d.until("podd shows no problem", func(v *server.View) error {
		if all := problems(v); len(all) > 0 {
			return fmt.Errorf("got problems %q, want none", all)
		}
		return nil
	})
}
