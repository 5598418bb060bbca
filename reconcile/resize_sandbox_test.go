package reconcile_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/render"
	"podd/runtime/runtimetest"
)

// A podCgroup is the cgroup of the only pod of a test. It logs its changes, and the requests to change
// the resources of the pod and its containers, in one order.
type podCgroup struct {
	mu     sync.Mutex // guards the following fields
	limits render.Cgroup
	isV2   bool  // whether read returns inexact shares, as cgroup.ReadLimits does on cgroup v2
	err    error // error of the next changes
	log    []string
}

// pageSize is the unit to which the cgroup rounds its memory limit down, as the kernel does.
const pageSize = 4096

// attach makes podd use the cgroup. It must be called before podd is started.
func (c *podCgroup) attach(m *machine) {
	m.options = func(o *reconcile.Options) { o.Effects.MakeCgroup, o.Effects.ReadCgroup = c.make, c.read }
	m.Inject(runtimetest.Fault{Match: func(request any) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch q := request.(type) {
		case *cri.UpdatePodSandboxResourcesRequest:
			r := q.GetResources()
			c.log = append(c.log, fmt.Sprintf("announce %dMi %d shares %d/%d", r.GetMemoryLimitInBytes()>>20, r.GetCpuShares(), r.GetCpuQuota(), r.GetCpuPeriod()))
		case *cri.UpdateContainerResourcesRequest:
			c.log = append(c.log, fmt.Sprintf("container %dMi", q.GetLinux().GetMemoryLimitInBytes()>>20))
		}
		return false
	}})
}

func (c *podCgroup) make(limits render.Cgroup) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("cgroup %dMi", limits.Memory>>20))
	if c.err == nil {
		c.limits = limits.MergedInto(c.limits)
	}
	return c.err
}

func (c *podCgroup) read(desired render.Cgroup) (render.Cgroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limits := c.limits
	if c.isV2 {
		limits.CPUShares = cmp.Or(desired.CPUShares, 80)
	}
	if rounded := limits.Memory / pageSize * pageSize; desired.Memory/pageSize*pageSize != rounded {
		limits.Memory = rounded
	}
	return limits, nil
}

func (c *podCgroup) setError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// takeLog returns the log since the last call of takeLog.
func (c *podCgroup) takeLog() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

func (c *podCgroup) wantLog(t *testing.T, want ...string) {
	t.Helper()
	if got := c.takeLog(); !slices.Equal(got, want) {
		t.Errorf("changes: got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestResize_Announced checks that the runtime learns the new resources of a pod before the pod's
// cgroup is changed: before the containers grow and after they have shrunk. A runtime that does not
// implement the call does not prevent the resize.
func TestResize_Announced(t *testing.T) {
	for name, err := range map[string]error{
		"implemented":   nil,
		"unimplemented": status.Error(codes.Unimplemented, "unknown method UpdatePodSandboxResources for service runtime.v1.RuntimeService"),
		"unknown":       status.Error(codes.Unknown, "not implemented yet"),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				var cgroup podCgroup
				cgroup.attach(m)
				if err != nil {
					m.Inject(runtimetest.Fault{Method: "UpdatePodSandboxResources", Err: err})
				}
				m.start()
				m.setPods(sizedPod(t, "web", "64Mi", ""))
				m.settle()
				cgroup.wantLog(t, "cgroup 64Mi")
				m.setPods(sizedPod(t, "web", "128Mi", ""))
				m.settle()
				m.wantMemory("web", "128Mi", 128<<20)
				cgroup.wantLog(t, "announce 128Mi 102 shares 100000/100000", "cgroup 128Mi", "container 128Mi", "cgroup 128Mi")
				m.setPods(sizedPod(t, "web", "32Mi", ""))
				m.settle()
				m.wantMemory("web", "32Mi", 32<<20)
				cgroup.wantLog(t, "cgroup 128Mi", "container 32Mi", "announce 32Mi 102 shares 100000/100000", "cgroup 32Mi")
				if r := m.report("web"); r.IsResizePending {
					t.Errorf("resize: got it pending, want it complete: %+v", r.Decision)
				}
			})
		})
	}
}

// TestResize_AnnouncedOnce checks that the limits to which several containers grow are announced once,
// although the containers are resized at the same time.
func TestResize_AnnouncedOnce(t *testing.T) {
	two := func(memory string) *manifest.Pod {
		return pod(t, "web", fmt.Sprintf(`containers:
- {name: app, image: "web:1", resources: {limits: {memory: %[1]s}}}
- {name: db, image: "web:1", resources: {limits: {memory: %[1]s}}}`, memory))
	}
	run(t, func(t *testing.T, m *machine) {
		var cgroup podCgroup
		cgroup.attach(m)
		m.start()
		m.setPods(two("64Mi"))
		m.settle()
		cgroup.takeLog()
		m.setPods(two("96Mi"))
		m.settle()
		log := cgroup.takeLog()
		announced := slices.DeleteFunc(slices.Clone(log), func(line string) bool { return !strings.HasPrefix(line, "announce ") })
		if want := []string{"announce 192Mi 2 shares 0/0"}; !slices.Equal(announced, want) {
			t.Errorf("announcements: got %q, want %q; all changes: %q", announced, want, log)
		}
	})
}

// TestResize_RoundedMemory checks that a memory limit that the kernel has rounded down is not announced
// again.
func TestResize_RoundedMemory(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var cgroup podCgroup
		cgroup.attach(m)
		m.start()
		m.setPods(sizedPod(t, "web", "90M", ""))
		m.settle()
		cgroup.takeLog()
		m.setPods(sizedPod(t, "web", "100M", ""))
		m.settle()
		m.wantMemory("web", "100M", 100e6)
		cgroup.wantLog(t, "announce 95Mi 102 shares 100000/100000", "cgroup 95Mi", "container 95Mi", "cgroup 95Mi")
	})
}

// TestResize_RequestAnnounced checks that a new CPU request is announced even if the pod's cgroup keeps
// its weight.
func TestResize_RequestAnnounced(t *testing.T) {
	requesting := func(cpu string) *manifest.Pod {
		return pod(t, "web", fmt.Sprintf(`containers: [{name: app, image: "web:1", resources: {limits: {cpu: 1, memory: 64Mi}, requests: {cpu: %s}}}]`, cpu))
	}
	run(t, func(t *testing.T, m *machine) {
		cgroup := podCgroup{isV2: true}
		cgroup.attach(m)
		m.start()
		m.setPods(requesting("100m"))
		m.settle()
		cgroup.takeLog()
		m.setPods(requesting("110m"))
		m.settle()
		cgroup.wantLog(t, "cgroup 64Mi", "container 64Mi", "announce 64Mi 112 shares 100000/100000", "cgroup 64Mi")
	})
}

// TestResize_Rejected checks that a resize that the runtime rejects changes nothing, that its reason is
// shown, and that it is retried.
func TestResize_Rejected(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var cgroup podCgroup
		cgroup.attach(m)
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		cgroup.takeLog()
		accept := m.Inject(runtimetest.Fault{Method: "UpdatePodSandboxResources", Err: errors.New("NRI sandbox update failed: too large")})
		m.setPods(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.wantMemory("web", "64Mi", 64<<20)
		if got := cgroup.takeLog(); slices.ContainsFunc(got, func(line string) bool { return !strings.HasPrefix(line, "announce 128Mi ") }) || len(got) == 0 {
			t.Errorf("changes after a rejected increase: got %q, want only announcements of 128Mi", got)
		}
		const want = "rejected the new size of the pod (UpdatePodSandboxResources): NRI sandbox update failed: too large"
		if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, want) {
			t.Errorf("condition PodResizeInProgress after a rejected increase: got %q, want an error that contains %q", got, want)
		}

		// A decrease is announced when the containers have shrunk. Only the cgroup keeps its limit.
		m.setPods(sizedPod(t, "web", "32Mi", ""))
		m.settle()
		m.wantMemory("web", "32Mi", 32<<20)
		if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") || !strings.Contains(got, want) {
			t.Errorf("condition PodResizeInProgress after a rejected decrease: got %q, want an error that contains %q", got, want)
		}
		if limits, _ := cgroup.read(render.Cgroup{}); limits.Memory != 64<<20 {
			t.Errorf("memory limit of the pod after a rejected decrease: got %d, want %d", limits.Memory, 64<<20)
		}
		accept()
		m.advance(10 * time.Minute)
		if limits, _ := cgroup.read(render.Cgroup{}); limits.Memory != 32<<20 {
			t.Errorf("memory limit of the pod after the runtime has accepted the decrease: got %d, want %d", limits.Memory, 32<<20)
		}
		if got := m.condition("web", v1.PodResizeInProgress); got != "" {
			t.Errorf("condition PodResizeInProgress: got %q, want none", got)
		}
	})
}

// TestResize_RejectedRestart checks that a container that was stopped to be resized is started again
// even if the runtime rejects the new resources of the pod.
func TestResize_RejectedRestart(t *testing.T) {
	const policy = `, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]`
	run(t, func(t *testing.T, m *machine) {
		var cgroup podCgroup
		cgroup.attach(m)
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", policy))
		m.settle()
		m.Inject(runtimetest.Fault{Method: "UpdatePodSandboxResources", Err: errors.New("NRI sandbox update failed: too large")})
		m.setPods(sizedPod(t, "web", "128Mi", policy))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 exited 143", "web/app 1 running")
		if got := m.condition("web", v1.PodResizeInProgress); !strings.Contains(got, "NRI sandbox update failed: too large") {
			t.Errorf("condition PodResizeInProgress: got %q, want the error of the runtime", got)
		}
	})
}

// TestResize_AnnouncementFails checks that a failed announcement is not called a rejection if the runtime
// has not decided about the size. A container that was stopped to be resized is started only when the
// announcement succeeds.
func TestResize_AnnouncementFails(t *testing.T) {
	const policy = `, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]`
	for name, fault := range map[string]runtimetest.Fault{
		"unavailable": {Err: status.Error(codes.Unavailable, "connection refused")},
		"deadline":    {Err: status.Error(codes.DeadlineExceeded, "context deadline exceeded")},
		"canceled":    {Err: status.Error(codes.Canceled, "context canceled")},
		"no response": {Hangs: true},
		"not found":   {Err: status.Error(codes.NotFound, "no such sandbox")},
	} {
		fault.Method = "UpdatePodSandboxResources"
		start := func(m *machine, policy string) (accept func()) {
			new(podCgroup).attach(m)
			m.start()
			m.setPods(sizedPod(t, "web", "64Mi", policy))
			m.settle()
			accept = m.Inject(fault)
			m.setPods(sizedPod(t, "web", "128Mi", policy))
			m.advance(10 * time.Minute)
			return accept
		}
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				accept := start(m, "")
				if got := m.condition("web", v1.PodResizeInProgress); !strings.HasPrefix(got, "Error: ") || strings.Contains(got, "reject") {
					t.Errorf("condition PodResizeInProgress: got %q, want an error that is not a rejection", got)
				}
				accept()
				m.advance(10 * time.Minute)
				m.wantMemory("web", "128Mi", 128<<20)
			})
		})
		t.Run(name+", restart", func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				accept := start(m, policy)
				m.wantState("web 0 ready", "web/app 0 exited 143")
				accept()
				m.advance(10 * time.Minute)
				m.wantState("web 0 ready", "web/app 0 exited 143", "web/app 1 running")
			})
		})
	}
}

// TestResize_AnnouncementIsTakenBack checks that the runtime learns that the pod keeps its resources if
// the pod's cgroup cannot be changed.
func TestResize_AnnouncementIsTakenBack(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		var cgroup podCgroup
		cgroup.attach(m)
		m.start()
		m.setPods(sizedPod(t, "web", "64Mi", ""))
		m.settle()
		cgroup.takeLog()
		cgroup.setError(errors.New("device or resource busy"))
		m.setPods(sizedPod(t, "web", "128Mi", ""))
		m.settle()
		m.wantMemory("web", "64Mi", 64<<20)
		want := []string{"announce 128Mi 102 shares 100000/100000", "cgroup 128Mi", "announce 64Mi 102 shares 100000/100000"}
		if got := cgroup.takeLog(); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("changes: got %q, want %q first", got, want)
		}
		if got := m.condition("web", v1.PodResizeInProgress); !strings.Contains(got, "device or resource busy") {
			t.Errorf("condition PodResizeInProgress: got %q, want the error of the cgroup", got)
		}
	})
}
