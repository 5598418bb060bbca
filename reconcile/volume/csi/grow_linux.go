package csi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
)

// Growth is a volume that was brought to a capacity here, or was not.
type Growth struct {
	Use
	Volume   string // name of the PersistentVolume
	Capacity int64
	// Failed is what came of the driver's newest try; nil: the volume has grown.
	Failed *GrowthFailure
}

// GrowthFailure is why a volume has not grown. Immutable.
type GrowthFailure struct {
	Message string
	// Infeasible says that another try is of no use, Again that this was not the first.
	Infeasible, Again bool
}

// Grown are the volumes that were made to grow here, or that drivers do not let grow,
// and what is closed with the next change. Those that are in use no more are forgotten.
func (d *Drivers) Grown() ([]Growth, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Values(d.grown)), maps.Values(d.failing))
	slices.SortStableFunc(all, func(a, b Growth) int { return compareUses(a.Use, b.Use) })
	return all, d.grownChanged
}

// grow has the driver make use of what the volume has become.
func (w *work) grow(ctx context.Context) error {
	id := w.v.id()
	if !w.d.grows(w.v) {
		return nil
	}
	if w.can.grow() {
		err := w.call(ctx, func(ctx context.Context) error {
			_, err := w.node.NodeExpandVolume(ctx, w.v.growRequest(w.p, w.can))
			return err
		})
		if err != nil {
			w.d.noteGrowthFailed(w.v, err)
			return err
		}
	} // else nothing is left for this machine to do
	f, err := w.factsOf(w.p.stageData)
	if err != nil {
		return err
	}
	f[keyCapacity] = strconv.FormatInt(w.v.Capacity, 10)
	if err := f.save(w.p.stageData); err != nil {
		return err
	}
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.grown[id] = Growth{Use: id, Volume: w.v.Volume, Capacity: w.v.Capacity}
	delete(w.d.failing, id)
	renew(&w.d.grownChanged)
	return nil
}

// infeasible are the codes of a growth that another try is of no use to, the kubelet's.
var infeasible = []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}

// noteGrowthFailed takes what a driver said; one that may still be at it said nothing.
func (d *Drivers) noteGrowthFailed(v Volume, err error) {
	e, is := errors.AsType[*Error](err)
	if !is || e.Uncertain {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := v.id()
	before, failed := d.failing[id]
	d.failing[id] = Growth{id, v.Volume, v.Capacity, &GrowthFailure{
		Message: err.Error(), Infeasible: slices.Contains(infeasible, e.Code), Again: failed && before.Capacity == v.Capacity,
	}}
	renew(&d.grownChanged)
}

// grows says that a volume has become larger than it is known to be here.
func (d *Drivers) grows(v Volume) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v.persistent() && v.Grow && d.grown[v.id()].Capacity < v.Capacity
}

// inUse says that a driver grows a volume only while nobody uses it.
func inUse(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && e.Code == codes.FailedPrecondition
}
