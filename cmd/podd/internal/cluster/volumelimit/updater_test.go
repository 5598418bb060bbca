package volumelimit

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/reconcile/volume/csi"
)

// TestUpdatePeriods checks which drivers require periodic updates.
func TestUpdatePeriods(t *testing.T) {
	withPeriod := func(seconds *int64) *storage.CSIDriver {
		return &storage.CSIDriver{Spec: storage.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: seconds}}
	}
	for name, test := range map[string]struct {
		stored *storage.CSIDriver
		want   map[string]time.Duration
	}{
		"no CSIDriver":    {nil, map[string]time.Duration{}},
		"no period":       {withPeriod(nil), map[string]time.Duration{}},
		"invalid period":  {withPeriod(new(int64(0))), map[string]time.Duration{}},
		"shortest period": {withPeriod(new(int64(10))), map[string]time.Duration{"disk.example": 10 * time.Second}},
		"longest period":  {withPeriod(new(int64(math.MaxInt64))), map[string]time.Duration{"disk.example": math.MaxInt64 / time.Second * time.Second}},
	} {
		drivers := map[types.NamespacedName]*storage.CSIDriver{{Name: "other.example"}: withPeriod(new(int64(20)))}
		if test.stored != nil {
			drivers[types.NamespacedName{Name: "disk.example"}] = test.stored
		}
		if got := updatePeriods([]csi.Driver{{Name: "disk.example"}}, drivers); !maps.Equal(got, test.want) {
			t.Errorf("%s: got periods %v, want %v", name, got, test.want)
		}
	}
}

// fakeDrivers implements Drivers. It counts the updates.
type fakeDrivers struct {
	registered watchable.Value[[]csi.Driver]
	updates    atomic.Int32
	update     func(context.Context) error // the result of UpdateMaxVolumes; nil means success
}

func (f *fakeDrivers) Registered() ([]csi.Driver, <-chan struct{}) { return f.registered.Get() }

func (f *fakeDrivers) UpdateMaxVolumes(ctx context.Context, driver string) error {
	if driver == "disk.example" {
		f.updates.Add(1)
	}
	if f.update != nil {
		return f.update(ctx)
	}
	return nil
}

// A testUpdater runs an Updater with the registered driver disk.example.
type testUpdater struct {
	drivers  fakeDrivers
	specs    apiserver.Store[*storage.CSIDriver]
	failures AttachFailures
}

// runUpdater starts an Updater in a synctest bubble and calls test. prepare may be nil.
func runUpdater(t *testing.T, prepare, test func(*testUpdater)) {
	synctest.Test(t, func(t *testing.T) {
		u := &testUpdater{}
		u.drivers.registered.Set([]csi.Driver{{Name: "disk.example"}})
		if prepare != nil {
			prepare(u)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var part sync.WaitGroup
		part.Go(func() {
			(&Updater{Drivers: &u.drivers, Specs: u.specs.Get, Failures: &u.failures, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		})
		synctest.Wait()
		test(u)
		cancel()
		part.Wait()
	})
}

// setPeriod sets the update period of disk.example in seconds. 0 means that its CSIDriver has none.
func (u *testUpdater) setPeriod(seconds int64) {
	d := &storage.CSIDriver{}
	if seconds > 0 {
		d.Spec.NodeAllocatableUpdatePeriodSeconds = &seconds
	}
	u.specs.Set(apiserver.Snapshot[*storage.CSIDriver]{Items: map[types.NamespacedName]*storage.CSIDriver{{Name: "disk.example"}: d}})
	synctest.Wait()
}

// record records a failed attachment of a volume of disk.example.
func (u *testUpdater) record() (recorded int) {
	recorded = u.failures.Record("disk.example")
	synctest.Wait()
	return recorded
}

// check lets d pass, and checks the number of updates since the last check and the number of handled
// failures.
func (u *testUpdater) check(t *testing.T, when string, d time.Duration, wantUpdates int32, wantHandled int) {
	t.Helper()
	clustertest.Advance(d)
	if updates, handled := u.drivers.updates.Swap(0), u.failures.Handled("disk.example"); updates != wantUpdates || handled != wantHandled {
		t.Errorf("%s, within %s: got %d updates, %d handled failures; want %d updates, %d handled failures", when, d, updates, handled, wantUpdates, wantHandled)
	}
}

// TestUpdater_Period checks that podd updates the maximum number of volumes after each period of the
// CSIDriver, and that a change of the period takes effect. podd must request the number only while the driver
// is registered and its CSIDriver has a period.
func TestUpdater_Period(t *testing.T) {
	runUpdater(t, nil, func(u *testUpdater) {
		u.check(t, "no CSIDriver", time.Hour, 0, 0)
		u.setPeriod(0)
		u.check(t, "no period", time.Hour, 0, 0)
		u.setPeriod(30)
		u.check(t, "period of 30s", 29*time.Second, 0, 0)
		u.check(t, "period of 30s", time.Second, 1, 0)
		u.drivers.registered.Set([]csi.Driver{{Name: "other.example"}, {Name: "disk.example", MaxVolumes: 4}})
		u.check(t, "same period and another limit", 5*time.Minute, 10, 0)
		u.setPeriod(10)
		u.check(t, "period of 10s", time.Minute, 6, 0)
		u.drivers.registered.Set(nil)
		u.check(t, "not registered", time.Hour, 0, 0)
		u.drivers.registered.Set([]csi.Driver{{Name: "disk.example"}})
		u.check(t, "registered again", 10*time.Second, 1, 0)
		u.specs.Set(apiserver.Snapshot[*storage.CSIDriver]{})
		u.check(t, "CSIDriver deleted", time.Hour, 0, 0)
	})
}

// TestUpdater_Failure checks that podd continues to request the number from a driver that returns errors.
func TestUpdater_Failure(t *testing.T) {
	prepare := func(u *testUpdater) { u.drivers.update = func(context.Context) error { return errors.New("broken") } }
	runUpdater(t, prepare, func(u *testUpdater) {
		u.setPeriod(10)
		u.check(t, "failing driver", time.Minute, 6, 0)
		u.record()
		u.check(t, "failed attachment", 0, 1, 1)
	})
}

// TestUpdater_FailedAttachment checks that podd updates the maximum number of volumes at once when an
// attachment has failed because of the limit, if the driver has a period.
func TestUpdater_FailedAttachment(t *testing.T) {
	runUpdater(t, nil, func(u *testUpdater) {
		u.setPeriod(0)
		if n := u.record(); n != 1 {
			t.Errorf("first failure: got %d recorded failures, want 1", n)
		}
		u.check(t, "failure without a period", time.Hour, 0, 0)
		u.setPeriod(3600)
		u.check(t, "period added after a failure", 0, 1, 1)
		u.record()
		u.check(t, "failure with a period", 0, 1, 2)
		u.failures.Record("other.example")
		u.check(t, "failure of another driver", time.Minute, 0, 2)
		u.setPeriod(0)
		u.check(t, "period removed", time.Hour, 0, 0)
		if n := u.record(); n != 3 {
			t.Errorf("third failure: got %d recorded failures, want 3", n)
		}
		u.setPeriod(3600)
		u.check(t, "period added again", 0, 1, 3)
	})
}

// TestUpdater_Blocked checks a driver that does not respond at once. A failure must not count as handled
// before the end of an update that began after it. A change of the period during the update must repeat the
// update.
func TestUpdater_Blocked(t *testing.T) {
	var continues chan struct{}
	prepare := func(u *testUpdater) {
		continues = make(chan struct{}, 1) // in the bubble
		u.drivers.update = func(ctx context.Context) error {
			select {
			case <-continues:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	runUpdater(t, prepare, func(u *testUpdater) {
		u.setPeriod(3600)
		u.record()
		u.check(t, "during the first update", time.Minute, 1, 0)
		u.record()
		u.check(t, "second failure during the update", time.Minute, 0, 0)
		continues <- struct{}{}
		u.check(t, "after the first update, which began before the second failure", 0, 1, 1)
		u.setPeriod(7200)
		u.check(t, "period changed during the second update", 0, 1, 1)
		continues <- struct{}{}
		u.check(t, "after the second update", 0, 0, 2)
	})
}
