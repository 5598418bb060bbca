package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
)

const web = `containers: [{name: app, image: "web:1", imagePullPolicy: IfNotPresent}]`

// TestPod adds, edits and removes a pod.
func TestPod(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		m.ForgetCalls()
		m.setPods(pod(t, "web", "terminationGracePeriodSeconds: 5\n"+web))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		m.wantCallsWith("RemovePodSandbox web", "StopContainer web/app", "StopPodSandbox web", "RunPodSandbox web", "CreateContainer web/app", "StartContainer web/app")
		m.setPods()
		m.settle()
		m.wantState()
		if dirs := m.dirs(); len(dirs) > 0 || m.report("web") != nil {
			t.Fatalf("after the removal: got directories %v and report %v, want none", dirs, m.report("web"))
		}
		m.ForgetCalls()
		m.advance(time.Hour)
		m.wantCalls()
	})
}

// TestRestartOfPodd checks that a new podd on the same machine starts and stops nothing,
// whether it reads sources or the runtime first.
func TestRestartOfPodd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(
			pod(t, "web", web),
			pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"]}]`),
			pod(t, "crash", `containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"]}]`),
			pod(t, "init", `initContainers: [{name: side, image: "side:1", restartPolicy: Always}, {name: one, image: "init:1", command: [sh, -c, "exit 0"]}]
containers: [{name: app, image: "web:1"}]`),
		)
		m.advance(5 * time.Second) // crash waits for its third start
		before := strings.Join(m.Containers(), "\n")
		m.ForgetCalls()
		m.kill()
		m.start()
		m.advance(4 * time.Second)
		m.wantCalls()
		if now := strings.Join(m.Containers(), "\n"); now != before {
			t.Fatalf("containers: got\n%s\nwant\n%s", now, before)
		}
		m.advance(2 * time.Second)
		if n := len(m.Calls("StartContainer")); n != 1 {
			t.Errorf("starts after the back-off: got %d, want 1", n)
		}
	})
}

// TestRemovedWhileDown checks a pod whose manifest was removed while no podd ran. The pod is
// stopped with its own grace period as soon as its source was read, and not before.
func TestRemovedWhileDown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", "terminationGracePeriodSeconds: 7\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		m.kill()
		m.set = &manifest.Set{CompleteSources: map[string]bool{}} // no source was read yet
		m.ForgetCalls()
		m.start()
		m.settle()
		m.wantCalls()
		began := time.Now()
		m.setPods()
		m.settle()
		m.wantState()
		stops := m.Calls("StopContainer")
		if took := stops[0].At.Sub(began); took > time.Second {
			t.Errorf("time until the first stop: got %s, want at most 1s", took)
		}
		if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("time until the sandbox stopped: got %s, want the grace period of 7s", took)
		}
		if len(m.dirs()) > 0 {
			t.Errorf("pod directories after the removal: got %v, want none", m.dirs())
		}
	})
}

// TestStarting checks that podd reports that it is starting until all pods on the node are in the
// reports. A call of StopAll during that time also stops and awaits these pods.
func TestStarting(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", "terminationGracePeriodSeconds: 7\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		for _, lost := range []bool{false, true} {
			m.kill()
			m.set = &manifest.Set{CompleteSources: map[string]bool{source: true}} // the pod was removed
			if lost {
				for _, dir := range m.dirs() {
					os.RemoveAll(filepath.Join(m.root, "pods", dir))
				}
			}
			m.Inject(runtimetest.Fault{Method: "ListPodSandbox", Nth: 1, Delay: time.Second})
			m.start()
			time.Sleep(2 * time.Second)
			if knew := m.podsAfterStart(); !slices.Equal(knew, []string{"web"}) {
				t.Errorf("pods in the first Change after the start (journal lost: %t): got %q, want \"web\"", lost, knew)
			}
		}
		m.kill()
		m.start()
		if err := m.current().router.StopAll(t.Context(), "podd down"); err != nil {
			t.Fatal(err)
		}
		m.wantState()
	})
}

// TestStopAll checks that StopAll stops every pod and that none is started again.
func TestStopAll(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "a", web), pod(t, "b", web), pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"]}]`))
		m.settle()
		if err := m.current().router.StopAll(t.Context(), "podd down"); err != nil {
			t.Fatal(err)
		}
		m.wantState()
		if len(m.dirs()) > 0 {
			t.Errorf("pod directories: got %v, want none", m.dirs())
		}
		m.setPods(pod(t, "c", web))
		m.settle()
		m.wantState()
		if err := m.current().router.StopAll(t.Context(), "podd down"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStopAll_Canceled checks that StopAll returns when its context is done, and that pods continue to
// stop.
func TestStopAll_Canceled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "a", `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.current().router.StopAll(ctx, "podd down"); err == nil {
			t.Fatal("StopAll before the end of the grace period: got no error, want one")
		}
		m.settle()
		m.settle()
		m.wantState()
	})
}

// TestRestart checks that Restart restarts the named container of a pod, or all its running
// containers, once. It does not affect other pods.
func TestRestart(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		two := `containers: [{name: app, image: "web:1"}, {name: too, image: "web:1"}]`
		m.setPods(pod(t, "web", two), pod(t, "b", web))
		m.settle()
		if err := m.current().router.Restart(t.Context(), key("web"), "app"); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("b 0 ready", "b/app 0 running", "web 0 ready", "web/app 0 exited 143", "web/app 1 running", "web/too 0 running")
		if err := m.current().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("b 0 ready", "b/app 0 running", "web 0 ready", "web/app 1 exited 143", "web/app 2 running", "web/too 0 exited 143", "web/too 1 running")
		if err := m.current().router.Restart(t.Context(), key("none"), ""); err == nil {
			t.Error("Restart of a missing pod: got no error, want one")
		}
	})
}

// TestRestart_BackOff checks that a container in a crash back-off starts at once when a user
// requests a restart.
func TestRestart_BackOff(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		for range 3 {
			m.ExitContainer("default/web/app", 1)
			m.advance(time.Second)
		}
		m.wantState("web 0 ready", "web/app 1 exited 1")
		if err := m.current().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Second)
		m.wantState("web 0 ready", "web/app 1 exited 1", "web/app 2 running")
	})
}

// TestRestart_Foreign checks that Restart does not touch foreign containers of
// the same name.
func TestRestart_Foreign(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.makeForeign("web")
		m.settle()
		if err := m.current().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("web 0 ready", "web/app 0 exited 143", "web/app 1 running", "web 0 ready", "web/app 0 running")
	})
}

// TestForeign_NotObserved checks that podd does not start a pod if a foreign pod has the same name,
// even if podd has not observed the foreign pod yet.
func TestForeign_NotObserved(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.MuteEvents(true)
		m.start()
		m.setPods(pod(t, "b", web))
		m.settle()
		m.makeForeign("web")
		m.setPods(pod(t, "b", web), pod(t, "web", web))
		m.settle()
		if got := m.rule("web"); got != plan.RuleNameInUse {
			t.Errorf("rule: got %q, want %q\n%s", got, plan.RuleNameInUse, m.state())
		}
	})
}

// TestHungPull checks that a pull that hangs blocks only its own pod, and is canceled when
// no pod needs it.
func TestHungPull(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Inject(runtimetest.Fault{Method: "PullImage", Hangs: true})
		m.start()
		hung := `containers: [{name: app, image: "hung:1"}]`
		m.setPods(pod(t, "hung", hung), pod(t, "web", web))
		m.settle()
		m.wantState("hung 0 ready", "web 0 ready", "web/app 0 running")
		// Now the name of the image is corrected.
		m.setPods(pod(t, "hung", web), pod(t, "web", web))
		m.settle()
		m.wantState("hung 0 ready", "hung/app 0 running", "web 0 ready", "web/app 0 running")
		// A pod is removed while its image is pulled.
		m.setPods(pod(t, "other", hung))
		m.settle()
		m.wantState("other 0 ready")
		m.setPods()
		m.settle()
		m.wantState()
		if m.report("other") != nil || len(m.dirs()) > 0 {
			t.Errorf("after the removal: got report %v and directories %v, want none", m.report("other"), m.dirs())
		}
	})
}

// TestHungRunSandbox removes a pod while its sandbox is being created, and checks that the
// sandbox is removed, too.
func TestHungRunSandbox(t *testing.T) {
	for _, ignoresCancel := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignores cancel %t", ignoresCancel), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Delay: 3 * time.Second, IgnoresCancel: ignoresCancel})
				m.start()
				m.setPods(pod(t, "web", web))
				m.advance(time.Second)
				m.setPods()
				m.settle()
				m.settle()
				m.wantState()
				if len(m.dirs()) > 0 || m.report("web") != nil {
					t.Errorf("after the removal: got report %v and directories %v, want none", m.report("web"), m.dirs())
				}
			})
		})
	}
}

// TestNameReserved checks that podd starts a pod although an interrupted call holds the
// name of a sandbox, for a while or for good.
func TestNameReserved(t *testing.T) {
	for name, c := range map[string]struct {
		held time.Duration
		want string
	}{"a while": {3 * time.Second, "web 0 ready"}, "for good": {time.Hour, "web 1 ready"}} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				began := time.Now()
				m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Err: reserved, Match: func(q any) bool {
					return attempt(q) == 0 && time.Since(began) < c.held
				}})
				m.start()
				m.setPods(pod(t, "web", web))
				m.settle()
				m.wantState(c.want, "web/app 0 running")
			})
		})
	}
}

// TestContainerNameReserved checks that podd starts a container although an interrupted call holds
// its name. A container that was not started does not count as a restart.
func TestContainerNameReserved(t *testing.T) {
	for name, c := range map[string]struct {
		held         time.Duration
		first, ended string
		second       string
	}{
		"a while":  {3 * time.Second, "web/app 0 running", "web/app 0 exited 1", "web/app 1 running"},
		"for good": {time.Hour, "web/app 1 running", "web/app 1 exited 1", "web/app 2 running"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				began := time.Now()
				m.Inject(runtimetest.Fault{Method: "CreateContainer", Err: reserved, Match: func(q any) bool {
					return attempt(q) == 0 && time.Since(began) < c.held
				}})
				m.OnExec(func(string, []string) runtimetest.Program { return runtimetest.Program{ExitsByItself: true} })
				m.start()
				m.setPods(pod(t, "web", `containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [warm]}}}}]`))
				m.settle()
				m.wantState("web 0 ready", c.first)
				restarts := func(want int32) {
					t.Helper()
					if got := m.report("web").Pod.Status.ContainerStatuses[0].RestartCount; got != want {
						t.Errorf("restart count: got %d, want %d", got, want)
					}
				}
				restarts(0)
				if n := len(m.Calls("ExecSync")); n != 1 {
					t.Errorf("calls of the postStart hook: got %d, want 1", n)
				}
				m.ExitContainer("default/web/app", 1)
				m.advance(time.Second)
				restarts(1)
				m.restart()
				m.settle()
				restarts(1)
				m.wantState("web 0 ready", c.ended, c.second)
			})
		})
	}
}

// TestEphemeralNameReserved checks that an ephemeral container is never created with a second
// attempt number, because the container that holds the name may still be created.
func TestEphemeralNameReserved(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		free := m.Inject(runtimetest.Fault{Method: "CreateContainer", Err: reserved})
		if err := m.debug("web", debugger("debug", "side:1", "")); err != nil {
			t.Fatal(err)
		}
		m.advance(2 * time.Minute)
		for _, c := range m.Calls("CreateContainer") {
			if n := attempt(c.Request); n != 0 {
				t.Fatalf("attempt number of the sandbox: got %d, want 0", n)
			}
		}
		m.wantState("web 0 ready", "web/app 0 running")
		free()
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 running", "web/debug 0 running")
	})
}

// TestLostResponse checks that podd observes the runtime before it creates another sandbox, if the
// first call ends without a response. In the meantime, the runtime responds slowly to list calls.
func TestLostResponse(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, AfterEffect: true})
		m.start()
		m.settle()
		began := time.Now()
		m.Inject(runtimetest.Fault{Method: "ListPodSandbox", Delay: 30 * time.Second, Match: func(any) bool { return time.Since(began) < 5*time.Second }})
		m.setPods(pod(t, "web", web))
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if n := len(m.Calls("RunPodSandbox")); n != 1 {
			t.Errorf("requests for a sandbox: got %d, want 1", n)
		}
	})
}

// TestRuntimeUnreachable checks that pods continue after the runtime was unreachable, and that
// containers that ended meanwhile are observed.
func TestRuntimeUnreachable(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web), pod(t, "b", web))
		m.settle()
		m.ForgetCalls()
		m.Disconnect()
		m.ExitContainer("default/b/app", 1)
		m.setPods(pod(t, "web", web), pod(t, "b", web), pod(t, "c", web))
		m.settle()
		if got := m.rule("web"); got != plan.RuleRuntimeUnreachable {
			t.Errorf("rule: got %q, want %q", got, plan.RuleRuntimeUnreachable)
		}
		m.Reconnect()
		m.settle()
		m.wantState("b 0 ready", "b/app 0 exited 1", "b/app 1 running", "c 0 ready", "c/app 0 running", "web 0 ready", "web/app 0 running")
	})
}

// TestRuntimeComesLater starts podd before the runtime.
func TestRuntimeComesLater(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Disconnect()
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.Reconnect()
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
	})
}

// TestPublished checks that each published report contains the state on which its decision is based,
// even if nothing happens after the decision.
func TestPublished(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.MuteEvents(true) // before the next relist, only effects change the state
		m.start()
		var pods []*manifest.Pod
		for i := range 20 {
			pods = append(pods, pod(t, fmt.Sprintf("p%d", i), web))
		}
		m.setPods(pods...)
		for range 2000 {
			m.advance(time.Millisecond)
			runs := m.Containers()
			for _, p := range pods {
				r := m.report(p.Key.Name)
				if slices.Contains(runs, "default/"+p.Key.Name+"/app 0 running") && (len(r.Observed) == 0 || len(r.Observed[0].Containers) == 0) {
					t.Fatalf("report of running pod %s: got no container, want one: %s", p.Key, r.Decision)
				}
			}
		}
		for _, p := range pods {
			if r := m.report(p.Key.Name); r == nil || len(r.Observed) == 0 || len(r.Observed[0].Containers) != 1 {
				t.Errorf("report of pod %s: got %+v, want one container", p.Key, r)
			}
		}
	})
}

// TestAdmission checks that a host port is assigned to the pod that had it first, and to a waiting
// pod when the port is free.
func TestAdmission(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		port := func(name string, n int) *manifest.Pod {
			return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", ports: [{containerPort: %d, hostPort: %d}]}]`, n, n))
		}
		m.start()
		m.setPods(port("web", 80))
		m.settle()
		m.setPods(port("web", 80), port("a", 80))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if r := m.report("a"); r.Decision.Rule != plan.RuleNotAdmitted || r.Decision.Reason != "HostPortConflict" {
			t.Errorf("decision about pod a: got %v, want rule %s and reason HostPortConflict", r.Decision, plan.RuleNotAdmitted)
		}
		// The same applies after a restart of podd, in any order of names.
		m.restart()
		m.wantState("web 0 ready", "web/app 0 running")
		// An admitted pod is created again when its sandbox dies; a rejected one does not
		// get its port.
		m.killSandbox("web")
		m.settle()
		m.wantState("web 1 ready", "web/app 1 running")
		// After an edit that needs a port in use, the running version keeps its own.
		b := port("b", 81)
		m.setPods(port("web", 80), b)
		m.settle()
		m.setPods(port("web", 80), port("b", 80))
		m.settle()
		m.wantState("b 0 ready", "b/app 0 running", "web 1 ready", "web/app 1 running")
		m.killSandbox("b")
		m.settle()
		m.killSandbox("web")
		m.settle()
		if got := m.Containers(); !slices.Contains(got, "default/web/app 2 running") {
			t.Errorf("containers: got\n%s\nwant default/web/app 2 running although a rejected pod requests the same port\n%s", strings.Join(got, "\n"), m.state())
		}
		// The two pods swap their ports.
		m.setPods(port("x", 90), port("z", 91))
		m.settle()
		m.setPods(port("x", 91), port("z", 90))
		m.settle()
		m.wantState("x 0 ready", "x/app 0 running", "z 0 ready", "z/app 0 running")
	})
}

// TestBrokenEditKeepsPort checks that a pod keeps its port during an edit with a missing image.
// Another edit that needs this port stops no pod until both edits can continue.
func TestBrokenEditKeepsPort(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		port := func(name, image string, n int) *manifest.Pod {
			return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: %q, ports: [{containerPort: %d, hostPort: %d}]}]`, image, n, n))
		}
		m.start()
		m.setPods(port("a", "web:1", 90), port("x", "web:1", 80))
		m.settle()
		m.ForgetCalls()
		m.setPods(port("a", "web:1", 80), port("x", "missing:1", 81))
		m.advance(3 * time.Minute)
		m.wantState("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		m.restart()
		m.advance(3 * time.Minute)
		m.wantState("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		m.wantCalls()
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "missing:1"}})
		m.advance(6 * time.Minute)
		m.wantState("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		for _, p := range []*manifest.Pod{port("a", "web:1", 80), port("x", "missing:1", 81)} {
			if r := m.report(p.Key.Name); r.Version.Hash != p.Hash {
				t.Errorf("version of %s: got hash %s, want %s\n%s", p.Key, r.Version.Hash, p.Hash, r.Decision)
			}
		}
	})
}

// TestEditWithoutItsVolumes checks that an edit that mounts a missing volume leaves the
// earlier version running, and replaces it once the volume exists.
func TestEditWithoutItsVolumes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		data := filepath.Join(m.root, "data")
		edit := "volumes: [{name: data, hostPath: {path: " + data + ", type: Directory}}]\n" + web
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.setPods(pod(t, "web", edit))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if d := m.report("web").Decision; !d.NeedsUser || !strings.Contains(d.Why, data) {
			t.Errorf("decision: got %s, want a problem that names %s", d, data)
		}
		if err := os.Mkdir(data, 0o755); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if d := m.report("web").Decision; d.NeedsUser || d.Why != "" {
			t.Errorf("decision: got %s, want no problem and no reason", d)
		}
	})
}

// TestAnotherImage checks that the pull back-off of one image does not apply to the next image.
func TestAnotherImage(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		image := func(name string) *manifest.Pod { return pod(t, "web", strings.Replace(web, "web:1", name, 1)) }
		reason := func() string {
			return m.report("web").Pod.Status.ContainerStatuses[0].State.Waiting.Reason
		}
		m.start()
		m.setPods(image("missing:1"))
		m.advance(time.Minute)
		if got := reason(); got != "ImagePullBackOff" {
			t.Errorf("waiting reason after a minute: got %s, want ImagePullBackOff", got)
		}
		m.setPods(image("missing:2"))
		m.advance(time.Second)
		if got := reason(); got != "ErrImagePull" {
			t.Errorf("waiting reason at first: got %s, want ErrImagePull", got)
		}
	})
}

// TestMovedUID renames a pod with a UID in its manifest, while podd runs or while it does not run.
// It checks that the pod directory, which both names share, is not removed while the new pod uses
// it.
func TestMovedUID(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprintf("podd is down %t", down), func(t *testing.T) { run(t, func(t *testing.T, m *machine) { checkMovedUID(t, m, down) }) })
	}
}

// checkMovedUID renames a pod with a fixed UID from "old" to "new". If down is set, podd does not
// run meanwhile.
func checkMovedUID(t *testing.T, m *machine, down bool) {
	text := func(name string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: abc}\nspec:\n  volumes: [{name: v, emptyDir: {}}]\n" +
			"  containers: [{name: app, image: \"job:1\", command: [sleep, inf], volumeMounts: [{name: v, mountPath: /v}]}]\n"
	}
	m.start()
	m.setPods(podOf(t, text("old")))
	m.settle()
	if down {
		m.kill()
	}
	m.setPods(podOf(t, text("new")))
	if down {
		m.start()
	}
	m.settle()
	m.settle()
	m.wantState("new 0 ready", "new/app 0 running")
	if !slices.Equal(m.dirs(), []string{"abc"}) {
		t.Fatalf("pod directories: got %v, want abc", m.dirs())
	}
	removed := m.Calls("RemovePodSandbox")[0].At
	for _, c := range m.Calls("RunPodSandbox") {
		if c.Subject == "default/new" && c.At.Before(removed) {
			t.Errorf("pod \"new\" was started before the sandbox of pod \"old\" was removed, want it started afterwards")
		}
	}
}

// TestFinishedHoldsNothing checks that a finished pod reserves no host port and does not count
// toward the maximum number of pods.
func TestFinishedHoldsNothing(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.MaxPods = 1 }
		done := pod(t, "done", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"], ports: [{containerPort: 80, hostPort: 80}]}]`)
		web := pod(t, "web", `containers: [{name: app, image: "web:1", ports: [{containerPort: 80, hostPort: 80}]}]`)
		m.start()
		m.setPods(done)
		m.settle()
		m.setPods(done, web)
		m.settle()
		m.wantState("done 0 dead", "done/app 0 exited 0", "web 0 ready", "web/app 0 running")
		// A third pod does not fit, even after a restart of podd.
		m.setPods(done, web, pod(t, "a", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		m.restart()
		m.wantState("done 0 dead", "done/app 0 exited 0", "web 0 ready", "web/app 0 running")
		if r := m.report("a"); r.Decision.Reason != "OutOfpods" {
			t.Errorf("decision about pod a: got %s, want reason OutOfpods", r.Decision)
		}
	})
}

// TestEvicted checks that only the evicted version is stopped permanently.
func TestEvicted(t *testing.T) {
	t.Run("", func(t *testing.T) { testEvicted(t, false, "image: web:2", "memory: 1Gi") })
	t.Run("podd restarts", func(t *testing.T) { testEvicted(t, true, "image: web:2", "memory: 1Gi") })
	t.Run("resized", func(t *testing.T) { testEvicted(t, false, "image: web:1", "memory: 2Gi") })
	t.Run("resized, podd restarts", func(t *testing.T) { testEvicted(t, true, "image: web:1", "memory: 2Gi") })
}

func testEvicted(t *testing.T, restarted bool, image, memory string) {
	run(t, func(t *testing.T, m *machine) {
		text := func(image, memory string) string {
			return "apiVersion: v1\nkind: Pod\nmetadata: {name: big, uid: abc}\nspec:\n  containers:\n  - name: app\n    " + image + "\n    resources: {requests: {" + memory + "}}\n"
		}
		m.start()
		before := podOf(t, text("image: web:1", "memory: 1Gi"))
		m.setPods(before)
		m.settle()
		tooBig := plan.Eviction{UID: "abc", Hash: before.Hash, Message: "too big"}
		if err := m.current().router.Evict(t.Context(), key("big"), tooBig); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("big 0 dead", "big/app 0 exited 143")
		if restarted {
			m.restart()
			m.wantState("big 0 dead", "big/app 0 exited 143")
		}
		m.setPods(podOf(t, text(image, memory)))
		m.settle()
		runs := func() {
			t.Helper()
			if sandbox := m.Sandboxes(); len(sandbox) != 1 || !strings.HasSuffix(sandbox[0], "ready") || m.report("big").Pod.Status.Phase != v1.PodRunning {
				t.Errorf("sandboxes: got %v, want one ready sandbox of a running pod\n%s", sandbox, m.state())
			}
		}
		runs()
		if strings.Contains(image, "web:1") {
			return // both sizes have the same hash, so that the eviction would apply to the new size, too
		}
		// An eviction of the earlier version arrives late.
		if err := m.current().router.Evict(t.Context(), key("big"), tooBig); err != nil {
			t.Fatal(err)
		}
		m.settle()
		runs()
	})
}

// TestDisk checks that a pod that does not fit on the disk starts once the disk has grown,
// and gets the new size. A running pod is not stopped when the disk shrinks.
func TestDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) {
			o.Limits.Allocatable = admission.Amounts{v1.ResourceEphemeralStorage: 1 << 30}
		}
		m.start()
		m.setPods(pod(t, "big", `containers: [{name: app, image: "web:1", resources: {requests: {ephemeral-storage: 2Gi}}, env: [{name: DISK, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage, divisor: 1Gi}}}]}]`))
		m.settle()
		if r := m.report("big"); r.Decision.Reason != "OutOfephemeral-storage" {
			t.Fatalf("decision about pod big: got %s, want reason OutOfephemeral-storage", r.Decision)
		}
		if err := m.current().router.SetDiskCapacity(t.Context(), 4<<30, 3<<30); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("big 0 ready", "big/app 0 running")
		if env := m.created("app")[0].Envs; len(env) == 0 || string(env[len(env)-1].Value) != "3" {
			t.Errorf("variables of the container: got %v, want the last with the value 3", env)
		}
		if err := m.current().router.SetDiskCapacity(t.Context(), 1<<30, 1<<30); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantState("big 0 ready", "big/app 0 running")
	})
}

// TestDisk_SmallChange checks that a small change of the disk size has an effect only if a waiting pod
// fits because of it. The published size of the node's storage does not change.
func TestDisk_SmallChange(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		const gib = 1 << 30
		m.options = func(o *reconcile.Options) {
			o.Limits.Allocatable = admission.Amounts{v1.ResourceEphemeralStorage: 100 * gib}
			o.RenderNode.Capacity.EphemeralStorage, o.RenderNode.Allocatable.EphemeralStorage = 100*gib, 100*gib
		}
		m.start()
		m.setPods(pod(t, "web", web), pod(t, "big", `containers: [{name: app, image: "web:1", resources: {requests: {ephemeral-storage: 105Gi}}}]`))
		m.settle()
		before := m.report("big")
		for _, tt := range []struct {
			size, shown int64
			runs        bool
		}{{103, 100, false}, {98, 100, false}, {106, 100, true}, {120, 120, true}} {
			if err := m.current().router.SetDiskCapacity(t.Context(), tt.size*gib, tt.size*gib); err != nil {
				t.Fatal(err)
			}
			m.settle()
			now := m.report("big")
			if runs := now.Pod.Status.Phase == v1.PodRunning; runs != tt.runs || !runs && now != before {
				t.Errorf("with %d GiB: decision about pod big: got %s, want the pod running %t, and an unchanged report unless it runs", tt.size, now.Decision, tt.runs)
			}
			m.mu.Lock()
			if got := m.node.EphemeralStorage; got != tt.shown*gib {
				t.Errorf("with %d GiB: published storage of the node: got %d GiB, want %d GiB", tt.size, got/gib, tt.shown)
			}
			m.mu.Unlock()
		}
	})
}

// TestManyNames checks that the router keeps no data about a pod name after the pod was removed.
func TestManyNames(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		for i := range 30 {
			m.setPods(pod(t, fmt.Sprintf("p%d", i), web))
			m.settle()
		}
		m.setPods()
		m.settle()
		m.wantState()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.reports) > 0 {
			t.Errorf("published reports: got %v, want none", m.reports)
		}
	})
}

// TestReservations_UnknownVersion checks that a running pod without a manifest keeps its
// reservations until it is removed, even after a restart of podd.
func TestReservations_UnknownVersion(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.Allocatable = admission.Amounts{v1.ResourceMemory: 1 << 30} }
		big := func(name, command string) *manifest.Pod {
			return pod(t, name, `terminationGracePeriodSeconds: 60
containers: [{name: app, image: "web:1", command: `+command+`, resources: {requests: {memory: 800Mi}}}]`)
		}
		m.start()
		m.setPods(big("old", "[sleep, inf]"))
		m.settle()
		m.setPods()
		m.advance(time.Second)
		m.restart()
		m.setPods(big("new", "[web]"))
		m.advance(20 * time.Second)
		if r := m.report("new"); r.Decision.Reason != "OutOfmemory" {
			t.Errorf("decision about pod new: got %s, want reason OutOfmemory\n%s", r.Decision, m.state())
		}
		m.advance(time.Minute)
		m.wantState("new 0 ready", "new/app 0 running")
	})
}

// TestImageVolumeMissing checks that a container waits with the reason of a failed pull if the image of
// an image volume that it mounts cannot be pulled, and that other containers run.
func TestImageVolumeMissing(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(
			pod(t, "unused", `{containers: [{name: app, image: "web:1"}], volumes: [{name: model, image: {reference: "missing:1"}}]}`),
			pod(t, "web", `
containers:
- {name: app, image: "web:1", volumeMounts: [{name: model, mountPath: /model}]}
- {name: side, image: "web:1"}
volumes: [{name: model, image: {reference: "missing:1"}}]`),
		)
		m.advance(time.Minute)
		m.wantState("unused 0 ready", "unused/app 0 running", "web 0 ready", "web/side 0 running")
		waiting := m.report("web").Pod.Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "ImagePullBackOff" || !strings.Contains(waiting.Message, `volume "model"`) {
			t.Errorf("state of the container that mounts the missing image: got %+v, want ImagePullBackOff with the name of the volume", waiting)
		}
		events := m.takeEvents()
		for _, want := range []string{"Pulling spec.containers{app}: Pulling image \"missing:1\"", "Failed to pull image \"missing:1\"", "Back-off pulling image \"missing:1\""} {
			if !strings.Contains(events, want) {
				t.Errorf("events: got\n%s\nwant %q", events, want)
			}
		}

		m.AddImage(runtimetest.Image{Name: "missing:1"})
		m.advance(5 * time.Minute)
		m.wantState("unused 0 ready", "unused/app 0 running", "web 0 ready", "web/app 0 running", "web/side 0 running")
	})
}
