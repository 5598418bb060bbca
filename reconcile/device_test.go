package reconcile_test

import (
	"context"
	"errors"
	"fmt"
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

// gpus is a device plugin that gives each container the IDs in a variable.
type gpus struct {
	ids []string

	mu        sync.Mutex // guards all following fields
	allocated []string
	broken    error
}

// gave are the IDs of each allocation.
func (g *gpus) gave() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.allocated)
}

// fails has allocations fail, or succeed again for nil.
func (g *gpus) fails(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = err
}

func (g *gpus) Preferred(context.Context, []string, []string, int) ([]string, error) { return nil, nil }

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
func (g *gpus) Prepares() bool                           { return false }

// runDevices is run with a ledger that each podd reads anew; the plugin registers
// with it when register is called.
func runDevices(t *testing.T, test func(t *testing.T, m *machine, g *gpus, register func())) {
	run(t, func(t *testing.T, m *machine) {
		var ledger *device.Ledger
		g := &gpus{ids: []string{"a", "b"}}
		m.options = func(o *reconcile.Options) {
			var err error
			if ledger, err = device.Open(filepath.Join(m.root, "devices.json")); err != nil {
				t.Fatal(err)
			}
			o.Effects.Devices, o.Devices, m.devices = ledger, ledger, ledger.Changed()
		}
		test(t, m, g, func() {
			ledger.Serve(gpu, g)
			var all []device.Device
			for _, id := range g.ids {
				all = append(all, device.Device{ID: id, Healthy: true})
			}
			ledger.Update(gpu, g, all)
		})
	})
}

func needing(t *testing.T, name string, n int, more string) *manifest.Pod {
	t.Helper()
	return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", resources: {limits: {%s: %d}}}]`+"\n%s", gpu, n, more))
}

// gpu is what the containers of a pod that run were given.
func (m *machine) gpu(name string) string {
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

// TestDevices: pods wait for a plugin and for each other, a restart of podd changes
// nothing, and what a pod had is the next one's.
func TestDevices(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		one, two := needing(t, "one", 1, ""), needing(t, "two", 2, "")
		m.start()
		m.want(one)
		m.settle()
		m.is()
		if d := m.report("one").Decision; d.Problem || !strings.Contains(d.Why, "no device plugin serves now") {
			t.Errorf("it %s", d)
		}
		register()
		m.pass(100 * time.Millisecond)
		m.is("one 0 ready", "one/app 0 running")
		m.want(one, two)
		m.settle()
		if why := m.why("two"); !strings.Contains(why, "the node has 2 for pods and others ask for 1") {
			t.Errorf("why: %q", why)
		}
		m.restart()
		register()
		m.settle()
		m.is("one 0 ready", "one/app 0 running")
		if err := m.life().router.Restart(t.Context(), key("one"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		if got := m.gpu("one"); got != "a" {
			t.Errorf("it has %q", got)
		}
		m.want(two)
		m.settle()
		m.is("two 0 ready", "two/app 0 running")
		if got, want := strings.Join(g.gave(), " "), "a a+b"; got != want {
			t.Errorf("allocated were %s, want %s", got, want)
		}
	})
}

// TestDevicesArePublished: who registers is told of though no pod is.
func TestDevicesArePublished(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		m.start()
		m.settle()
		register()
		m.settle()
		m.mu.Lock()
		defer m.mu.Unlock()
		if n := m.counted[gpu]; n.Total == 0 || !n.Served {
			t.Errorf("published were %v", m.counted)
		}
	})
}

// TestDeviceOfEarlierVersion: an edited pod has the only device at once.
func TestDeviceOfEarlierVersion(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		m.want(needing(t, "one", 1, ""))
		m.settle()
		m.want(needing(t, "one", 1, "terminationGracePeriodSeconds: 1"))
		m.pass(2 * time.Second)
		if got := m.gpu("one"); got != "a" || len(g.gave()) != 2 {
			t.Errorf("it has %q of %q\n%s", got, g.gave(), m.story())
		}
		// Without a plugin the next edit would find none: what runs is kept.
		m.restart()
		m.want(needing(t, "one", 1, "terminationGracePeriodSeconds: 2"))
		m.settle()
		if got := m.gpu("one"); got != "a" || !strings.Contains(m.why("one"), "the earlier version runs on") {
			t.Errorf("it has %q: %q\n%s", got, m.why("one"), m.story())
		}
		register()
		m.settle()
		if got := m.gpu("one"); got != "a" || len(g.gave()) != 3 || m.why("one") != "" {
			t.Errorf("it has %q\n%s", got, m.story())
		}
	})
}

// TestDeviceOfFinished: what ran to its end has none.
func TestDeviceOfFinished(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		done := pod(t, "done", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"], resources: {limits: {example.com/gpu: 1}}}]`)
		m.want(done, needing(t, "one", 1, ""))
		m.settle()
		m.is("done 0 dead", "done/app 0 exited 0", "one 0 ready", "one/app 0 running")
	})
}

// TestBrokenPlugin: its pod waits and is tried again, others do not.
func TestBrokenPlugin(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.fails(errors.New("it burns"))
		m.start()
		register()
		m.want(needing(t, "one", 1, ""), pod(t, "web", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if why := m.why("one"); why != "giving container app 1 of example.com/gpu: it burns" {
			t.Errorf("why: %q", why)
		}
		g.fails(nil)
		m.pass(time.Minute)
		m.is("one 0 ready", "one/app 0 running", "web 0 ready", "web/app 0 running")
	})
}

// TestDevicesKilled: podd is killed at any moment of a start, and no device is lost
// or given twice.
func TestDevicesKilled(t *testing.T) {
	for at := range 16 {
		runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
			m.start()
			register()
			m.want(needing(t, "one", 1, ""), needing(t, "two", 1, ""))
			m.pass(time.Duration(at) * time.Millisecond / 2)
			m.restart()
			register()
			m.settle()
			m.is("one 0 ready", "one/app 0 running", "two 0 ready", "two/app 0 running")
			if one, two := m.gpu("one"), m.gpu("two"); one+two != "ab" && one+two != "ba" {
				t.Errorf("killed after %d half milliseconds they have %q and %q", at, one, two)
			}
		})
	}
}

// TestDevicesOfStranger: a pod that podd has no manifest of keeps its devices for as
// long as it runs, also when the file is lost.
func TestDevicesOfStranger(t *testing.T) {
	runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
		g.ids = []string{"a"}
		m.start()
		register()
		m.want(needing(t, "one", 1, "terminationGracePeriodSeconds: 1"))
		m.settle()
		m.kill()
		m.want(needing(t, "one", 1, ""), needing(t, "other", 1, ""))
		m.start()
		register()
		m.settle()
		if got := m.gpu("one"); got != "a" || m.report("other").Decision.Reason != "UnexpectedAdmissionError" {
			t.Errorf("one has %q; the other %s\n%s", got, m.report("other").Decision, m.story())
		}
	})
}
