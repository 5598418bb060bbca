package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/device"
)

const gpu = "example.com/gpu"

// gpus is a device plugin that passes the IDs of the allocated devices to the container in a
// variable.
type gpus struct {
	ids []string

	mu        sync.Mutex // guards all following fields
	allocated []string
	broken    error
}

// allocations returns the device IDs of each Allocate call, in the order of the calls.
func (g *gpus) allocations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.allocated)
}

// failWith makes allocations fail with err. If err is nil, allocations succeed again.
func (g *gpus) failWith(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = err
}

func (g *gpus) PreferredDevices(context.Context, []string, []string, int) ([]string, error) {
	return nil, nil
}

func (g *gpus) Allocate(_ context.Context, ids []string) (*v1beta1.ContainerAllocateResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken != nil {
		return nil, g.broken
	}
	g.allocated = append(g.allocated, strings.Join(ids, "+"))
	return &v1beta1.ContainerAllocateResponse{Envs: map[string]string{"GPU": strings.Join(ids, "+")}}, nil
}

func (g *gpus) PreStart(context.Context, []string) error { return nil }
func (g *gpus) RequiresPreStart() bool                   { return false }

// runDevices runs a test like run, with a device.Manager that each podd reads from its file. The
// plugin registers with it when register is called.
func runDevices(t *testing.T, test func(t *testing.T, m *machine, g *gpus, register func())) {
	run(t, func(t *testing.T, m *machine) {
		var devices *device.Manager
		g := &gpus{ids: []string{"a", "b"}}
		var managers sync.WaitGroup
		defer managers.Wait()
		stopManager := func() {}
		defer func() { stopManager() }()
		m.options = func(o *reconcile.Options) {
			stopManager()
			managers.Wait()
			var err error
			if devices, err = device.Open(filepath.Join(m.root, "devices.json")); err != nil {
				t.Fatal(err)
			}
			o.Effects.Devices, o.Devices, m.devices = devices, devices, devices.Changed()
			ctx, cancel := context.WithCancel(context.Background())
			stopManager = cancel
			manager := devices
			managers.Go(func() { manager.Run(ctx, slog.New(m.log)) })
		}
		test(t, m, g, func() {
			devices.Register(gpu, g)
			var all []device.Device
			for _, id := range g.ids {
				all = append(all, device.Device{ID: id, Healthy: true})
			}
			devices.SetDevices(gpu, g, all)
		})
	})
}

func gpuPod(t *testing.T, name string, n int, more string) *manifest.Pod {
	t.Helper()
	return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", resources: {limits: {%s: %d}}}]`+"\n%s", gpu, n, more))
}

// gpusOf returns the devices of a pod's running containers.
func (m *machine) gpusOf(name string) string {
	var all []string
	for _, inc := range m.report(name).Observed {
		for _, c := range inc.Containers {
			if c.State == "Running" {
				all = append(all, c.Annotations["podd/devices"])
			}
		}
	}
	return strings.NewReplacer(`{"`+gpu+`":[`, "", `]}`, "", `"`, "").Replace(strings.Join(all, " "))
}

// TestDevices checks that pods wait for a plugin and for the devices of other pods, and that freed
// devices go to the next pod. A restart of podd changes nothing.
func TestDevices(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		one, two := gpuPod(t, "one", 1, ""), gpuPod(t, "two", 2, "")
		m.start()
		m.setPods(one)
		m.settle()
		m.wantState()
		if d := m.report("one").Decision; d.NeedsUser || !strings.Contains(d.Why, "no device plugin provides now") {
			t.Errorf("decision: got %s, want no problem and a reason that names the missing device plugin", d)
		}
		register()
		m.advance(100 * time.Millisecond)
		m.wantState("one 0 ready", "one/app 0 running")
		m.setPods(one, two)
		m.settle()
		if why := m.why("two"); !strings.Contains(why, "the node has 2 for pods, of which other pods request 1") {
			t.Errorf("reason why pod two waits: got %q, want the number of devices and of requests", why)
		}
		m.restart()
		register()
		m.settle()
		m.wantState("one 0 ready", "one/app 0 running")
		if err := m.current().router.Restart(t.Context(), key("one"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		if got := m.gpusOf("one"); got != "a" {
			t.Errorf("device of pod one: got %q, want a", got)
		}
		m.setPods(two)
		m.settle()
		m.wantState("two 0 ready", "two/app 0 running")
		if got, want := strings.Join(g.allocations(), " "), "a a+b"; got != want {
			t.Errorf("devices of each Allocate call: got %q, want %q", got, want)
		}
	})
}

// TestDevicesArePublished checks that the devices of a plugin are published when it registers, even
// if no pod requests a device.
func TestDevicesArePublished(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		m.start()
		m.settle()
		register()
		m.settle()
		m.mu.Lock()
		defer m.mu.Unlock()
		if n := m.devicesPublished[gpu]; n.Total == 0 || !n.IsServed {
			t.Errorf("published devices: got %v, want a served resource with devices", m.devicesPublished)
		}
	})
}

// TestDevices_EarlierVersion checks that an edited pod gets the only device of its earlier
// version at once.
func TestDevices_EarlierVersion(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		m.setPods(gpuPod(t, "one", 1, ""))
		m.settle()
		m.setPods(gpuPod(t, "one", 1, "terminationGracePeriodSeconds: 1"))
		m.advance(2 * time.Second)
		if got := m.gpusOf("one"); got != "a" || len(g.allocations()) != 2 {
			t.Errorf("device of pod one: got %q, want \"a\"; allocations: got %q, want two\n%s", got, g.allocations(), m.state())
		}
		// Without a plugin the successor would get no device, so the running version
		// continues to run.
		m.restart()
		m.setPods(gpuPod(t, "one", 1, "terminationGracePeriodSeconds: 2"))
		m.settle()
		if got := m.gpusOf("one"); got != "a" || !strings.Contains(m.why("one"), "the earlier version keeps running") {
			t.Errorf("pod one: got device %q and reason %q, want device a and a reason with \"the earlier version keeps running\"\n%s", got, m.why("one"), m.state())
		}
		register()
		m.settle()
		if got := m.gpusOf("one"); got != "a" || len(g.allocations()) != 3 || m.why("one") != "" {
			t.Errorf("pod one: got device %q, allocations %q and reason %q, want device a, three allocations and no reason\n%s", got, g.allocations(), m.why("one"), m.state())
		}
	})
}

// TestDevices_Finished checks that a finished pod holds no device.
func TestDevices_Finished(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		done := pod(t, "done", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"], resources: {limits: {example.com/gpu: 1}}}]`)
		m.setPods(done, gpuPod(t, "one", 1, ""))
		m.settle()
		m.wantState("done 0 dead", "done/app 0 exited 0", "one 0 ready", "one/app 0 running")
	})
}

// TestBrokenPlugin checks that a pod waits for a failing plugin and is retried, and that
// other pods do not wait.
func TestBrokenPlugin(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.failWith(errors.New("it burns"))
		m.start()
		register()
		m.setPods(gpuPod(t, "one", 1, ""), pod(t, "web", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		if why := m.why("one"); why != "allocating 1 of example.com/gpu for container app: it burns" {
			t.Errorf("reason why pod one waits: got %q, want the error of the plugin", why)
		}
		g.failWith(nil)
		m.advance(time.Minute)
		m.wantState("one 0 ready", "one/app 0 running", "web 0 ready", "web/app 0 running")
	})
}

// TestDevicesKilled kills podd at any moment of a start, and checks that no device is lost
// or allocated twice.
func TestDevicesKilled(t *testing.T) {
	for at := range 16 {
		runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
			m.start()
			register()
			m.setPods(gpuPod(t, "one", 1, ""), gpuPod(t, "two", 1, ""))
			m.advance(time.Duration(at) * time.Millisecond / 2)
			m.restart()
			register()
			m.settle()
			m.wantState("one 0 ready", "one/app 0 running", "two 0 ready", "two/app 0 running")
			if one, two := m.gpusOf("one"), m.gpusOf("two"); one+two != "ab" && one+two != "ba" {
				t.Errorf("podd killed after %s: got device %q of pod one and device %q of pod two, want a and b in any order", time.Duration(at)*time.Millisecond/2, one, two)
			}
		})
	}
}

// TestDevices_UnknownVersion checks that a pod without a manifest keeps its devices while it
// runs, even if the file with the allocations is lost.
func TestDevices_UnknownVersion(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		m.setPods(gpuPod(t, "one", 1, "terminationGracePeriodSeconds: 1"))
		m.settle()
		m.kill()
		m.setPods(gpuPod(t, "one", 1, ""), gpuPod(t, "other", 1, ""))
		m.start()
		register()
		m.settle()
		if got := m.gpusOf("one"); got != "a" || m.report("other").Decision.Reason != "UnexpectedAdmissionError" {
			t.Errorf("device of pod one: got %q, want \"a\"; decision about pod other: got %s, want reason UnexpectedAdmissionError\n%s", got, m.report("other").Decision, m.state())
		}
	})
}
