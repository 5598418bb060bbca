// Package volumelimit updates the maximum number of volumes of CSI drivers.
//
// If a CSIDriver sets nodeAllocatableUpdatePeriodSeconds, podd requests the maximum number of volumes from
// the driver after each period. It also does so each time it reads that the attacher could not attach a
// volume because the node has reached a limit.
package volumelimit

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"sync"
	"time"

	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/reconcile/volume/csi"
)

// An Updater updates the maximum number of volumes of the registered CSI drivers whose CSIDriver
// sets nodeAllocatableUpdatePeriodSeconds (KEP-4876). It runs one goroutine for each of these drivers. The
// publisher of the drivers then publishes a changed number in the CSINode.
type Updater struct {
	Drivers Drivers
	// Specs returns the CSIDrivers of the cluster, and a channel that is closed when they change.
	Specs    func() (apiserver.Snapshot[*storage.CSIDriver], <-chan struct{})
	Failures *AttachFailures // the attempts to attach volumes that have failed because of a limit
	Log      *slog.Logger
}

// Drivers provides the registered CSI drivers of this node.
type Drivers interface {
	// Registered returns the drivers that are ready for volumes, and a channel that is closed when the
	// list changes.
	Registered() ([]csi.Driver, <-chan struct{})
	// UpdateMaxVolumes requests the maximum number of volumes from a driver. The result of Registered
	// changes if this number has changed.
	UpdateMaxVolumes(ctx context.Context, driver string) error
}

// AttachFailures counts, for each CSI driver, the attempts to attach a volume that failed because the node
// has reached a limit of attached volumes. The zero value has counted none. AttachFailures is safe for
// concurrent use.
type AttachFailures struct {
	counts watchable.Value[map[string]failureCount]
}

// A failureCount counts the attempts to attach volumes of a CSI driver that failed because the node has
// reached a limit of attached volumes. A lookup may count the same attempt several times.
type failureCount struct {
	recorded int // number of these attempts
	// handled is the value of recorded when the last completed call of UpdateMaxVolumes began. It is 0 if
	// the driver requires no periodic updates.
	handled int
}

// A limitUpdate describes a running goroutine that updates the maximum number of volumes of one driver.
type limitUpdate struct {
	period time.Duration
	cancel context.CancelFunc // stops the goroutine
}

// Run updates the drivers until ctx is done.
func (u *Updater) Run(ctx context.Context) {
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := map[string]limitUpdate{}
	for {
		registered, registeredChanged := u.Drivers.Registered()
		drivers, driversChanged := u.Specs()
		periods := updatePeriods(registered, drivers.Items)
		for name, update := range updates {
			if periods[name] != update.period {
				update.cancel()
				delete(updates, name)
			}
		}
		u.resetHandled(periods)
		for name, period := range periods {
			if _, isRunning := updates[name]; isRunning {
				continue
			}
			updateCtx, cancelUpdate := context.WithCancel(ctx)
			updates[name] = limitUpdate{period, cancelUpdate}
			goroutines.Go(func() { u.updateDriver(updateCtx, name, period) })
		}
		select {
		case <-registeredChanged:
		case <-driversChanged:
		case <-ctx.Done():
			return
		}
	}
}

// updatePeriods returns the update period of each registered driver that requires periodic updates, by
// name.
func updatePeriods(registered []csi.Driver, drivers map[types.NamespacedName]*storage.CSIDriver) map[string]time.Duration {
	periods := map[string]time.Duration{}
	for i := range registered {
		name := registered[i].Name
		d := drivers[types.NamespacedName{Name: name}]
		if d == nil || d.Spec.NodeAllocatableUpdatePeriodSeconds == nil {
			continue
		}
		if seconds := min(*d.Spec.NodeAllocatableUpdatePeriodSeconds, int64(math.MaxInt64/time.Second)); seconds > 0 {
			periods[name] = time.Duration(seconds) * time.Second
		}
	}
	return periods
}

// resetHandled sets handled to 0 for the drivers without a period. If such a driver gains a period,
// updateDriver updates the maximum number of volumes at once if an attachment has failed before.
func (u *Updater) resetHandled(periods map[string]time.Duration) {
	all, _ := u.Failures.counts.Get()
	for name := range all {
		if periods[name] == 0 {
			u.Failures.update(name, func(c *failureCount) { c.handled = 0 })
		}
	}
}

// updateDriver updates the maximum number of volumes of a driver after each period, and when an attachment
// has failed because of the limit of the driver, until ctx is done. It sets handled after each update,
// even if the update has failed.
func (u *Updater) updateDriver(ctx context.Context, name string, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	lastErr := ""
	for {
		all, changed := u.Failures.counts.Get()
		recorded := all[name].recorded
		if all[name].handled == recorded {
			select {
			case <-ticker.C:
			case <-changed:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := u.Drivers.UpdateMaxVolumes(ctx, name)
		u.Failures.update(name, func(c *failureCount) {
			if ctx.Err() == nil { // checked in this function, so that a cancelled goroutine does not undo resetHandled
				c.handled = recorded
			}
		})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			lastErr = ""
		case err.Error() != lastErr:
			lastErr = err.Error()
			u.Log.Warn("updating the maximum number of volumes of a CSI driver failed; retrying after the update period", "driver", name, "period", period, "err", err)
		}
	}
}

// Record records an attempt to attach a volume of a CSI driver that failed because the node has reached a
// limit of attached volumes. It returns the new number of recorded attempts.
func (f *AttachFailures) Record(driver string) (recorded int) {
	f.update(driver, func(c *failureCount) {
		c.recorded++
		recorded = c.recorded
	})
	return recorded
}

// Handled returns the number of attempts that were recorded for a driver before the last completed update
// of its maximum number of volumes began. It returns 0 if the driver requires no periodic updates.
func (f *AttachFailures) Handled(driver string) int {
	all, _ := f.counts.Get()
	return all[driver].handled
}

// update calls change with the failureCount of a driver and stores the changed value.
func (f *AttachFailures) update(driver string, change func(*failureCount)) {
	f.counts.Update(func(old map[string]failureCount) map[string]failureCount {
		next := map[string]failureCount{}
		maps.Copy(next, old)
		c := next[driver]
		change(&c)
		next[driver] = c
		return next
	})
}
