package csi

import (
	"context"
	"path/filepath"
	"time"
)

// A publishCall is the last NodePublishVolume call for a volume.
type publishCall struct {
	Volume
	at time.Time
}

// A publishedVolume is a published volume with its present parameters. last is nil if the volume
// was published before podd started.
type publishedVolume struct {
	Volume
	volumePaths
	last *publishCall
}

// needsPublish reports whether a volume must be published again. This is the case if the driver
// requires republishing, and the request has changed or the last call is older than interval.
func (w publishedVolume) needsPublish(interval time.Duration) bool {
	return w.republishes() && (w.last == nil || !w.last.equalRequest(w.Volume) || time.Since(w.last.at) >= interval)
}

// reportFailure logs that updating a volume failed, and calls Options.Failed.
func (k *runner) reportFailure(w publishedVolume, err error) {
	k.o.Log.Warn("updating a volume in use failed; the volume stays unchanged", "pod", w.Pod.Key, "volume", filepath.Base(w.specName()), "err", err)
	if k.o.Failed != nil {
		k.o.Failed(w.Volume, err)
	}
}

// setPublished records the desired state of a published volume. call is nil if the driver
// was not called.
func (d *Drivers) setPublished(p volumePaths, v Volume, call *publishCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call == nil {
		call = d.published[p.target].last
	}
	d.published[p.target] = publishedVolume{v, p, call}
	if !v.MustExpand { // a recorded failure to expand the volume is obsolete
		delete(d.failing, v.id())
	}
	if v.MustExpand || v.republishes() {
		d.wakeRun()
	}
}

// update publishes the volume in use at target again, and expands the volume, if necessary.
func (d *Drivers) update(ctx context.Context, target string) error {
	w, is := d.publishedVolume(target)
	if !is {
		return nil
	}
	end, err := d.lockVolume(ctx, w.id(), w.volumePaths.deviceDataDir())
	if err != nil {
		return err
	}
	defer end()
	if w, is = d.publishedVolume(target); !is { // unpublished while update waited for the lock
		return nil
	}
	steps := volumeSteps(w.Volume)
	op, err := d.begin(ctx, w.Volume, w.volumePaths)
	if err != nil {
		return steps.wrap(publishing, err)
	}
	defer op.close()
	if w.needsPublish(d.o.Republish) {
		if err := op.publish(ctx); err != nil {
			return steps.wrap(publishing, err)
		}
		d.mu.Lock()
		if now, is := d.published[target]; is {
			now.last = &publishCall{w.Volume, time.Now()}
			d.published[target] = now
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
