package csi

import (
	"context"
	"path/filepath"
	"time"
)

// told is what a driver was told with the newest publish, and when.
type told struct {
	Volume
	at time.Time
}

// wish is a volume that is published, as its pod has it now. told is nil where that
// was before podd started.
type wish struct {
	Volume
	place
	told *told
}

// stale says that the driver is to be told anew of a volume.
func (w wish) stale(after time.Duration) bool {
	return w.republishes() && (w.told == nil || !w.told.same(w.Volume) || time.Since(w.told.at) >= after)
}

func (k *keeper) tell(w wish, err error) {
	k.o.Log.Warn("a volume in use stays as it was", "pod", w.Pod.Key, "volume", filepath.Base(w.spec()), "err", err)
	if k.o.Failed != nil {
		k.o.Failed(w.Volume, err)
	}
}

// want notes what a volume that is published is to be; call is nil where the driver
// was not called for it now.
func (d *Drivers) want(p place, v Volume, call *told) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call == nil {
		call = d.wanted[p.target].told
	}
	d.wanted[p.target] = wish{v, p, call}
	if !v.Grow { // nor is it to be told that it failed to
		delete(d.failing, v.id())
	}
	if v.Grow || v.republishes() {
		d.look()
	}
}

// keep publishes a volume in use again, or grows it, as it is due.
func (d *Drivers) keep(ctx context.Context, target string) error {
	w, is := d.wish(target)
	if !is {
		return nil
	}
	end, err := d.take(ctx, w.id())
	if err != nil {
		return err
	}
	defer end()
	if w, is = d.wish(target); !is { // unpublished meanwhile
		return nil
	}
	steps := stepsOf(w.Volume)
	work, err := d.begin(ctx, w.Volume, w.place)
	if err != nil {
		return steps.failed(publishing, err)
	}
	defer work.close()
	if w.stale(d.o.Republish) {
		if err := work.publish(ctx); err != nil {
			return steps.failed(publishing, err)
		}
		d.mu.Lock()
		if now, is := d.wanted[target]; is {
			now.told = &told{w.Volume, time.Now()}
			d.wanted[target] = now
		}
		d.mu.Unlock()
	}
	return steps.failed(growing, work.grow(ctx))
}

func (d *Drivers) wish(target string) (wish, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, is := d.wanted[target]
	return w, is
}
