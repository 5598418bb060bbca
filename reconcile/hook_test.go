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

var slow = runtimetest.Program{Ends: true, Run: 5 * time.Second}

// deeds are starts, commands and stops, each with the whole seconds since from, in
// order; those of one second in that of their words.
func (m *machine) deeds(from time.Time) []string {
	var all []string
	for _, c := range m.Calls("StartContainer", "ExecSync", "StopContainer", "StopPodSandbox") {
		text := strings.TrimPrefix(c.Method, "Stop") + " " + strings.TrimPrefix(c.Subject, "default/")
		switch q := c.Request.(type) {
		case *cri.ExecSyncRequest:
			text = fmt.Sprintf("%s within %d", q.Cmd, q.Timeout)
		case *cri.StopContainerRequest:
			text = fmt.Sprintf("stop %s within %d", c.Subject[len("default/"):], q.Timeout)
		}
		all = append(all, fmt.Sprintf("%ds %s", int(c.At.Sub(from).Seconds()), text))
	}
	slices.Sort(all)
	return all
}

func isDeeds(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("podd did\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// waits is what a container waits for as published, "" when it runs.
func (m *machine) waits(name string, container string) string {
	r := m.report(name)
	for _, c := range slices.Concat(r.Pod.Status.InitContainerStatuses, r.Pod.Status.ContainerStatuses) {
		if c.Name == container && c.State.Waiting != nil {
			return c.State.Waiting.Reason
		}
	}
	return ""
}

// TestHooksLife: hooks hold up what comes behind them, and share the grace.
func TestHooksLife(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newClinic(m)
		c.falls("warm", slow)
		c.falls("drain", slow)
		m.start()
		began := time.Now()
		m.want(pod(t, "web", hooked))
		m.pass(time.Second)
		if got := m.waits("web", "side"); got != "PodInitializing" || m.waits("web", "app") != "PodInitializing" {
			t.Errorf("the sidecar is %q", got)
		}
		m.pass(3 * time.Second)
		if got := m.waits("web", "app"); got != "PodInitializing" || m.waits("web", "behind") != "PodInitializing" || m.waits("web", "side") != "" {
			t.Errorf("the container is %q", got)
		}
		if phase := m.report("web").Pod.Status.Phase; phase != v1.PodPending {
			t.Errorf("the pod is %s", phase)
		}
		m.settle()
		isDeeds(t, m.deeds(began), "0s StartContainer web/side", "2s StartContainer web/app", "2s [warm $(WORD)] within 0", "7s StartContainer web/behind")
		if phase := m.report("web").Pod.Status.Phase; phase != v1.PodRunning || m.waits("web", "app") != "" {
			t.Errorf("the pod is %s", phase)
		}

		m.Forget()
		ends := time.Now()
		m.want()
		m.settle()
		m.is()
		isDeeds(t, m.deeds(ends), "0s [drain] within 20", "0s stop web/behind within 20", "5s stop web/app within 15", "9s PodSandbox web", "9s stop web/side within 11")
	})
}

// TestHookFails: a failed postStart hook ends its container with its preStop hook
// and grace, and is told as a kubelet does.
func TestHookFails(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var log bytes.Buffer
		m.log = slog.NewTextHandler(&log, nil)
		c := newClinic(m)
		c.falls("warm", bad)
		c.falls("drain", slow)
		m.start()
		m.want(pod(t, "web", hooked))
		m.pass(4 * time.Second)
		if got := m.waits("web", "app"); got != "PostStartHookError" {
			t.Errorf("it waits for %q\n%s", got, m.story())
		}
		if got := m.report("web").Decision.Steps[1].Why; got != "postStart hook failed: exit 1: [1mno disk" {
			t.Errorf("says %q", got)
		}
		m.pass(11 * time.Second)
		if got := m.waits("web", "app"); got != "CrashLoopBackOff" {
			t.Errorf("it waits for %q\n%s", got, m.story())
		}
		if got := m.report("web").Decision.Steps[1].Why; !strings.HasSuffix(got, "last exit 143, postStart hook failed: exit 1: [1mno disk") {
			t.Errorf("says %q", got)
		}
		c.heals("warm")
		m.settle()
		if m.waits("web", "app") != "" {
			t.Errorf("does not run\n%s", m.story())
		}
		// A failed preStop hook is told and delays nothing.
		c.falls("drain", bad)
		m.want()
		m.settle()
		m.is()
		m.kill()
		if want := `msg=failed pod=default/web action="make the preStop hook of app within 20s" err="exit 1: [1mno disk"`; strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not say once %s:\n%s", want, log.String())
		}
	})
}

// TestHookTooSlow: a hook that outlasts the grace is given up, and the container
// gets two seconds.
func TestHookTooSlow(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newClinic(m)
		c.falls("drain", runtimetest.Program{}) // never ends
		m.start()
		m.want(pod(t, "web", `terminationGracePeriodSeconds: 5
containers: [{name: app, image: "web:1", lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		m.settle()
		m.Forget()
		ends := time.Now()
		m.want()
		m.settle()
		isDeeds(t, m.deeds(ends), "0s [drain] within 5", "5s PodSandbox web", "5s stop web/app within 2")
	})
}

// TestHookAfterKill: a podd that comes after one that was killed amid a hook makes
// it again with what is left; what was over is not made again.
func TestHookAfterKill(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newClinic(m)
		c.falls("warm", slow)
		c.falls("drain", slow)
		web := pod(t, "web", hooked)
		m.start()
		m.want(web)
		m.pass(4 * time.Second)
		again := func() time.Time {
			m.kill()
			m.Forget()
			m.start()
			return time.Now()
		}
		came := again()
		m.settle()
		isDeeds(t, m.deeds(came), "0s [warm $(WORD)] within 0", "5s StartContainer web/behind")
		came = again()
		m.settle()
		isDeeds(t, m.deeds(came))

		ends := time.Now()
		m.want()
		m.pass(3 * time.Second)
		again()
		m.pass(5500 * time.Millisecond)
		again()
		m.settle()
		m.is()
		isDeeds(t, m.deeds(ends), "9s PodSandbox web", "9s stop web/side within 11")
	})
}

// TestHookWithoutJournal: without its memory podd makes no hook of what runs.
func TestHookWithoutJournal(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		newClinic(m)
		web := pod(t, "web", hooked)
		m.start()
		m.want(web)
		m.settle()
		m.kill()
		if err := os.Remove(m.journal(web)); err != nil {
			t.Fatal(err)
		}
		m.Forget()
		m.start()
		m.settle()
		isDeeds(t, m.deeds(time.Now()))
		if m.waits("web", "app") != "" {
			t.Error("it waits")
		}
	})
}

// TestHookKeepsNobodyWaiting: a hook under way keeps nobody waiting who ends the pod
// without grace.
func TestHookKeepsNobodyWaiting(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newClinic(m)
		c.falls("warm", runtimetest.Program{}) // never ends
		m.start()
		m.want(pod(t, "web", `terminationGracePeriodSeconds: 0
containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [warm]}}, preStop: {exec: {command: [drain]}}}}]`))
		m.pass(time.Minute)
		if m.waits("web", "app") != "ContainerCreating" {
			t.Error("it does not wait")
		}
		m.want()
		m.pass(time.Second)
		m.is()
		if c.times("drain") > 0 {
			t.Error("a hook was made without grace")
		}
	})
}

// TestGivenUpHookComesToItsEnd: the command of a hook is not cancelled, see
// plan.Cancellable; but nothing waits for it, and its answer counts for nothing.
func TestGivenUpHookComesToItsEnd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		c := newClinic(m)
		m.start()
		m.want(pod(t, "web", `terminationGracePeriodSeconds: 2
containers: [{name: app, image: "web:1", command: [sleep, inf], lifecycle: {preStop: {exec: {command: [drain]}}}}]`))
		m.settle()
		m.Forget()
		slowly := m.Inject(runtimetest.Fault{Method: "ExecSync", Delay: 3 * time.Second})
		ends := time.Now()
		m.want()
		m.settle()
		m.is()
		isDeeds(t, m.deeds(ends), "0s [drain] within 2", "2s stop web/app within 2", "4s PodSandbox web")
		if n := c.times("drain"); n != 1 {
			t.Errorf("the hook came %d times to its end", n)
		}
		slowly()

		c.falls("warm", runtimetest.Program{Ends: true, Code: 1, Run: 5 * time.Second})
		m.want(pod(t, "web", `terminationGracePeriodSeconds: 10
containers: [{name: app, image: "web:1", command: [sleep, inf], lifecycle: {postStart: {exec: {command: [warm]}}}}]`))
		m.pass(time.Second)
		if err := m.life().router.Restart(t.Context(), key("web"), "app"); err != nil {
			t.Fatal(err)
		}
		m.pass(6 * time.Second)
		if got := m.waits("web", "app"); got != "" && got != "ContainerCreating" {
			t.Errorf("it waits for %q\n%s", got, m.story())
		}
		m.Inject(runtimetest.Fault{Method: "ExecSync", Hang: true})
		m.pass(5 * time.Second) // the new one's hook hangs
		m.want()
		m.pass(13 * time.Second)
		m.is()
	})
}
