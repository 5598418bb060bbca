package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/refs"
	"podd/runtime/runtimetest/csidriver"
)

// TestCrash checks that a restarted podd does not repeat calls that were completed. It must
// complete the interrupted operations, even if the driver registers later.
func TestCrash(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newVolume(pod1))
	m.killPodd()
	must(t, m.driver.Stop())
	m.startPodd(t, Options{})
	m.waitInUse(t, "vol-1")
	p := m.publish(t, newVolume(pod1)) // needs no driver, because the volume is still published
	if !p.MustSetGroup {
		t.Error("Publish after the restart: got Group false, want true")
	}
	if err := m.Unpublish(t.Context(), pod1); err == nil || !strings.Contains(err.Error(), "driver name "+driver+" not found in the list of registered CSI drivers; start its node plugin on this node, with its socket in "+m.registryDir()) {
		t.Errorf("Unpublish without a driver: got error %v, want one with the directory for sockets", err)
	}
	m.startDriver(t)
	m.unpublish(t, pod1)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestOrphan checks that an unused staged volume is unstaged when podd starts, even if the
// driver registers later.
func TestOrphan(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newVolume(pod1))
	must(t, m.driver.SetBehavior("NodeUnstageVolume", "Internal busy"))
	m.unpublish(t, pod1)
	m.waitFor(t, "the failure of NodeUnstageVolume is logged", func() bool {
		return strings.Contains(m.log.String(), "NodeUnstageVolume of driver "+driver+": busy (Internal)")
	})
	m.killPodd()
	must(t, m.driver.Stop())
	must(t, m.driver.SetBehavior("NodeUnstageVolume", ""))
	m.startPodd(t, Options{})
	m.waitFor(t, "the missing driver is logged", func() bool { return strings.Contains(m.log.String(), "not found in the list") })
	m.waitInUse(t, "vol-1")
	m.startDriver(t)
	m.waitInUse(t)
}

// TestKubelet checks that podd publishes a volume that a kubelet published, unpublishes the volume
// and unstages it.
func TestKubelet(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	m.publish(t, v)
	p := m.pathsFor(v)
	m.killPodd()
	for _, dir := range []string{p.dataDir, p.stageDataDir} { // write the file like a kubelet, without podd's keys
		f, err := readFacts(dir)
		must(t, err)
		for key := range f {
			if strings.HasPrefix(key, "podd.") {
				delete(f, key)
			}
		}
		must(t, f.save(dir))
	}
	m.startPodd(t, Options{})
	m.waitRegistered(t)
	m.waitInUse(t, "vol-1")
	m.publish(t, v)
	m.unpublish(t, pod1)
	m.waitInUse(t)
}

// TestHang checks that a driver that hangs for one volume does not delay another volume.
func TestHang(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.SetBehavior("NodeUnpublishVolume", "hang"))
	m.publish(t, newVolume(pod1))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- m.Unpublish(ctx, pod1) }()
	m.waitFor(t, "NodeUnpublishVolume hangs", func() bool { return m.lastRequest(t, "NodeUnpublishVolume") != "" })
	other := newVolume(pod2)
	other.CSIVolume.Handle, other.CSIVolume.Volume = "vol-2", "pv-2"
	m.publish(t, other)
	cancel()
	if <-result == nil {
		t.Error("canceled Unpublish: got no error, want one")
	}
	m.stopHanging(t, "NodeUnpublishVolume")
	must(t, errors.Join(m.Unpublish(t.Context(), pod1), m.Unpublish(t.Context(), pod2)))
	m.waitInUse(t)
}

// An uncertainCall is a failed call to the driver.
type uncertainCall struct {
	method, mode, err string
	wantCalls         []string // all calls that succeed
}

// TestUncertain checks that podd undoes a failed call only if the driver may have completed the
// call.
func TestUncertain(t *testing.T) {
	for _, c := range []uncertainCall{
		{"NodeStageVolume", "late", "driver " + driver + " did not respond to NodeStageVolume within TIMEOUT; check its node plugin", []string{"NodeUnstageVolume vol-1"}},
		{"NodeStageVolume", "Aborted at it", "NodeStageVolume of driver " + driver + ": at it (Aborted)", []string{"NodeUnstageVolume vol-1"}},
		{"NodeStageVolume", "Internal no disk", "NodeStageVolume of driver " + driver + ": no disk (Internal)", nil},
		{"NodePublishVolume", "late", "did not respond to NodePublishVolume within TIMEOUT", []string{"NodeStageVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"}},
		{"NodePublishVolume", "Unavailable gone", "driver " + driver + " cannot be reached at", []string{"NodeStageVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"}},
		{"NodePublishVolume", "InvalidArgument it says publish-secret", "it says … (InvalidArgument)", []string{"NodeStageVolume vol-1", "NodeUnstageVolume vol-1"}},
	} {
		if c.mode != "late" {
			c.check(t, time.Hour)
			continue
		}
		// On a busy host, other calls may also exceed the timeout.
		for timeout := 3 * time.Second; !c.check(t, timeout); timeout *= 2 {
		}
	}
}

// check makes the call fail and checks the error and the later calls. The parameter timeout is that of
// all calls. If it ends another call or ends the call before the driver has received it, check reports
// nothing and returns false.
func (c uncertainCall) check(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	var otherTimedOut atomic.Bool
	m := newTestNode(t, Options{CallTimeout: timeout, OnCall: func(_, method, code string, _ time.Duration) {
		if code == codes.DeadlineExceeded.String() && !strings.HasSuffix(method, "/"+c.method) {
			otherTimedOut.Store(true)
		}
	}}, "STAGE_UNSTAGE_VOLUME")
	defer func() {
		m.killPodd()
		must(t, m.driver.Stop())
	}()
	must(t, m.driver.SetBehavior(c.method, c.mode))
	_, err := m.Publish(t.Context(), newVolume(pod1))
	if otherTimedOut.Load() {
		return false
	}
	want := strings.ReplaceAll(c.err, "TIMEOUT", timeout.String())
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("%s %s: got error %v, want %q without \"rpc error\"", c.method, c.mode, err, want)
		return true
	}
	if c.mode == "late" && m.lastRequest(t, c.method) == "" {
		return false
	}
	m.stopHanging(t, c.method)
	err = m.Unpublish(t.Context(), pod1)
	if otherTimedOut.Load() {
		return false
	}
	must(t, err)
	m.waitFor(t, "no volume is in use", func() bool {
		inUse, _ := m.VolumesInUse()
		return len(inUse) == 0 || otherTimedOut.Load()
	})
	calls, err := m.driver.Changes()
	must(t, err)
	if otherTimedOut.Load() {
		return false
	}
	if !slices.Equal(calls, c.wantCalls) {
		t.Errorf("%s %s: got completed calls %q, want %q", c.method, c.mode, calls, c.wantCalls)
	}
	return true
}

// TestCanceled checks that Publish returns when its context is canceled, both during a call and
// while it waits for the lock of the volume.
func TestCanceled(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.SetBehavior("NodeStageVolume", "hang"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { _, err := m.Publish(ctx, newVolume(pod1)); failed <- err }()
	m.waitFor(t, "NodeStageVolume hangs", func() bool { return m.lastRequest(t, "NodeStageVolume") != "" })
	waiting, cancelWaiting := context.WithCancel(t.Context())
	go func() { _, err := m.Publish(waiting, newVolume(pod2)); failed <- err }()
	cancelWaiting()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Publish that waits for the lock: got error %v, want %v", err, context.Canceled)
	}
	cancel()
	if e, is := errors.AsType[*callError](<-failed); !is || !e.IsUncertain {
		t.Errorf("Publish during a call: got %+v, want an uncertain *callError", e)
	}
	m.stopHanging(t, "NodeStageVolume")
	m.unpublish(t, pod1)
	m.unpublish(t, pod2)
	m.waitInUse(t)
}

// TestConcurrentPods checks that concurrent pods never cause overlapping calls for a volume, and
// that a volume in use is not unstaged.
func TestConcurrentPods(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	done := make(chan error)
	const pods = 4
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		go func() {
			var all []error
			for range 5 {
				v := newVolume(pod1)
				v.Pod = newPod(uid)
				p, err := m.Publish(context.Background(), v)
				if err == nil {
					_, err = os.ReadDir(p.Path)
				}
				all = append(all, err, m.Unpublish(context.Background(), v.Pod.UID))
			}
			done <- errors.Join(all...)
		}()
	}
	for range pods {
		must(t, <-done)
	}
	m.waitInUse(t)
	m.checkNoOverlap(t)
}

// TestRepublish checks that a volume that requires republishing is published again when
// its request changes, and periodically.
func TestRepublish(t *testing.T) {
	m := newTestNode(t, Options{RepublishInterval: time.Hour}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	v.CSIVolume.DriverSpec = newDriverSpec(func(s *storage.CSIDriverSpec) { s.RequiresRepublish = ptr(true) })
	m.publish(t, v)
	next := v
	changed := *v.CSIVolume
	changed.Tokens, next.CSIVolume = "newer", &changed
	m.publish(t, next)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1")
	m.restartPodd(t, Options{RepublishInterval: time.Millisecond})
	m.publish(t, next)
	m.waitFor(t, "the volume is published periodically", func() bool { all, err := m.driver.Changes(); must(t, err); return len(all) > 5 })
	m.unpublish(t, pod1)
	m.waitInUse(t)
}

// TestExpand checks that a volume is expanded once after its capacity has increased, while the
// volume is in use.
func TestExpand(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	v := newVolume(pod1)
	m.publish(t, v)
	larger := v
	changed := *v.CSIVolume
	changed.Capacity, changed.MustExpand, larger.CSIVolume = 2<<20, true, &changed
	must(t, m.driver.SetBehavior("NodeExpandVolume", "once Internal not now"))
	expanded := func() bool {
		all, _ := m.Expansions()
		return len(all) == 1 && all[0].Capacity == 2<<20 && all[0].Volume == "pv-1" && all[0].Failure == nil
	}
	m.publish(t, larger)
	m.waitFor(t, "Expansions contains the new capacity", expanded)
	m.publish(t, larger)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeExpandVolume vol-1")
	m.restartPodd(t, Options{})
	m.waitFor(t, "Expansions contains the new capacity after a restart", expanded)
	m.unpublish(t, pod1)
	m.waitInUse(t)
	if expanded() {
		t.Error("after the volume was unstaged: Expansions contains the volume, want none")
	}
}

// TestUnreadable checks that Unpublish fails for a volume with an empty data file only if something
// is mounted.
func TestUnreadable(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	m.publish(t, v)
	f := filepath.Join(m.pathsFor(v).dataDir, dataFile)
	text, err := os.ReadFile(f)
	must(t, err)
	must(t, os.WriteFile(f, nil, 0o600))
	if err := m.Unpublish(t.Context(), pod1); err == nil || !strings.Contains(err.Error(), "unmount it") {
		t.Errorf("Unpublish of a mount without a valid data file: got error %v, want one with \"unmount it\"", err)
	}
	must(t, os.WriteFile(f, text, 0o600))
	m.unpublish(t, pod1)
	m.waitInUse(t)
	must(t, os.MkdirAll(filepath.Dir(f), 0o750))
	must(t, os.WriteFile(f, nil, 0o600))
	m.unpublish(t, pod1)
}

// TestInvalidNames checks that names that are not valid in paths or requests are rejected.
func TestInvalidNames(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	for _, change := range []func(*refs.CSIVolume){
		func(c *refs.CSIVolume) { c.Driver = "../x" },
		func(c *refs.CSIVolume) { c.Volume = "../x" },
		func(c *refs.CSIVolume) { c.Handle = "" },
		func(c *refs.CSIVolume) { c.Volume, c.Block = "staging", true },
	} {
		v := newVolume(pod1)
		change(v.CSIVolume)
		if _, err := m.Publish(t.Context(), v); err == nil {
			t.Errorf("Publish of %+v: got no error, want one", v.CSIVolume)
		}
	}
	if err := m.Unpublish(t.Context(), "../x"); err == nil {
		t.Error("Unpublish of pod ../x: got no error, want one")
	}
	m.checkCalls(t)
}

// TestManyOrphans checks that at most maxTasks unstage calls run concurrently, and that all
// volumes are unstaged.
func TestManyOrphans(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.SetBehavior("NodeUnstageVolume", "hang"))
	for i := range 2 * maxTasks {
		m.publish(t, withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Handle, c.Volume = fmt.Sprintf("vol-%d", i), fmt.Sprintf("pv-%d", i) }))
	}
	m.unpublish(t, pod1)
	begun := func() (n int) {
		for _, c := range m.calls(t) {
			if c.Event == csidriver.CallBegun && c.Method == "NodeUnstageVolume" {
				n++
			}
		}
		return n
	}
	m.waitFor(t, "maxTasks unstage calls have begun", func() bool { return begun() >= maxTasks })
	m.publish(t, withCSI(newVolume(pod2), func(c *refs.CSIVolume) { c.Handle, c.Volume = "other", "other" })) // gives podd time for a call beyond the limit
	if n := begun(); n != maxTasks {
		t.Errorf("got %d concurrent NodeUnstageVolume calls, want %d", n, maxTasks)
	}
	m.unpublish(t, pod2)
	must(t, m.driver.SetBehavior("NodeUnstageVolume", ""))
	m.waitInUse(t)
}

// TestExpand_Fails checks that a failure to expand a volume is reported until the expansion is no
// longer desired.
func TestExpand_Fails(t *testing.T) {
	// The second attempt waits until the result of the first attempt is checked.
	checked := make(chan struct{})
	endCheck := sync.OnceFunc(func() { close(checked) })
	defer endCheck()
	var attempts atomic.Int32
	m := newTestNode(t, Options{OnCall: func(_, method, _ string, _ time.Duration) {
		if strings.HasSuffix(method, "/NodeExpandVolume") && attempts.Add(1) == 2 {
			<-checked
		}
	}}, "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	larger := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Capacity, c.MustExpand = 2<<20, true })
	failed := func(want ExpansionFailure) func() bool {
		return func() bool {
			all, _ := m.Expansions()
			return len(all) == 1 && all[0].Capacity == 2<<20 && all[0].Failure != nil && *all[0].Failure == want
		}
	}
	prefix := "NodeExpandVolume of driver " + driver + ": "
	must(t, m.driver.SetBehavior("NodeExpandVolume", "Internal not now"))
	if _, err := m.Publish(t.Context(), larger); err == nil {
		t.Error("Publish while expanding fails: got no error, want one")
	}
	if !failed(ExpansionFailure{Message: prefix + "not now (Internal)"})() {
		t.Error("Expansions: got no first failure, want one")
	}
	endCheck()
	m.waitFor(t, "Expansions contains the second failure", failed(ExpansionFailure{Message: prefix + "not now (Internal)", IsRepeated: true}))
	must(t, m.driver.SetBehavior("NodeExpandVolume", "OutOfRange too large"))
	m.waitFor(t, "Expansions contains the infeasible failure", failed(ExpansionFailure{Message: prefix + "too large (OutOfRange)", IsInfeasible: true, IsRepeated: true}))
	m.publish(t, newVolume(pod1))
	if all, _ := m.Expansions(); len(all) > 0 {
		t.Errorf("Expansions without a volume to expand: got %+v, want none", all[0])
	}
	m.unpublish(t, pod1)
	m.waitInUse(t)
}
