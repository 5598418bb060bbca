package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/refs"
	"podd/runtime/runtimetest/csidriver"
)

// TestCrash checks that a restarted podd makes no calls for completed operations and
// completes others, also if the driver registers later.
func TestCrash(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, volumeOf(one))
	m.stop()
	must(t, m.driver.Stop())
	m.begin(t, Options{})
	m.inUse(t, "vol-1")
	p := m.publish(t, volumeOf(one)) // a driver is not needed for it
	if !p.Group {
		t.Error("got Group false, want true")
	}
	if err := m.Unpublish(t.Context(), one); err == nil || !strings.Contains(err.Error(), "driver name "+driver+" not found in the list of registered CSI drivers; start its node plugin on this node, with its socket in "+m.registry()) {
		t.Error(err)
	}
	m.startDriver(t)
	m.unpublish(t, one)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestOrphan checks that an unused staged volume is unstaged when podd starts, even if the
// driver registers later.
func TestOrphan(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, volumeOf(one))
	must(t, m.driver.Set("NodeUnstageVolume", "Internal busy"))
	m.unpublish(t, one)
	m.until(t, "it is tried", func() bool { return m.logged.has("NodeUnstageVolume of driver " + driver + ": busy (Internal)") })
	m.stop()
	must(t, m.driver.Stop())
	must(t, m.driver.Set("NodeUnstageVolume", ""))
	m.begin(t, Options{})
	m.until(t, "podd says what is left", func() bool { return m.logged.has("not found in the list") })
	m.inUse(t, "vol-1")
	m.startDriver(t)
	m.inUse(t)
}

// TestKubelet checks that volumes of a kubelet are unpublished and unstaged.
func TestKubelet(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	m.publish(t, v)
	p := m.pathsFor(v)
	m.stop()
	for _, dir := range []string{p.data, p.stageData} { // as a kubelet writes it
		f, err := load(dir)
		must(t, err)
		for key := range f {
			if strings.HasPrefix(key, "podd.") {
				delete(f, key)
			}
		}
		must(t, f.save(dir))
	}
	m.begin(t, Options{})
	m.registered(t)
	m.inUse(t, "vol-1")
	m.publish(t, v)
	m.unpublish(t, one)
	m.inUse(t)
}

// TestHang checks that a driver that hangs for one volume delays no other.
func TestHang(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.Set("NodeUnpublishVolume", "hang"))
	m.publish(t, volumeOf(one))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Unpublish(ctx, one) }()
	m.until(t, "it hangs", func() bool { return m.request(t, "NodeUnpublishVolume") != "" })
	other := volumeOf(two)
	other.CSI.Handle, other.CSI.Volume = "vol-2", "pv-2"
	m.publish(t, other)
	cancel()
	if <-ended == nil {
		t.Error("a call that was given up came to an end")
	}
	m.hung(t, "NodeUnpublishVolume")
	must(t, errors.Join(m.Unpublish(t.Context(), one), m.Unpublish(t.Context(), two)))
	m.inUse(t)
}

// TestUncertain checks that a call is undone if the driver may have completed it, and not
// otherwise.
func TestUncertain(t *testing.T) {
	for _, c := range []struct {
		method, set, says string
		undone            []string
	}{
		{"NodeStageVolume", "late", "driver " + driver + " did not respond to NodeStageVolume within 3s; check its node plugin", []string{"NodeUnstageVolume vol-1"}},
		{"NodeStageVolume", "Aborted at it", "NodeStageVolume of driver " + driver + ": at it (Aborted)", []string{"NodeUnstageVolume vol-1"}},
		{"NodeStageVolume", "Internal no disk", "NodeStageVolume of driver " + driver + ": no disk (Internal)", nil},
		{"NodePublishVolume", "late", "did not respond to NodePublishVolume within 3s", []string{"NodeStageVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"}},
		{"NodePublishVolume", "Unavailable gone", "driver " + driver + " cannot be reached at", []string{"NodeStageVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1"}},
		{"NodePublishVolume", "InvalidArgument it says publish-secret", "it says … (InvalidArgument)", []string{"NodeStageVolume vol-1", "NodeUnstageVolume vol-1"}},
	} {
		m := newMachine(t, Options{CallTime: 3 * time.Second}, "STAGE_UNSTAGE_VOLUME") // a busy machine answers in that
		must(t, m.driver.Set(c.method, c.set))
		_, err := m.Publish(t.Context(), volumeOf(one))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "rpc error") {
			t.Errorf("%s %s: %v", c.method, c.set, err)
		}
		m.hung(t, c.method)
		m.unpublish(t, one)
		m.inUse(t)
		done, err := m.driver.Changes()
		must(t, err)
		if !slices.Equal(done, c.undone) {
			t.Errorf("%s %s: %q, want %q", c.method, c.set, done, c.undone)
		}
		m.stop()
		must(t, m.driver.Stop())
	}
}

// TestCancelled checks that the wait for a driver ends when the pod is stopped.
func TestCancelled(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.Set("NodeStageVolume", "hang"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { _, err := m.Publish(ctx, volumeOf(one)); failed <- err }()
	m.until(t, "it hangs", func() bool { return m.request(t, "NodeStageVolume") != "" })
	waits, stop := context.WithCancel(t.Context())
	go func() { _, err := m.Publish(waits, volumeOf(two)); failed <- err }()
	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	cancel()
	if e, is := errors.AsType[*callError](<-failed); !is || !e.Uncertain {
		t.Error(e)
	}
	m.hung(t, "NodeStageVolume")
	m.unpublish(t, one)
	m.unpublish(t, two)
	m.inUse(t)
}

// TestSideBySide checks that concurrent pods never cause overlapping calls for a volume,
// and that a volume in use is not unstaged.
func TestSideBySide(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	done := make(chan error)
	const pods = 4
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		go func() {
			var all []error
			for range 5 {
				v := volumeOf(one)
				v.Pod = podOf(uid)
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
	m.inUse(t)
	m.inTurns(t)
}

// TestRepublish checks that a volume that requires republishing is published again when
// its request changes, and periodically.
func TestRepublish(t *testing.T) {
	m := newMachine(t, Options{Republish: time.Hour}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	v.CSI.DriverSpec = wishes(func(s *storage.CSIDriverSpec) { s.RequiresRepublish = ptr(true) })
	m.publish(t, v)
	next := v
	changed := *v.CSI
	changed.Tokens, next.CSI = "newer", &changed
	m.publish(t, next)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1")
	m.restart(t, Options{Republish: time.Millisecond})
	m.publish(t, next)
	m.until(t, "it is published now and then", func() bool { all, err := m.driver.Changes(); must(t, err); return len(all) > 5 })
	m.unpublish(t, one)
	m.inUse(t)
}

// TestGrow checks that a volume whose capacity increased is expanded once, also in use.
func TestGrow(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	v := volumeOf(one)
	m.publish(t, v)
	larger := v
	changed := *v.CSI
	changed.Capacity, changed.MustExpand, larger.CSI = 2<<20, true, &changed
	must(t, m.driver.Set("NodeExpandVolume", "once Internal not now"))
	grown := func() bool {
		all, _ := m.Grown()
		return len(all) == 1 && all[0].Capacity == 2<<20 && all[0].Volume == "pv-1" && all[0].Failed == nil
	}
	m.publish(t, larger)
	m.until(t, "it has grown", grown)
	m.publish(t, larger)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeExpandVolume vol-1")
	m.restart(t, Options{})
	m.until(t, "it is remembered", grown)
	m.unpublish(t, one)
	m.inUse(t)
	if grown() {
		t.Error("what is gone is not forgotten")
	}
}

// TestUnreadable checks that an empty data file prevents the removal of a pod only if
// something is mounted.
func TestUnreadable(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	m.publish(t, v)
	f := filepath.Join(m.pathsFor(v).data, dataFile)
	text, err := os.ReadFile(f)
	must(t, err)
	must(t, os.WriteFile(f, nil, 0o600))
	if err := m.Unpublish(t.Context(), one); err == nil || !strings.Contains(err.Error(), "unmount it") {
		t.Error(err)
	}
	must(t, os.WriteFile(f, text, 0o600))
	m.unpublish(t, one)
	m.inUse(t)
	must(t, os.MkdirAll(filepath.Dir(f), 0o750))
	must(t, os.WriteFile(f, nil, 0o600))
	m.unpublish(t, one)
}

// TestHostile checks that names that contain paths are rejected.
func TestHostile(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	for _, change := range []func(*refs.CSI){
		func(c *refs.CSI) { c.Driver = "../x" },
		func(c *refs.CSI) { c.Volume = "../x" },
		func(c *refs.CSI) { c.Handle = "" },
		func(c *refs.CSI) { c.Volume, c.Block = "staging", true },
	} {
		v := volumeOf(one)
		change(v.CSI)
		if _, err := m.Publish(t.Context(), v); err == nil {
			t.Errorf("%+v was published", v.CSI)
		}
	}
	if err := m.Unpublish(t.Context(), "../x"); err == nil {
		t.Error("a pod outside was unpublished")
	}
	m.done(t)
}

// TestManyOrphans checks the limit of concurrent unstage calls, and that all volumes are
// unstaged.
func TestManyOrphans(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	must(t, m.driver.Set("NodeUnstageVolume", "hang"))
	for i := range 2 * maxTasks {
		m.publish(t, with(volumeOf(one), func(c *refs.CSI) { c.Handle, c.Volume = fmt.Sprintf("vol-%d", i), fmt.Sprintf("pv-%d", i) }))
	}
	m.unpublish(t, one)
	begun := func() (n int) {
		for _, c := range m.calls(t) {
			if c.Event == csidriver.Begun && c.Method == "NodeUnstageVolume" {
				n++
			}
		}
		return n
	}
	m.until(t, "as much as may be is asked for", func() bool { return begun() >= maxTasks })
	m.publish(t, with(volumeOf(two), func(c *refs.CSI) { c.Handle, c.Volume = "other", "other" })) // there was time for more
	if n := begun(); n != maxTasks {
		t.Errorf("%d calls at once", n)
	}
	m.unpublish(t, two)
	must(t, m.driver.Set("NodeUnstageVolume", ""))
	m.inUse(t)
}

// TestGrowFails checks that a failure to grow is reported until the growth is no longer
// desired.
func TestGrowFails(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	larger := with(volumeOf(one), func(c *refs.CSI) { c.Capacity, c.MustExpand = 2<<20, true })
	failed := func(is GrowthFailure) func() bool {
		return func() bool {
			all, _ := m.Grown()
			return len(all) == 1 && all[0].Capacity == 2<<20 && all[0].Failed != nil && *all[0].Failed == is
		}
	}
	says := "NodeExpandVolume of driver " + driver + ": "
	must(t, m.driver.Set("NodeExpandVolume", "Internal not now"))
	if _, err := m.Publish(t.Context(), larger); err == nil {
		t.Error("Publish while expanding fails: got no error, want one")
	}
	if !failed(GrowthFailure{Message: says + "not now (Internal)"})() {
		t.Error("Grown does not contain the first failure")
	}
	m.until(t, "the second failure in Grown", failed(GrowthFailure{Message: says + "not now (Internal)", Again: true}))
	must(t, m.driver.Set("NodeExpandVolume", "OutOfRange too large"))
	m.until(t, "the infeasible failure in Grown", failed(GrowthFailure{Message: says + "too large (OutOfRange)", Infeasible: true, Again: true}))
	m.publish(t, volumeOf(one))
	if all, _ := m.Grown(); len(all) > 0 {
		t.Errorf("Grown without a volume to expand: got %+v, want none", all[0])
	}
	m.unpublish(t, one)
	m.inUse(t)
}
