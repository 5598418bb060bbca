package daemon

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/daemon/view"
	"podd/reconcile"
	"podd/reconcile/event"
	"podd/reconcile/eviction"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// pressuredNode is a node without pods. It implements the interfaces that an eviction manager needs. It
// also implements the router of a pressureTask.
type pressuredNode struct {
	mu         sync.Mutex // guards all following fields
	memory     int64      // how many of the node's 1000 bytes of memory are available
	recorded   []event.Event
	conditions pressure.Conditions // the argument of the last call of SetPressure
}

func (n *pressuredNode) setMemory(available int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory = available
}

func (n *pressuredNode) record(all []event.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recorded = append(n.recorded, all...)
}

// takeEvents returns the events since the last call.
func (n *pressuredNode) takeEvents() []event.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.recorded
	n.recorded = nil
	return all
}

func (n *pressuredNode) hasMemoryPressure() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.conditions.Memory
}

func (n *pressuredNode) Observe() pressure.Observations {
	n.mu.Lock()
	defer n.mu.Unlock()
	return pressure.Observations{Signals: map[pressure.Signal]pressure.Observation{
		pressure.MemoryAvailable: {Capacity: 1000, Available: n.memory},
	}}
}

func (n *pressuredNode) SetPressure(_ context.Context, c pressure.Conditions, _ bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conditions = c
	return nil
}

func (n *pressuredNode) Completed() <-chan struct{} { return nil }

func (n *pressuredNode) Events() <-chan struct{} { return nil }

func (n *pressuredNode) Arm(node, pods int64) {}

func (n *pressuredNode) PodUsage(context.Context, v1.ResourceName) (map[types.UID]*pressure.Usage, error) {
	return nil, nil
}

// TestPressureTask_Publish checks the events and the condition MemoryPressure of a node that becomes
// short of memory and then has enough memory again. After the shortage, the condition must remain true
// for the transition period of 5 minutes.
func TestPressureTask_Publish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &pressuredNode{memory: 1000}
		p := &pressureTask{nodeName: "n1", state: view.NewNodeState(view.NodeProblems{}), router: n, record: n.record, log: slog.New(slog.DiscardHandler)}
		m := eviction.NewManager(eviction.ManagerOptions{
			Policy: pressure.Policy{
				Thresholds:       []pressure.Threshold{{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 100}, GracePeriod: time.Hour}},
				TransitionPeriod: 5 * time.Minute,
			},
			Observer: n, Memory: n, Usage: n, Publish: p.publish, Record: p.record, Reports: func() []*state.Report { return nil },
			IsStarting: func() bool { return false }, Log: p.log,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		expect := func(name string, after time.Duration, hasPressure bool, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			var got []string
			for _, e := range n.takeEvents() {
				got = append(got, e.Reason)
				if message := "Node n1 status is now: " + e.Reason; e.Message != message || e.Type != v1.EventTypeNormal {
					t.Errorf("%s: got event %+v, want type Normal and message %q", name, e, message)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got events %v, want %v", name, got, want)
			}
			if got := n.hasMemoryPressure(); got != hasPressure {
				t.Errorf("%s: got memory pressure %t, want %t", name, got, hasPressure)
			}
		}
		expect("start", time.Second, false, "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID")
		expect("no change", time.Minute, false)
		n.setMemory(50)
		expect("shortage", 11*time.Second, true, "NodeHasInsufficientMemory")
		expect("shortage continues", time.Minute, true)
		n.setMemory(1000)
		expect("transition period", 4*time.Minute, true)
		expect("recovery", time.Minute+time.Second, false, "NodeHasSufficientMemory")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestPressureProblem(t *testing.T) {
	if p := pressureProblem(pressure.Conditions{}, nil); p != nil {
		t.Errorf("no condition: got problem %v, want none", p)
	}
	met := []pressure.MetThreshold{
		{Threshold: pressure.Threshold{Signal: pressure.MemoryAvailable}, Quantity: 100 << 20, Available: 50 << 20},
		{Threshold: pressure.Threshold{Signal: pressure.NodefsInodesFree}, Quantity: 5000, Available: 12},
	}
	const remedy = "; podd evicts pods while a threshold is met, and does not start all pods; make more of the resource available"
	for want, p := range map[string]string{
		"the node has the condition [MemoryPressure DiskPressure]; memory.available: 50Mi available, threshold 100Mi, nodefs.inodesFree: 12 available, threshold 5000" + remedy: pressureProblem(pressure.Conditions{Memory: true, Disk: true}, met).Message,
		"the node has the condition [PIDPressure]" + remedy: pressureProblem(pressure.Conditions{PIDs: true}, nil).Message,
	} {
		if p != want {
			t.Errorf("got problem\n%s\nwant\n%s", p, want)
		}
	}
}

// TestNotificationPaths_Driver checks that the directories of the cgroup of all pods begin with the one of
// the driver in effect. Without cgroup v1 for memory, there are none.
func TestNotificationPaths_Driver(t *testing.T) {
	k := newQOSSyncer(qosOptions{Node: render.Node{CgroupDriver: "cgroupfs", WithoutPodCgroups: true}})
	paths := notificationPaths("", k.driver, slog.New(slog.DiscardHandler))
	for _, step := range []struct{ reported, wantSuffix string }{{"", "/kubepods"}, {"systemd", "/kubepods.slice"}, {"", "/kubepods.slice"}, {"cgroupfs", "/kubepods"}} {
		k.recordChange(reconcile.Change{Node: runtime.Node{CgroupDriver: step.reported}})
		if paths.MemoryCgroup == "" {
			if paths.PodsMemoryCgroups != nil {
				t.Errorf("without cgroup v1: got directories %q, want none", paths.PodsMemoryCgroups())
			}
			continue
		}
		if dirs := paths.PodsMemoryCgroups(); len(dirs) != 2 || !strings.HasSuffix(dirs[0], step.wantSuffix) {
			t.Errorf("after the runtime reported driver %q: got directories %q, want two, the first with the suffix %s", step.reported, dirs, step.wantSuffix)
		}
	}
}
