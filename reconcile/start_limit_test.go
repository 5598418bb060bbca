package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime/runtimetest"
)

// deadServer is a Disk. The volumes of pods with names that begin with nfs are on a server that stops
// responding. During that time Prepare ignores the end of its context, as a stat of such a volume
// does.
type deadServer struct {
	effect.Disk

	mu   sync.Mutex    // guards dead
	dead chan struct{} // closed when the server responds again; nil while it responds
}

func (d *deadServer) Prepare(ctx context.Context, p *manifest.Pod, of render.Volumes) (map[string]string, error) {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead != nil && strings.HasPrefix(p.Key.Name, "nfs") {
		<-dead
	}
	return d.Disk.Prepare(ctx, p, of)
}

// die makes the server stop responding until revive is called.
func (d *deadServer) die() (revive func()) {
	dead := make(chan struct{})
	d.set(dead)
	return func() { d.set(nil); close(dead) }
}

func (d *deadServer) set(dead chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = dead
}

// podsNamed returns n pods of one container each.
func podsNamed(t *testing.T, prefix string, n int) []*manifest.Pod {
	var all []*manifest.Pod
	for i := range n {
		all = append(all, pod(t, fmt.Sprintf("%s%d", prefix, i), web))
	}
	return all
}

// wantRunning fails the test unless a container of each pod runs.
func (m *machine) wantRunning(pods ...string) {
	m.t.Helper()
	for _, name := range pods {
		r := m.report(name)
		if r == nil || r.Pod.Status.Phase != v1.PodRunning {
			m.t.Errorf("report of pod %s: got %v, want phase Running:\n%s", name, r, m.state())
		}
	}
}

// showsProblem reports whether the last decision contains a problem of the pod or of one of its
// containers.
func (m *machine) showsProblem(name string) bool {
	d := m.report(name).Decision
	return d.NeedsUser || slices.ContainsFunc(d.Steps, func(s plan.Step) bool { return s.NeedsUser })
}

// TestStartLimit_HangingVolumes checks that containers with hanging volumes, in any number, do not
// count toward the limit of concurrent starts.
func TestStartLimit_HangingVolumes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		disk := &deadServer{Disk: m.disk}
		m.disk = disk
		m.start()
		pods := podsNamed(t, "nfs", 8) // twice the limit
		m.setPods(pods...)
		m.settle()
		revive := disk.die()
		for _, p := range pods {
			m.ExitContainer("default/"+p.Key.Name+"/app", 1)
		}
		m.advance(2 * time.Minute)
		m.setPods(append(pods, pod(t, "web", web))...)
		m.settle()
		m.wantRunning("web")
		revive()
		m.settle()
		for _, p := range pods {
			m.wantRunning(p.Key.Name)
		}
	})
}

// TestStartLimit_ReservedNames checks that starts that wait for a name do not count toward the
// limit of concurrent starts. A pod with only reserved names shows this problem.
func TestStartLimit_ReservedNames(t *testing.T) {
	for _, method := range []string{"RunPodSandbox", "CreateContainer"} {
		t.Run(method, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				free := m.Inject(runtimetest.Fault{Method: method, Err: reserved, Match: func(q any) bool {
					return strings.HasPrefix(podName(q), "held")
				}})
				m.start()
				pods := podsNamed(t, "held", 8)
				m.setPods(pods...)
				m.advance(2 * time.Second)
				m.setPods(append(pods, pod(t, "web", web))...)
				m.advance(5 * time.Second)
				m.wantRunning("web")
				shown := map[string]bool{}
				for range 60 {
					m.advance(time.Second)
					for _, p := range pods {
						shown[p.Key.Name] = shown[p.Key.Name] || m.showsProblem(p.Key.Name)
					}
				}
				for _, p := range pods {
					if !shown[p.Key.Name] {
						t.Errorf("problems of %s: got none, want one:\n%s", p.Key, m.report(p.Key.Name).Decision)
					}
				}
				m.ForgetCalls()
				m.advance(10 * time.Minute)
				if n := len(m.Calls(method)); n > 8*12*51 { // each pod tries about one attempt number a minute, with a retry every 100 ms for 5 s
					t.Errorf("calls in 10 minutes: got %d, want at most %d", n, 8*12*51)
				}
				free()
				m.advance(2 * time.Minute)
				for _, p := range pods {
					m.wantRunning(p.Key.Name)
				}
			})
		})
	}
}

// podName returns the name of the pod whose sandbox or container a request creates.
func podName(request any) string {
	switch q := request.(type) {
	case *cri.RunPodSandboxRequest:
		return q.GetConfig().GetMetadata().GetName()
	case *cri.CreateContainerRequest:
		return q.GetSandboxConfig().GetMetadata().GetName()
	}
	return ""
}

// twoContainers is a pod with one container that can run while the other is started.
const twoContainers = `terminationGracePeriodSeconds: 5
containers: [{name: main, image: "web:1"}, {name: app, image: "web:1"}]`

// startBlocks are the causes for which the start of a container does not return. Each has the time
// within which the pod must then have stopped, and a function that makes the start block.
var startBlocks = map[string]struct {
	within time.Duration
	block  func(m *machine, disk *deadServer) (release func())
}{
	"it waits at the gate": {time.Second, func(m *machine, _ *deadServer) func() {
		release := m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Hangs: true})
		m.setPods(append(slices.Collect(maps.Keys(m.shared)), podsNamed(m.t, "other", 20)...)...)
		m.advance(90 * time.Second) // twice the limit are in progress
		return release
	}},
	"its volume hangs": {time.Second, func(_ *machine, disk *deadServer) func() { return disk.die() }},
	"its name is reserved": {time.Second, func(m *machine, _ *deadServer) func() {
		return m.Inject(runtimetest.Fault{Method: "CreateContainer", Err: reserved})
	}},
	"the call to create it hangs": {11 * time.Second, func(m *machine, _ *deadServer) func() {
		return m.Inject(runtimetest.Fault{Method: "CreateContainer", Hangs: true})
	}},
	"the call to start it hangs": {11 * time.Second, func(m *machine, _ *deadServer) func() {
		return m.Inject(runtimetest.Fault{Method: "StartContainer", Hangs: true})
	}},
}

// TestStopDuringStart checks that a pod is stopped although the start of one of its containers
// hangs. The pod is evicted or removed, exceeds its deadline, or is on a node that shuts down. If
// the start has not called the runtime, nothing waits for it; otherwise the call gets ten seconds
// to return.
func TestStopDuringStart(t *testing.T) {
	ends := maps.Clone(protections)
	ends["removal"] = protection{"", func(m *machine, _ *manifest.Pod) { m.setPods() }}
	ends["deadline"] = protection{plan.ReasonDeadlineExceeded, func(m *machine, _ *manifest.Pod) { m.advance(7 * time.Second) }}
	for name, block := range startBlocks {
		for cause, test := range ends {
			t.Run(name+", "+cause, func(t *testing.T) {
				run(t, func(t *testing.T, m *machine) {
					disk := &deadServer{Disk: m.disk}
					m.disk = disk
					m.start()
					spec := twoContainers
					if test.reason == plan.ReasonDeadlineExceeded {
						spec = "activeDeadlineSeconds: 150\n" + spec
					}
					p := pod(t, "nfs", spec)
					began := time.Now()
					m.setPods(p)
					m.settle()
					release := block.block(m, disk)
					m.advance(140*time.Second - time.Since(began))
					m.ExitContainer("default/nfs/app", 1)
					m.advance(3 * time.Second)
					test.end(m, p)
					m.advance(block.within)
					if slices.ContainsFunc(m.Containers(), func(c string) bool { return strings.HasPrefix(c, "default/nfs/main 0 running") }) {
						t.Errorf("container main, whose start succeeded, still runs, want it stopped:\n%s\n%s", strings.Join(m.Containers(), "\n"), m.report("nfs").Decision)
					}
					release()
					m.advance(3 * time.Minute)
					m.wantEnded(p, test.reason)
				})
			})
		}
	}
}

// wantEnded fails the test if a container of the pod runs. If reason is not "", the pod must also have
// failed with this reason. If reason is "", no report and no directory of the pod may remain.
func (m *machine) wantEnded(p *manifest.Pod, reason string) {
	m.t.Helper()
	for _, c := range m.Containers() {
		if strings.HasPrefix(c, "default/"+p.Key.Name+"/") && strings.Contains(c, "running") {
			m.t.Errorf("running containers of the pod: got %q, want none", c)
		}
	}
	r := m.report(p.Key.Name)
	switch {
	case reason == "" && (r != nil || slices.Contains(m.dirs(), string(p.UID))):
		m.t.Errorf("after the removal: got report %v and directories %v, want none", r, m.dirs())
	case reason != "" && (r == nil || r.Pod.Status.Phase != v1.PodFailed || r.Pod.Status.Reason != reason):
		m.t.Errorf("report of the pod: got %+v, want phase Failed with reason %s", r, reason)
	}
}

// TestStopDuringStart_Started checks that a container whose start returns after its pod was removed
// is stopped with the grace period of the pod.
func TestStopDuringStart_Started(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		p := pod(t, "nfs", twoContainers)
		m.setPods(p)
		m.settle()
		m.Inject(runtimetest.Fault{Method: "StartContainer", Delay: 4 * time.Second})
		m.ExitContainer("default/nfs/app", 1)
		m.advance(time.Second)
		m.ForgetCalls()
		m.setPods()
		m.settle()
		m.settle()
		m.wantState()
		var stopped []string
		for _, c := range m.Calls("StopContainer") {
			if q := c.Request.(*cri.StopContainerRequest); q.Timeout > 0 {
				stopped = append(stopped, c.Subject)
			}
		}
		slices.Sort(stopped)
		if want := []string{"default/nfs/app", "default/nfs/main"}; !slices.Equal(stopped, want) {
			t.Errorf("stops with a grace period: got %q, want %q", stopped, want)
		}
	})
}
