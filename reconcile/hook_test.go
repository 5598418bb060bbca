package reconcile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest"
)

const hooked = `terminationGracePeriodSeconds: 20
initContainers:
- name: side
  image: "side:1"
  restartPolicy: Always
  lifecycle: {postStart: {sleep: {seconds: 2}}, preStop: {sleep: {seconds: 9}}}
containers:
- name: app
  image: "web:1"
  lifecycle: {postStart: {exec: {command: [warm, $(WORD)]}}, preStop: {exec: {command: [drain]}}}
- {name: behind, image: "web:1"}`

var slow = runtimetest.Program{ExitsByItself: true, RunDuration: 5 * time.Second}

// hookCalls returns the calls that start containers, run commands, and stop containers and
// sandboxes. Each line begins with the number of whole seconds between from and the call. The
// timeout of a command or the grace period of a stop follows "within"; 0s for a command means no
// timeout. The lines are sorted as text, so calls within one second are not in the order in which
// podd made them.
func (m *machine) hookCalls(from time.Time) []string {
	var all []string
	for _, c := range m.Calls("StartContainer", "ExecSync", "StopContainer", "StopPodSandbox") {
		text := c.Method + " " + strings.TrimPrefix(c.Subject, "default/")
		switch q := c.Request.(type) {
		case *cri.ExecSyncRequest:
			text = fmt.Sprintf("%s %s within %ds", c.Method, q.Cmd, q.Timeout)
		case *cri.StopContainerRequest:
			text += fmt.Sprintf(" within %ds", q.Timeout)
		}
		all = append(all, fmt.Sprintf("%ds %s", int(c.At.Sub(from).Seconds()), text))
	}
	slices.Sort(all)
	return all
}

func wantHookCalls(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("calls of podd: got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// waitingReason returns the published waiting reason of a container; "" if it runs.
func (m *machine) waitingReason(name string, container string) string {
	r := m.report(name)
	for _, c := range slices.Concat(r.Pod.Status.InitContainerStatuses, r.Pod.Status.ContainerStatuses) {
		if c.Name == container && c.State.Waiting != nil {
			return c.State.Waiting.Reason
		}
	}
	return ""
}

// TestHooks checks that a postStart hook delays the starts of the containers after it. A preStop hook
// and the stop of its container together get no more than the grace period.
func TestHooks(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		c.setResult("warm", slow)
		c.setResult("drain", slow)
		m.start()
		began := time.Now()
		m.setPods(pod(t, "web", hooked))
		m.advance(time.Second)
		if got := m.waitingReason("web", "side"); got != "PodInitializing" || m.waitingReason("web", "app") != "PodInitializing" {
			t.Errorf("waiting reasons: got %q for side and %q for app, want PodInitializing for both", got, m.waitingReason("web", "app"))
		}
		m.advance(3 * time.Second)
		if got := m.waitingReason("web", "app"); got != "PodInitializing" || m.waitingReason("web", "behind") != "PodInitializing" || m.waitingReason("web", "side") != "" {
			t.Errorf("waiting reasons: got %q for app, %q for behind and %q for side, want PodInitializing for app and behind", got, m.waitingReason("web", "behind"), m.waitingReason("web", "side"))
		}
		if phase := m.report("web").Pod.Status.Phase; phase != v1.PodPending {
			t.Errorf("phase during the hook: got %s, want Pending", phase)
		}
		m.settle()
		wantHookCalls(t, m.hookCalls(began), "0s StartContainer web/side", "2s ExecSync [warm $(WORD)] within 0s", "2s StartContainer web/app", "7s StartContainer web/behind")
		if phase := m.report("web").Pod.Status.Phase; phase != v1.PodRunning || m.waitingReason("web", "app") != "" {
			t.Errorf("after the hook: got phase %s and waiting reason %q, want Running and none", phase, m.waitingReason("web", "app"))
		}

		m.ForgetCalls()
		ends := time.Now()
		m.setPods()
		m.settle()
		m.wantState()
		wantHookCalls(t, m.hookCalls(ends), "0s ExecSync [drain] within 20s", "0s StopContainer web/behind within 20s", "5s StopContainer web/app within 15s", "9s StopContainer web/side within 11s", "9s StopPodSandbox web")
	})
}

// TestHookFails checks that a failed postStart hook stops its container with its preStop hook and
// grace period, and is reported as in a kubelet.
func TestHookFails(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var log bytes.Buffer
		m.log = slog.NewTextHandler(&log, nil)
		c := newCommands(m)
		c.setResult("warm", bad)
		c.setResult("drain", slow)
		m.start()
		m.setPods(pod(t, "web", hooked))
		m.advance(4 * time.Second)
		if got := m.waitingReason("web", "app"); got != "PostStartHookError" {
			t.Errorf("waiting reason: got %q, want PostStartHookError\n%s", got, m.state())
		}
		if got := m.report("web").Decision.Steps[1].Why; got != "postStart hook failed: exit 1: [1mno disk" {
			t.Errorf("reason of the decision: got %q, want the output of the hook", got)
		}
		m.advance(11 * time.Second)
		if got := m.waitingReason("web", "app"); got != "CrashLoopBackOff" {
			t.Errorf("waiting reason: got %q, want CrashLoopBackOff\n%s", got, m.state())
		}
		if got := m.report("web").Decision.Steps[1].Why; !strings.HasSuffix(got, "last exit 143, postStart hook failed: exit 1: [1mno disk") {
			t.Errorf("reason of the decision: got %q, want the exit code and the output of the hook", got)
		}
		c.succeed("warm")
		m.settle()
		if m.waitingReason("web", "app") != "" {
			t.Errorf("waiting reason: got %q, want none\n%s", m.waitingReason("web", "app"), m.state())
		}
		// A failed preStop hook is logged and does not delay the stop.
		c.setResult("drain", bad)
		m.setPods()
		m.settle()
		m.wantState()
		m.kill()
		if want := `msg="action failed" pod=default/web action="run the preStop hook of app within 20s" err="exit 1: [1mno disk"`; strings.Count(log.String(), want) != 1 {
			t.Errorf("log: got\n%s\nwant one record with %s", log.String(), want)
		}
	})
}

// TestHookTooSlow checks that a hook that exceeds the grace period is canceled, and that the
// runtime then gets two seconds to stop the container.
func TestHookTooSlow(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		c.setResult("drain", runtimetest.Program{}) // never ends
		m.start()
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 5
containers: [{name: app, image: "web:1", lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		m.settle()
		m.ForgetCalls()
		ends := time.Now()
		m.setPods()
		m.settle()
		wantHookCalls(t, m.hookCalls(ends), "0s ExecSync [drain] within 5s", "5s StopContainer web/app within 2s", "5s StopPodSandbox web")
	})
}

// TestHookAfterKill kills podd during a hook. It checks that the next podd calls the hook again
// with the rest of the grace period, and does not repeat a finished hook.
func TestHookAfterKill(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		c.setResult("warm", slow)
		c.setResult("drain", slow)
		web := pod(t, "web", hooked)
		m.start()
		m.setPods(web)
		m.advance(4 * time.Second)
		again := func() time.Time {
			m.kill()
			m.ForgetCalls()
			m.start()
			return time.Now()
		}
		came := again()
		m.settle()
		wantHookCalls(t, m.hookCalls(came), "0s ExecSync [warm $(WORD)] within 0s", "5s StartContainer web/behind")
		came = again()
		m.settle()
		wantHookCalls(t, m.hookCalls(came))

		ends := time.Now()
		m.setPods()
		m.advance(3 * time.Second)
		again()
		m.advance(5500 * time.Millisecond)
		again()
		m.settle()
		m.wantState()
		wantHookCalls(t, m.hookCalls(ends), "9s StopContainer web/side within 11s", "9s StopPodSandbox web")
	})
}

// TestHookWithoutJournal checks that without its journal podd calls no postStart hook of a
// running container.
func TestHookWithoutJournal(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		newCommands(m)
		web := pod(t, "web", hooked)
		m.start()
		m.setPods(web)
		m.settle()
		m.kill()
		if err := os.Remove(m.journal(web)); err != nil {
			t.Fatal(err)
		}
		m.ForgetCalls()
		m.start()
		m.settle()
		wantHookCalls(t, m.hookCalls(time.Now()))
		if m.waitingReason("web", "app") != "" {
			t.Errorf("waiting reason: got %q, want none", m.waitingReason("web", "app"))
		}
	})
}

// TestHook_ForceStop checks that a hook in progress does not delay a pod that is stopped without a
// grace period.
func TestHook_ForceStop(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		c.setResult("warm", runtimetest.Program{}) // never ends
		m.start()
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 0
containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [warm]}}, preStop: {exec: {command: [drain]}}}}]`))
		m.advance(time.Minute)
		if m.waitingReason("web", "app") != "ContainerCreating" {
			t.Errorf("waiting reason: got %q, want ContainerCreating", m.waitingReason("web", "app"))
		}
		m.setPods()
		m.advance(time.Second)
		m.wantState()
		if c.takeCount("drain") > 0 {
			t.Error("preStop hook without a grace period: got a call, want none")
		}
	})
}

// TestHook_NotCanceled checks that podd does not cancel the command of a hook when the pod is stopped
// or restarted (see plan.IsCancellable). podd does not wait for the command and ignores its result.
func TestHook_NotCanceled(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newCommands(m)
		m.start()
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 2
containers: [{name: app, image: "web:1", command: [sleep, inf], lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		m.settle()
		m.ForgetCalls()
		slowly := m.Inject(runtimetest.Fault{Method: "ExecSync", Delay: 3 * time.Second})
		ends := time.Now()
		m.setPods()
		m.settle()
		m.wantState()
		wantHookCalls(t, m.hookCalls(ends), "0s ExecSync [drain] within 2s", "2s StopContainer web/app within 2s", "4s StopPodSandbox web")
		if n := c.takeCount("drain"); n != 1 {
			t.Errorf("completed calls of the hook: got %d, want 1", n)
		}
		slowly()

		c.setResult("warm", runtimetest.Program{ExitsByItself: true, ExitCode: 1, RunDuration: 5 * time.Second})
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 10
containers: [{name: app, image: "web:1", command: [sleep, inf], lifecycle: {postStart: {exec: {command: [warm]}}}}]`))
		m.advance(time.Second)
		if err := m.current().router.Restart(t.Context(), key("web"), "app"); err != nil {
			t.Fatal(err)
		}
		m.advance(6 * time.Second)
		if got := m.waitingReason("web", "app"); got != "" && got != "ContainerCreating" {
			t.Errorf("waiting reason: got %q, want none or ContainerCreating\n%s", got, m.state())
		}
		m.Inject(runtimetest.Fault{Method: "ExecSync", Hangs: true})
		m.advance(5 * time.Second) // the hook of the new container hangs
		m.setPods()
		m.advance(13 * time.Second)
		m.wantState()
	})
}

// TestHook_StatusHangs checks a query for the status of a started container that hangs. If the pod
// is removed in the meantime, the query must not shorten the grace period of the preStop hook.
func TestHook_StatusHangs(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.OnExec(func(string, []string) runtimetest.Program { return slow })
		m.start()
		m.Inject(runtimetest.Fault{Method: "ContainerStatus", Nth: 1, Hangs: true})
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 20
initContainers: [{name: init, image: "init:1", command: [sh, -c, "exit 0"]}]
containers: [{name: app, image: "web:1", lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		m.advance(time.Second)
		m.ForgetCalls()
		from := time.Now()
		m.setPods()
		m.advance(time.Minute)
		m.wantState()
		wantHookCalls(t, m.hookCalls(from), "1s ExecSync [drain] within 19s", "6s StopContainer web/app within 14s", "6s StopPodSandbox web")
	})
}

// TestHook_ObservedLate checks a started container whose status could not be queried. Its preStop hook
// is called even if the pod is removed before podd observes the container.
func TestHook_ObservedLate(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.OnExec(func(string, []string) runtimetest.Program { return slow })
		m.start()
		m.Inject(runtimetest.Fault{Method: "ContainerStatus", Hangs: true})
		m.Inject(runtimetest.Fault{Method: "ListPodSandbox", AfterEffect: true, Delay: 4 * time.Second})
		m.setPods(pod(t, "web", `terminationGracePeriodSeconds: 20
containers: [{name: app, image: "web:1", lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		for len(m.Calls("StartContainer")) == 0 {
			m.advance(time.Millisecond)
		}
		m.advance(2100 * time.Millisecond) // the call that starts the container has returned, but its status was not read
		if n := len(m.report("web").Observed[0].Containers); n != 0 {
			t.Fatalf("observed containers: got %d, want none", n)
		}
		m.ForgetCalls()
		from := time.Now()
		m.setPods()
		m.advance(time.Minute)
		m.wantState()
		wantHookCalls(t, m.hookCalls(from), "10s ExecSync [drain] within 10s", "15s StopContainer web/app within 5s", "25s StopContainer web/app within 0s", "25s StopPodSandbox web")
	})
}

// TestRestart_StatusHangs checks a pod with the restart policy Never that a user restarts. The pod
// keeps running even if the status query of the new container hangs.
func TestRestart_StatusHangs(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(jobPod(t, "Never"))
		m.settle()
		first := m.report("job").Observed[0].Containers[0].ID
		m.Inject(runtimetest.Fault{Method: "ContainerStatus", Hangs: true, Match: func(request any) bool {
			return request.(*cri.ContainerStatusRequest).GetContainerId() != first
		}})
		m.Inject(runtimetest.Fault{Method: "ListPodSandbox", AfterEffect: true, Delay: 4 * time.Second})
		if err := m.current().router.Restart(t.Context(), key("job"), "app"); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Minute)
		if st := m.report("job").Pod.Status; st.Phase != v1.PodRunning || st.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("got phase %s with container statuses %+v, want Running with one restart", st.Phase, st.ContainerStatuses)
		}
	})
}
