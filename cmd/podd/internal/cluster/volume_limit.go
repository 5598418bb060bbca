package cluster

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/csi"
)

// A volumeLimitUpdater updates the maximum number of volumes of the registered CSI drivers whose CSIDriver
// sets nodeAllocatableUpdatePeriodSeconds (KEP-4876). It runs one goroutine for each of these drivers. The
// csiDriverPublisher then publishes a changed number in the CSINode.
type volumeLimitUpdater struct {
	o           *Options
	drivers     *watchable[snapshot[*storage.CSIDriver]]
	limitErrors *watchable[map[string]int] // see recordLimitError
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
		drivers, driversChanged := u.drivers.get()
		periods := updatePeriods(registered, drivers.items)
		for name, update := range updates {
			if periods[name] != update.period {
				update.cancel()
				delete(updates, name)
			}
		}
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

// updateDriver updates the maximum number of volumes of a driver after each period, and when an attachment
// has failed because of the limit of the driver, until ctx is done. It ignores attachments that have
// failed before the call. If the volume is still not attached, the lookup records the error again.
func (u *volumeLimitUpdater) updateDriver(ctx context.Context, name string, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	initialCounts, _ := u.limitErrors.get()
	handled, lastErr := initialCounts[name], ""
	for {
		counts, changed := u.limitErrors.get()
		if counts[name] == handled {
			select {
			case <-ticker.C:
			case <-changed:
				continue
			case <-ctx.Done():
				return
			}
		}
		handled = counts[name]
		switch err := u.o.CSI.UpdateMaxVolumes(ctx, name); {
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

// recordLimitError counts an attempt to attach a volume of a CSI driver that failed because the node has
// reached a limit of attached volumes. counts contains the number of these attempts by driver.
func recordLimitError(counts *watchable[map[string]int], driver string) {
	counts.update(func(old map[string]int) map[string]int {
		next := map[string]int{}
		maps.Copy(next, old)
		next[driver]++
		return next
	})
}
