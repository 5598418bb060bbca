package csi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
)

// A Growth is the result of expanding a volume on this node (NodeExpandVolume).
type Growth struct {
	Use
	Volume   string // name of the PersistentVolume
	Capacity int64  // requested capacity in bytes
	// Failed is the failure of the last attempt; nil if the volume was expanded.
	Failed *GrowthFailure
}

// A GrowthFailure is the reason why a volume was not expanded. It is immutable.
type GrowthFailure struct {
	Message string
	// Infeasible reports whether the driver can never expand the volume to this capacity.
	Infeasible bool
	// Again reports whether an earlier attempt to expand the volume to this capacity failed,
	// too.
	Again bool
}

// Grown returns the results of expanding volumes in use on this node, and a channel that is closed
// at the next change of the results.
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
	} // otherwise, the driver needs no expansion on the node
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

// infeasible contains the gRPC codes after which the kubelet does not retry to expand a volume.
var infeasible = []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}

// recordGrowthFailure records that expanding v failed with err. It does nothing if err is not the
// error of a call, or if the driver may still process the call.
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

// needsGrowth reports whether a volume must be expanded on this node, because its capacity is
// larger than the capacity to which it was last expanded.
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
