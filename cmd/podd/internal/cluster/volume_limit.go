package cluster

import (
	"context"
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

// A volumeLimitUpdater updates the maximum number of volumes of the registered CSI drivers whose CSIDriver
// sets nodeAllocatableUpdatePeriodSeconds (KEP-4876). It runs one goroutine for each of these drivers. The
// csiDriverPublisher then publishes a changed number in the CSINode.
type volumeLimitUpdater struct {
	o           *Options
	drivers     *watchable.Value[apiserver.Snapshot[*storage.CSIDriver]]
	limitErrors *watchable.Value[map[string]limitErrors] // by driver
}

// limitErrors counts the attempts to attach volumes of a CSI driver that failed because the node has
// reached a limit of attached volumes. A lookup may count the same attempt several times.
type limitErrors struct {
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

// run updates the drivers until ctx is done.
func (u *volumeLimitUpdater) run(ctx context.Context) {
	var goroutines sync.WaitGroup
	defer goroutines.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := map[string]limitUpdate{}
	for {
		registered, registeredChanged := u.o.CSI.Registered()
		drivers, driversChanged := u.drivers.Get()
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
func (u *volumeLimitUpdater) resetHandled(periods map[string]time.Duration) {
	all, _ := u.limitErrors.Get()
	for name := range all {
		if periods[name] == 0 {
			updateLimitErrors(u.limitErrors, name, func(e *limitErrors) { e.handled = 0 })
		}
	}
}

// updateDriver updates the maximum number of volumes of a driver after each period, and when an attachment
// has failed because of the limit of the driver, until ctx is done. It sets handled after each update,
// even if the update has failed.
func (u *volumeLimitUpdater) updateDriver(ctx context.Context, name string, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	lastErr := ""
	for {
		all, changed := u.limitErrors.Get()
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
		err := u.o.CSI.UpdateMaxVolumes(ctx, name)
		updateLimitErrors(u.limitErrors, name, func(e *limitErrors) {
			if ctx.Err() == nil { // checked in this function, so that a cancelled goroutine does not undo resetHandled
				e.handled = recorded
			}
		})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			lastErr = ""
		case err.Error() != lastErr:
			lastErr = err.Error()
			u.o.Log.Warn("updating the maximum number of volumes of a CSI driver failed; retrying after the update period", "driver", name, "period", period, "err", err)
		}
	}
}

// recordLimitError records an attempt to attach a volume of a CSI driver that failed because the node has
// reached a limit of attached volumes. It returns the new number of recorded attempts.
func recordLimitError(all *watchable.Value[map[string]limitErrors], driver string) (recorded int) {
	updateLimitErrors(all, driver, func(e *limitErrors) {
		e.recorded++
		recorded = e.recorded
	})
	return recorded
}

// updateLimitErrors calls change with the limitErrors of a driver and stores the changed value.
func updateLimitErrors(all *watchable.Value[map[string]limitErrors], driver string, change func(*limitErrors)) {
	all.Update(func(old map[string]limitErrors) map[string]limitErrors {
		next := map[string]limitErrors{}
		maps.Copy(next, old)
		e := next[driver]
		change(&e)
		next[driver] = e
		return next
	})
}
