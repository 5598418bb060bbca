//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/server"
)

// execHook returns a hook that runs script in the container.
func execHook(script string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: execHandler(script).Exec}
}

// scriptWithUp returns a script like that of the function serve, which also creates the file /up
// when it serves. Hooks wait for this file.
func scriptWithUp(name string) string {
	return strings.Replace(serve(name), "sleep 3600", "touch /up; sleep 3600", 1)
}

// hookAfterUp returns a hook that waits for the file /up and then runs script.
func hookAfterUp(script string) *v1.LifecycleHandler {
	return execHook("until [ -e /up ]; do sleep 0.1; done; " + script)
}

func withHooks(c v1.Container, postStart, preStop *v1.LifecycleHandler) v1.Container {
	c.Lifecycle = &v1.Lifecycle{PostStart: postStart, PreStop: preStop}
	return c
}

// TestHookOrder checks that a postStart hook delays the start of the next container, and that a
// preStop hook delays SIGTERM.
func TestHookOrder(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	web := withHooks(shell("main", scriptWithUp("main")), hookAfterUp("until [ -e /trace/go ]; do sleep 0.1; done; "+note("postStart")), execHook(note("preStop")))
	p := d.pod("web", web, shell("behind", "trap 'exit 0' TERM; "+note("behind runs")+"sleep 3600 & wait"))
	p.Spec.TerminationGracePeriodSeconds = new(int64(60))
	d.apply(p)
	d.untilPod("waits for its hook", "web", func(p *server.PodView) error {
		for _, s := range p.Pod.Status.ContainerStatuses {
			if s.Name == "main" && len(d.containers("web", "main")) == 1 && s.State.Waiting != nil && s.State.Waiting.Message == "its postStart hook is running" {
				return nil
			}
		}
		return fmt.Errorf("got containers %+v, want a waiting container after the container with the hook", p.Pod.Status.ContainerStatuses)
	})
	d.untilNoted("main runs")
	d.touch("go")
	d.untilApplied("web")
	d.untilNoted("main runs", "postStart", "behind runs")
	d.apply(d.pod("web", shell("main", serve("next"))))
	d.untilApplied("web")
	d.untilNoted("main runs", "postStart", "behind runs", "preStop", "main TERM", "next runs")
}

// TestHook_HTTPGet checks postStart and preStop hooks with httpGet.
func TestHook_HTTPGet(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	call := func(path string) *v1.LifecycleHandler {
		return &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/cgi-bin/" + path, Port: intstr.FromString("web")}}
	}
	script := func(name string) string {
		return fmt.Sprintf("printf '#!/bin/sh\\necho %s >>/trace/notes\\necho\\n' >/tmp/www/cgi-bin/%s; chmod +x /tmp/www/cgi-bin/%s; ", name, name, name)
	}
	main := withHooks(shell("main", "mkdir -p /tmp/www/cgi-bin; "+script("hello")+script("bye")+"trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp/www & wait"), nil, call("bye"))
	main.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	main.ReadinessProbe = probeEverySecond(v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromString("web")}})
	side := withHooks(shell("side", "mkdir -p /tmp/www/cgi-bin; "+script("hello")+"trap 'exit 0' TERM; echo ok >/tmp/www/up; httpd -f -p 8081 -h /tmp/www & wait"),
		execHook("until wget -q -O /dev/null http://127.0.0.1:8081/up; do sleep 0.1; done"), nil)
	last := withHooks(shell("last", "trap 'exit 0' TERM; sleep 3600 & wait"), call("hello"), nil)
	last.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8081}}
	d.apply(d.pod("web", main, side, last))
	d.untilApplied("web")
	d.untilNoted("hello")
	d.remove("web")
	d.untilGone("web")
	d.untilNoted("hello", "bye")
}

// TestHook_Sleep checks that a postStart hook with the action sleep delays the start of the next
// container, and that a preStop hook with this action delays SIGTERM.
func TestHook_Sleep(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	proxy := d.throughProxy()
	d.start()
	sleeps := func(seconds int64) *v1.LifecycleHandler {
		return &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: seconds}}
	}
	p := d.pod("web", withHooks(shell("main", serve("main")), sleeps(3), sleeps(4)), shell("behind", serve("behind")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(60))
	d.apply(p)
	d.untilApplied("web")
	d.untilNoted("main runs", "behind runs")
	main, behind := d.containerStatus("web", "main", 0), d.containerStatus("web", "behind", 0)
	if waited := time.Duration(behind.GetStartedAt() - main.GetStartedAt()); waited < 3*time.Second {
		t.Errorf("time from the start of the container with the postStart hook to the start of the next container: got %s, want at least 3s", waited)
	}
	d.remove("web")
	d.untilGone("web")
	// The container with the preStop hook is stopped with a shorter grace period, because the hook has used
	// at least 4 of the 60 seconds.
	graces := slices.Sorted(slices.Values(proxy.gracePeriods(t)))
	if len(graces) != 2 || graces[0] > 56 || graces[1] <= 56 {
		t.Errorf("grace periods in the calls of StopContainer: got %v seconds, want one of at most 56 seconds and one of more than 56 seconds", graces)
	}
}

// TestStopSignal checks that a container is stopped with its stopSignal. If the runtime does not
// support stopSignal, the container must not start.
func TestStopSignal(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	signalled := func(name, script string) *v1.Pod {
		c := shell("main", script)
		c.Lifecycle = &v1.Lifecycle{StopSignal: new(v1.SIGUSR1)}
		p := d.pod(name, c)
		p.Spec.OS, p.Spec.TerminationGracePeriodSeconds = &v1.PodOS{Name: v1.Linux}, new(int64(600))
		return p
	}
	script := "trap '" + note("main TERM") + "' TERM; trap '" + note("main USR1") + "exit 0' USR1; " + note("main runs") + "while :; do sleep 3600 & wait; done"
	r, err := cri.NewRuntimeServiceClient(d.dial()).Version(t.Context(), &cri.VersionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d.apply(signalled("web", script))
	if !(runtime.Node{Name: r.GetRuntimeName(), Version: r.GetRuntimeVersion()}).HasMinVersion(runtime.MinVersions{"containerd": {2, 3}, "cri-o": {1, 34}}) {
		d.untilProblem("web", "lifecycle.stopSignal of container main is not supported by "+r.GetRuntimeName()+" "+r.GetRuntimeVersion())
		return
	}
	d.untilApplied("web")
	d.untilNoted("main runs")
	// podd uses the stop signal even if the manifest is removed while podd does not run.
	d.kill()
	d.remove("web")
	d.start()
	d.untilNoted("main runs", "main USR1")
	d.untilGone("web")
}

// TestHook_PostStartFails checks that a container is stopped and restarted when its postStart hook fails,
// and that podd shows the reason.
func TestHook_PostStartFails(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", withHooks(shell("main", scriptWithUp("main")), hookAfterUp("test -e /trace/go || { echo no disk; exit 3; }"), execHook(note("preStop")))))
	p := d.untilPod("fails and backs off", "web", func(p *server.PodView) error {
		if len(p.Decisions) == 0 || p.Decisions[0].Reason != "CrashLoopBackOff" {
			return fmt.Errorf("got the decisions %+v, want one with the reason CrashLoopBackOff first", p.Decisions)
		}
		return nil
	})
	if why, want := p.Decisions[0].Why, "postStart hook failed: exit 3: no disk"; !strings.HasSuffix(why, want) {
		t.Errorf("reason why the pod waits: got %q, want the suffix %q", why, want)
	}
	if out, _ := d.verb("why", "web"); !strings.Contains(out, "postStart hook failed: exit 3: no disk") {
		t.Errorf("podd why: got\n%s, want %q in it", out, "postStart hook failed: exit 3: no disk")
	}
	d.touch("go")
	d.untilApplied("web")
	// There are at least two attempts, because the checks may take longer than the back-off.
	round := []string{"main runs", "preStop", "main TERM"}
	d.eventually("the pod has noted its starts and stops", func() error {
		got := d.notes()
		if n := len(got) / len(round); n < 2 || !slices.Equal(got, append(slices.Repeat(round, n), round[0])) {
			return fmt.Errorf("got notes %q, want %q at least twice and then %q", got, round, round[0])
		}
		return nil
	})
}

// TestHook_GracePeriodAfterKill kills podd while a preStop hook runs. After its restart, podd must run
// the hook again, but must not extend the grace period by the time that the hook has used. podd
// must restart within the grace period; therefore this period is long.
func TestHook_GracePeriodAfterKill(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	web := d.pod("web", withHooks(shell("main", ignoreTerm("main")), nil, execHook(note("preStop")+"sleep 3600")))
	web.Spec.TerminationGracePeriodSeconds = new(int64(30))
	d.apply(web)
	d.untilApplied("web")
	pid := d.container("web", "main").PID
	p.onCall(nil)
	d.remove("web")
	d.untilNote("preStop")
	d.crash()
	d.untilGone("web")
	if alive(pid) {
		t.Errorf("process %d after its grace period: got it alive, want it killed", pid)
	}
	commands := 0
	for _, c := range p.recordedCalls() {
		if c.Method == "ExecSync" {
			commands++
		}
	}
	graces := p.gracePeriods(t)
	if commands != 2 || !slices.Equal(graces, []int64{2}) {
		t.Errorf("got %d calls of ExecSync for the hook, grace periods %v of the container (seconds); want 2 calls, one grace period of 2 seconds", commands, graces)
	}
}

// TestHook_HeadersAreNotPrinted checks that podd never prints the header values of a hook.
func TestHook_HeadersAreNotPrinted(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	h := &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/?t=" + password, Port: intstr.FromInt32(1), HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: password}}}}
	d.apply(d.pod("web", withHooks(shell("main", serve("main")), h, nil)))
	d.untilPod("fails", "web", func(p *server.PodView) error {
		if len(p.Decisions) == 0 || !strings.Contains(p.Decisions[0].Why, "postStart hook failed: ") {
			return fmt.Errorf("got the decisions %+v, want one about a failed postStart hook first", p.Decisions)
		}
		return nil
	})
	out, _ := d.verb("why", "web")
	log, err := os.ReadFile(d.logFile())
	if err != nil || strings.Contains(string(log), password) || strings.Contains(out, password) {
		t.Errorf("got output of podd why %s and podd's log\n%s (read error %v), want no password in either", out, log, err)
	}
}

// TestActiveDeadline checks that podd stops a pod at its active deadline, that it runs the preStop hooks
// of the pod, and that the phase of the pod is then Failed. The deadline is long, because the start of
// the pod counts.
func TestActiveDeadline(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", withHooks(shell("main", serve("main")), nil, execHook(note("preStop"))))
	p.Spec.ActiveDeadlineSeconds = new(int64(60))
	p.Spec.TerminationGracePeriodSeconds = new(int64(60))
	d.apply(p)
	d.untilNoted("main runs", "preStop", "main TERM")
	d.crash()
	d.untilPod("has failed", "web", func(p *server.PodView) error {
		if s := p.Pod.Status; s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" || len(s.ContainerStatuses) == 0 || s.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("got the status %+v, want DeadlineExceeded and a terminated container", s)
		}
		return nil
	})
	if out, _ := d.verb("why", "web"); !strings.Contains(out, "failed: Pod was active on the node longer than the specified deadline") {
		t.Errorf("podd why: got\n%s\nwant %q in it", out, "failed: Pod was active on the node longer than the specified deadline")
	}
	d.untilNoted("main runs", "preStop", "main TERM")
}
