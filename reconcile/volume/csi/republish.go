package csi

import (
	"context"
	"path/filepath"
	"time"
)

// A publishCall is the last NodePublishVolume call for a volume.
type publishCall struct {
	Volume
	calledAt time.Time
}

// A publishedVolume is a published volume with the parameters that its pod now requires. lastCall
// is the last NodePublishVolume call. It is nil if the volume was published before podd started.
type publishedVolume struct {
	Volume
	volumePaths
	lastCall *publishCall
}

// needsPublish reports whether a volume must be published again. This is the case if the driver
// requires republishing, and the request has changed or the last call is older than interval.
func (w publishedVolume) needsPublish(interval time.Duration) bool {
	return w.requiresRepublish() && (w.lastCall == nil || !w.lastCall.hasSameRequest(w.Volume) || time.Since(w.lastCall.calledAt) >= interval)
}

// reportFailure logs that updating a volume failed, and calls Options.OnUpdateFailed.
func (k *runner) reportFailure(w publishedVolume, err error) {
	k.o.Log.Warn("publishing a volume again with new parameters failed; the volume stays unchanged", "pod", w.Pod.Key, "volume", filepath.Base(w.specName()), "err", err)
	if k.o.OnUpdateFailed != nil {
		k.o.OnUpdateFailed(w.Volume, err)
	}
}

// setPublished records that v is published at the target of p, with the parameters that its pod now
// requires. call is nil if the driver was not called.
func (d *Drivers) setPublished(p volumePaths, v Volume, call *publishCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call == nil {
		call = d.published[p.target].lastCall
	}
	d.published[p.target] = publishedVolume{v, p, call}
	if !v.MustExpand { // no expansion is necessary, so a recorded failure is obsolete
		delete(d.failedExpansions, v.id())
	}
	if v.MustExpand || v.requiresRepublish() {
		d.wakeRun()
	}
}

// updateVolume updates the volume in use at target: it publishes the volume again and expands the
// volume, if necessary.
func (d *Drivers) updateVolume(ctx context.Context, target string) error {
	w, ok := d.publishedVolume(target)
	if !ok {
		return nil
	}
	unlock, err := d.lockVolume(ctx, w.id(), w.volumePaths.deviceDataDir())
	if err != nil {
		return err
	}
	defer unlock()
	if w, ok = d.publishedVolume(target); !ok { // unpublished during the wait for the lock
		return nil
	}
	steps := volumeSteps(w.Volume)
	op, err := d.newOperation(ctx, w.Volume, w.volumePaths)
	if err != nil {
		return steps.wrap(publishing, err)
	}
	defer op.close()
	if w.needsPublish(d.o.RepublishInterval) {
		if err := op.publish(ctx); err != nil {
			return steps.wrap(publishing, err)
		}
		d.mu.Lock()
		if current, ok := d.published[target]; ok {
			current.lastCall = &publishCall{w.Volume, time.Now()}
			d.published[target] = current
		}
		d.mu.Unlock()
	}
	return steps.wrap(expanding, op.expand(ctx))
}

// publishedVolume returns the volume that is published at target. ok is false if there is none.
func (d *Drivers) publishedVolume(target string) (w publishedVolume, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, ok = d.published[target]
	return w, ok
}
