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

// calls are those that change something, and those that effects rest on.
var calls = []string{
	"RunPodSandbox", "PodSandboxStatus", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer",
	"StopContainer", "RemoveContainer", "ContainerStatus", "ImageStatus", "PullImage", "ExecSync",
}

// story is a life of a pod, and what is there at its end.
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
			m.want(full("remote:1"))
			m.settle()
		}, []string{"web ready", "web/app running", "web/side running"}},
		{"edit", func(t *testing.T, m *machine) {
			m.want(full("web:1"))
			m.settle()
			m.want(full("remote:1"))
			m.settle()
		}, []string{"web ready", "web/app running", "web/side running"}},
		{"remove", func(t *testing.T, m *machine) {
			m.want(full("web:1"))
			m.settle()
			m.want()
			m.settle()
		}, nil},
		{"finish", func(t *testing.T, m *machine) {
			m.want(job)
			m.settle()
		}, []string{"job dead", "job/app exited"}},
		{"hooks", func(t *testing.T, m *machine) {
			p := pod(t, "web", `terminationGracePeriodSeconds: 4
containers: [{name: app, image: "web:1", lifecycle: {postStart: {exec: {command: [sleep, "1"]}}, preStop: {exec: {command: [sleep, "1"]}}}}]`)
			m.want(p)
			m.settle()
			m.want()
			m.settle()
			m.want(p)
			m.settle()
		}, []string{"web ready", "web/app running"}},
		{"crash", func(t *testing.T, m *machine) {
			m.want(full("web:1"))
			m.settle()
			m.Exit("default/web/app", 1)
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

// alive are sandboxes and containers without attempts and codes; of a running
// container the dead ones of its name are left out.
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

// check holds the end of a story against what it should be.
func (s story) check(t *testing.T, m *machine) {
	t.Helper()
	if got := m.alive(); !slices.Equal(got, s.want) {
		t.Fatalf("there is %v, want %v\n%s\n%s", got, s.want, m.story(), strings.Join(m.Containers(), "\n"))
	}
	if s.want == nil && (len(m.dirs()) > 0 || len(m.leftovers.attempts) > 0) {
		t.Fatalf("left: %v %v", m.dirs(), m.leftovers.attempts)
	}
	m.checkStarts(t)
}

// checkStarts: a job that ran is not run again.
func (m *machine) checkStarts(t *testing.T) {
	t.Helper()
	starts := 0
	for _, c := range m.Calls("StartContainer") {
		if c.Subject == "default/job/app" && c.Err == nil {
			starts++
		}
	}
	if starts > 1 {
		t.Fatalf("a job was started %d times\n%s", starts, m.story())
	}
}

// TestCallsFail: each call of each life fails once, before or after its effect,
// and all ends as if it had not.
func TestCallsFail(t *testing.T) {
	for _, s := range stories(t) {
		for _, method := range calls {
			for _, after := range []bool{false, true} {
				for nth := 1; nth <= 3; nth++ {
					t.Run(fmt.Sprintf("%s/%s %d after %v", s.name, method, nth, after), func(t *testing.T) {
						run(t, func(t *testing.T, m *machine) {
							m.AddRemote(runtimetest.Remote{Image: runtimetest.Image{Name: "remote:1"}, Takes: time.Second})
							m.Inject(runtimetest.Fault{Method: method, Nth: nth, After: after})
							m.start()
							s.tell(t, m)
							m.settle()
							m.settle()
							s.check(t, m)
						})
					})
				}
			}
		}
	}
}

// TestPoddDies: podd ends before or after each call of each life and another
// one starts; all ends as if it had not.
func TestPoddDies(t *testing.T) {
	for _, s := range stories(t) {
		for _, after := range []bool{false, true} {
			for nth, more := 1, true; more; nth++ {
				t.Run(fmt.Sprintf("%s/call %d after %v", s.name, nth, after), func(t *testing.T) {
					run(t, func(t *testing.T, m *machine) { more = dies(t, m, s, nth, after) })
				})
			}
		}
	}
}

// dies tells a story in which podd dies at a call; false when there are fewer.
func dies(t *testing.T, m *machine, s story, nth int, after bool) bool {
	m.AddRemote(runtimetest.Remote{Image: runtimetest.Image{Name: "remote:1"}, Takes: time.Second})
	struck := make(chan struct{})
	m.Inject(runtimetest.Fault{Nth: nth, After: after, Match: changes, Hang: true, Do: func() {
		m.life().cancel()
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

// changes says of a request that what it asks for changes something.
func changes(request any) bool {
	switch request.(type) {
	case *cri.RunPodSandboxRequest, *cri.StopPodSandboxRequest, *cri.RemovePodSandboxRequest, *cri.CreateContainerRequest,
		*cri.StartContainerRequest, *cri.StopContainerRequest, *cri.RemoveContainerRequest, *cri.PullImageRequest, *cri.ExecSyncRequest:
		return true
	}
	return false
}
