package csi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
)

// A Growth is the result of growing a volume on this node.
type Growth struct {
	Use
	Volume   string // name of the PersistentVolume
	Capacity int64
	// Failed is the failure of the last attempt; nil if the volume has grown.
	Failed *GrowthFailure
}

// A GrowthFailure is why a volume has not grown. It is immutable.
type GrowthFailure struct {
	Message string
	// Infeasible reports whether retrying is useless, and Again whether an earlier
	// attempt failed, too.
	Infeasible, Again bool
}

// Grown returns the volumes in use that have grown or failed to grow on this node, and a
// channel that is closed with the next change.
func (d *Drivers) Grown() ([]Growth, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Values(d.grown)), maps.Values(d.failing))
	slices.SortStableFunc(all, func(a, b Growth) int { return compareUses(a.Use, b.Use) })
	return all, d.grownChanged
}

// grow makes the driver expand the volume on this node if its capacity has increased.
func (w *work) grow(ctx context.Context) error {
	id := w.v.id()
	if !w.d.needsGrowth(w.v) {
		return nil
	}
	if w.can.grow() {
		err := w.call(ctx, func(ctx context.Context) error {
			_, err := w.node.NodeExpandVolume(ctx, w.v.growRequest(w.p, w.can))
			return err
		})
		if err != nil {
			w.d.recordGrowthFailure(w.v, err)
			return err
		}
	} // else no expansion is necessary on the node
	f, err := w.loadFacts(w.p.stageData)
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
	signalChange(&w.d.grownChanged)
	return nil
}

// infeasible has the codes after which the kubelet does not retry to grow a volume.
var infeasible = []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}

// recordGrowthFailure records a failure, unless the driver may still work on the call.
func (d *Drivers) recordGrowthFailure(v Volume, err error) {
	e, is := errors.AsType[*callError](err)
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
	signalChange(&d.grownChanged)
}

// needsGrowth reports whether the capacity of a volume is larger than the one to which it
// has grown on this node.
func (d *Drivers) needsGrowth(v Volume) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v.persistent() && v.MustExpand && d.grown[v.id()].Capacity < v.Capacity
}

// inUse reports whether err means that the driver cannot grow a volume that is in use.
func inUse(err error) bool {
	e, is := errors.AsType[*callError](err)
	return is && e.Code == codes.FailedPrecondition
}
