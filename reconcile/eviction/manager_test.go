package eviction

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"podd/reconcile/eviction/pressure"
)

// fakeNode is an Observer and a memoryNotifier. memory is the available amount of 1000 bytes, disk is the
// available amount of 1000 GiB, and inodes is the number of available inodes of 1000.
type fakeNode struct {
	mu           sync.Mutex // guards memory, disk, inodes, observed, armed and isComplete
	memory, disk int64
	inodes       int64
	observed     int
	events       chan struct{}
	completed    chan struct{} // nil, or closed when observations become complete
	isComplete   bool
	armed        [][2]int64 // the arguments of all calls of Arm
}

func newFakeNode() *fakeNode {
	return &fakeNode{memory: 1000, disk: 1000, inodes: 1000, events: make(chan struct{}, 1)}
}

func (n *fakeNode) Observe() pressure.Observations {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observed++
	return pressure.Observations{
		Layout: pressure.Layout{Nodefs: 1, Imagefs: 1, Containerfs: 1}, IsComplete: n.isComplete,
		Signals: map[pressure.Signal]pressure.Observation{
			pressure.MemoryAvailable: {Capacity: 1000, Available: n.memory}, pressure.NodefsAvailable: {Capacity: 1000 << 30, Available: n.disk << 30},
			pressure.AllocatableMemoryAvailable: {Capacity: 500, Available: 250}, pressure.NodefsInodesFree: {Capacity: 1000, Available: n.inodes},
		},
	}
}

// setMemory changes the available memory.
func (n *fakeNode) setMemory(available int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.memory = available
}

func (n *fakeNode) Completed() <-chan struct{} { return n.completed }

func (n *fakeNode) Events() <-chan struct{} { return n.events }

func (n *fakeNode) Arm(node, pods int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.armed = append(n.armed, [2]int64{node, pods})
}

// hardPolicy has hard thresholds of 100 bytes for the memory of the node and of all pods, and of 100 GiB
// for the disk.
var hardPolicy = pressure.Policy{
	Thresholds: []pressure.Threshold{
		{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 100}}, {Signal: pressure.NodefsAvailable, Limit: pressure.Limit{Amount: 100 << 30}},
		{Signal: pressure.AllocatableMemoryAvailable, Limit: pressure.Limit{Amount: 100}},
	},
	TransitionPeriod: time.Minute,
}

// TestManager_Conditions checks when the node is observed, and that only changed conditions are
// published.
func TestManager_Conditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode()
		var published []string
		m := newManagerTest(hardPolicy)
		m.node, m.o.Observer, m.o.Memory = n, n, n
		m.o.Publish = func(_ context.Context, p Published) {
			published = append(published, fmt.Sprint(p.Conditions.Types(), p.Met))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		expect := func(name string, after time.Duration, observed int, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.observed != observed || !slices.Equal(published, want) {
				t.Errorf("%s: got %d observations and published conditions %q; want %d observations and conditions %q", name, n.observed, published, observed, want)
			}
			n.observed, published = 0, nil
		}
		expect("start", 0, 1, "[] []")
		n.mu.Lock()
		if want := [][2]int64{{901, 151}}; !slices.Equal(n.armed, want) {
			t.Errorf("armed: got %v, want %v", n.armed, want)
		}
		n.mu.Unlock()
		expect("intervals", 25*time.Second, 2)
		n.setMemory(10)
		n.events <- struct{}{}
		expect("notification of the kernel", 0, 1, "[MemoryPressure] [memory.available: 10 available, threshold 100]")
		n.setMemory(500)
		expect("transition period", 59*time.Second, 5)
		expect("end of the transition period", time.Second, 1, "[] []")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestManager_EventRate checks that the first notification of the kernel causes an observation at once,
// and that later ones cause at most one observation per second. The last one must not be lost.
func TestManager_EventRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode()
		m := newManagerTest(hardPolicy)
		m.o.Observer, m.o.Memory = n, n
		m.o.Publish = func(context.Context, Published) {}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		expect := func(name string, want int) {
			t.Helper()
			synctest.Wait()
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.observed != want {
				t.Errorf("%s: got %d observations, want %d", name, n.observed, want)
			}
			n.observed = 0
		}
		notify := func() {
			select {
			case n.events <- struct{}{}:
			default: // as in memorywatch.Watcher
			}
		}
		expect("start", 1)
		notify()
		expect("first notification", 1)
		for range 250 {
			time.Sleep(10 * time.Millisecond)
			notify()
		}
		expect("notifications for 2.5 s", 2)
		time.Sleep(500 * time.Millisecond)
		expect("0.5 s after the last notification", 1)
		time.Sleep(2 * time.Second)
		expect("no notification", 0)
		notify()
		expect("notification after a pause", 1)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestManager_FirstCompleteObservation checks that the node is observed again as soon as the file
// systems of the runtime are known. The conditions must then be published as known, even if they
// have not changed.
func TestManager_FirstCompleteObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode()
		n.completed = make(chan struct{})
		var published []Published
		m := newManagerTest(hardPolicy)
		m.o.Observer, m.o.Memory = n, n
		m.o.Publish = func(_ context.Context, p Published) { published = append(published, p) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		if len(published) != 1 || published[0].IsKnown {
			t.Errorf("before the runtime has responded: got %+v, want unknown conditions", published)
		}
		n.mu.Lock()
		n.isComplete = true
		n.mu.Unlock()
		close(n.completed)
		synctest.Wait()
		if len(published) != 2 || !published[1].IsKnown {
			t.Errorf("after the runtime has responded: got %+v, want known conditions", published)
		}
		time.Sleep(time.Minute)
		if len(published) != 2 {
			t.Errorf("later: got published conditions %+v, want no more", published)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
