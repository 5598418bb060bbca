package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime/runtimetest"
)

// calls are the runtime methods that change something, and the methods that podd's actions need.
var calls = []string{
	"RunPodSandbox", "PodSandboxStatus", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer",
	"StopContainer", "RemoveContainer", "ContainerStatus", "ImageStatus", "PullImage", "ExecSync",
}

// story is a scenario of a pod, and the state at its end.
type story struct {
	name string
	tell func(t *testing.T, m *machine)
	want []string
}

func stories(t *testing.T) []story {
	full := func(image string) *manifest.Pod {
		return pod(t, "web", fmt.Sprintf(`terminationGracePeriodSeconds: 4
initContainers: [{name: init, image: "init:1", command: [sh, -c, "exit 0"]}, {name: side, image: "side:1", restartPolicy: Always}]
containers: [{name: app, image: %q}]`, image))
	}
	job := pod(t, "job", `restartPolicy: Never
volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 3; exit 0"]}]`)
	return []story{
		{"start", func(t *testing.T, m *machine) {
			m.setPods(full("remote:1"))
			m.settle()
		}, []string{"web ready", "web/app running", "web/side running"}},
		{"edit", func(t *testing.T, m *machine) {
			m.setPods(full("web:1"))
			m.settle()
			m.setPods(full("remote:1"))
			m.settle()
		}, []string{"web ready", "web/app running", "web/side running"}},
		{"remove", func(t *testing.T, m *machine) {
			m.setPods(full("web:1"))
			m.settle()
			m.setPods()
			m.settle()
		}, nil},
		{"finish", func(t *testing.T, m *machine) {
			m.setPods(job)
			m.settle()
		}, []string{"job dead", "job/app exited"}},
		{"hooks", func(t *testing.T, m *machine) {
			p := pod(t, "web", `terminationGracePeriodSeconds: 4
containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [sleep, "1"]}}, preStop: {exec: {command: [sleep, "1"]}}}}]`)
			m.setPods(p)
			m.settle()
			m.setPods()
			m.settle()
			m.setPods(p)
			m.settle()
		}, []string{"web ready", "web/app running"}},
		{"crash", func(t *testing.T, m *machine) {
			m.setPods(full("web:1"))
			m.settle()
			m.ExitContainer("default/web/app", 1)
			m.settle()
			m.killSandboxes()
			m.settle()
		}, []string{"web ready", "web/app running", "web/side running"}},
	}
}

func (m *machine) killSandboxes() {
	if r := m.report("web"); r != nil {
		for _, inc := range r.Observed {
			m.KillSandbox(inc.ID)
		}
	}
}

// alive returns the sandboxes and containers without attempts and exit codes. It omits exited init
// containers, and exited containers if another container with the same name runs.
func (m *machine) alive() []string {
	var out []string
	for _, line := range slices.Concat(m.Sandboxes(), m.Containers()) {
		words := strings.Fields(strings.TrimPrefix(line, "default/"))
		out = append(out, words[0]+" "+words[2])
	}
	slices.Sort(out)
	return slices.DeleteFunc(out, func(s string) bool {
		name, isDead := strings.CutSuffix(s, " exited")
		return isDead && (slices.Contains(out, name+" running") || strings.HasSuffix(name, "/init"))
	})
}

// check compares the state with the expected end of the story.
func (s story) check(t *testing.T, m *machine) {
	t.Helper()
	if got := m.alive(); !slices.Equal(got, s.want) {
		t.Fatalf("in the end: got sandboxes and containers %v, want %v\n%s\n%s", got, s.want, m.state(), strings.Join(m.Containers(), "\n"))
	}
	if s.want == nil && (len(m.dirs()) > 0 || len(m.leftovers.attempts) > 0) {
		t.Fatalf("after the removal: got pod directories %v and log directories %v, want none", m.dirs(), m.leftovers.attempts)
	}
	m.checkStarts(t)
}

// checkStarts checks that the container of a job is started at most once.
func (m *machine) checkStarts(t *testing.T) {
	t.Helper()
	starts := 0
	for _, c := range m.Calls("StartContainer") {
		if c.Subject == "default/job/app" && c.Err == nil {
			starts++
		}
	}
	if starts > 1 {
		t.Fatalf("starts of a job: got %d, want at most one\n%s", starts, m.state())
	}
}

// TestCallsFail checks that each story has the same end if one of the first three calls of a method
// fails, before or after its effect.
func TestCallsFail(t *testing.T) {
	for _, s := range stories(t) {
		for _, method := range calls {
			for _, after := range []bool{false, true} {
				for nth, more := 1, true; more && nth <= 3; nth++ {
					t.Run(fmt.Sprintf("%s/%s %d after %v", s.name, method, nth, after), func(t *testing.T) {
						run(t, func(t *testing.T, m *machine) {
							m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "remote:1"}, PullDuration: time.Second})
							m.Inject(runtimetest.Fault{Method: method, Nth: nth, AfterEffect: after})
							m.start()
							s.tell(t, m)
							m.settle()
							m.settle()
							more = len(m.Calls(method)) >= nth // if there are fewer calls, the fault was not applied
							s.check(t, m)
						})
					})
				}
			}
		}
	}
}

// TestPoddDies checks that each story has the same end if podd is killed before or after
// any call, and another podd is started.
func TestPoddDies(t *testing.T) {
	for _, s := range stories(t) {
		for _, after := range []bool{false, true} {
			for nth, more := 1, true; more; nth++ {
				t.Run(fmt.Sprintf("%s/call %d after %v", s.name, nth, after), func(t *testing.T) {
					run(t, func(t *testing.T, m *machine) { more = playWithKill(t, m, s, nth, after) })
				})
			}
		}
	}
}

// playWithKill plays a story in which podd is killed at a call. It returns false if there are fewer
// calls.
func playWithKill(t *testing.T, m *machine, s story, nth int, after bool) bool {
	m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "remote:1"}, PullDuration: time.Second})
	struck := make(chan struct{})
	m.Inject(runtimetest.Fault{Nth: nth, AfterEffect: after, Match: isChange, Hangs: true, OnApply: func() {
		m.current().cancel()
		close(struck)
	}})
	m.start()
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-struck:
			m.kill()
			m.start()
		case <-over:
		}
	}()
	s.tell(t, m)
	m.settle()
	m.settle()
	close(over)
	<-ended
	s.check(t, m)
	select {
	case <-struck:
		return true
	default:
		return false
	}
}

// isChange reports whether a request changes something.
func isChange(request any) bool {
	switch request.(type) {
	case *cri.RunPodSandboxRequest, *cri.StopPodSandboxRequest, *cri.RemovePodSandboxRequest, *cri.CreateContainerRequest,
		*cri.StartContainerRequest, *cri.StopContainerRequest, *cri.RemoveContainerRequest, *cri.PullImageRequest, *cri.ExecSyncRequest:
		return true
	}
	return false
}
