package csi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
)

// An Expansion is the result of expanding a volume on this node (NodeExpandVolume).
type Expansion struct {
	VolumeID
	Volume   string // name of the PersistentVolume
	Capacity int64  // requested capacity in bytes
	// Failure describes the failure of the last attempt; nil if the volume was expanded.
	Failure *ExpansionFailure
}

// An ExpansionFailure is the reason why a volume was not expanded. It is immutable.
type ExpansionFailure struct {
	Message string
	// Infeasible reports whether the driver can never expand the volume to this capacity.
	Infeasible bool
	// Repeated reports whether an earlier attempt to expand the volume to this capacity failed,
	// too.
	Repeated bool
}

// Expansions returns the results of expanding volumes in use on this node, and a channel that is closed
// at the next change of the results.
func (d *Drivers) Expansions() ([]Expansion, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Values(d.expanded)), maps.Values(d.failing))
	slices.SortStableFunc(all, func(a, b Expansion) int { return compareVolumeIDs(a.VolumeID, b.VolumeID) })
	return all, d.expansionsChanged
}

// expand makes the driver expand the volume on this node if its capacity has increased.
func (op *operation) expand(ctx context.Context) error {
	id := op.v.id()
	if !op.d.needsExpansion(op.v) {
		return nil
	}
	if op.can.expand() {
		err := op.call(ctx, func(ctx context.Context) error {
			_, err := op.node.NodeExpandVolume(ctx, op.v.expandRequest(op.p, op.can))
			return err
		})
		if err != nil {
			op.d.recordExpansionFailure(op.v, err)
			return err
		}
	} // otherwise, the driver needs no expansion on the node
	f, err := op.loadFacts(op.p.stageDataDir)
	if err != nil {
		return err
	}
	f[keyCapacity] = strconv.FormatInt(op.v.Capacity, 10)
	if err := f.save(op.p.stageDataDir); err != nil {
		return err
	}
	op.d.mu.Lock()
	defer op.d.mu.Unlock()
	op.d.expanded[id] = Expansion{VolumeID: id, Volume: op.v.Volume, Capacity: op.v.Capacity}
	delete(op.d.failing, id)
	signalChange(&op.d.expansionsChanged)
	return nil
}

// infeasible contains the gRPC codes after which the kubelet does not retry to expand a volume.
var infeasible = []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}

// recordExpansionFailure records that expanding v failed with err. It does nothing if err is not the
// error of a call, or if the driver may still process the call.
func (d *Drivers) recordExpansionFailure(v Volume, err error) {
	e, is := errors.AsType[*callError](err)
	if !is || e.Uncertain {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := v.id()
	before, failed := d.failing[id]
	d.failing[id] = Expansion{id, v.Volume, v.Capacity, &ExpansionFailure{
		Message: err.Error(), Infeasible: slices.Contains(infeasible, e.Code), Repeated: failed && before.Capacity == v.Capacity,
	}}
	signalChange(&d.expansionsChanged)
}

// needsExpansion reports whether a volume must be expanded on this node, because its capacity is
// larger than the capacity to which it was last expanded.
func (d *Drivers) needsExpansion(v Volume) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v.persistent() && v.MustExpand && d.expanded[v.id()].Capacity < v.Capacity
}

// cannotExpandInUse reports whether err means that the driver cannot expand a volume that is in use.
func cannotExpandInUse(err error) bool {
	e, is := errors.AsType[*callError](err)
	return is && e.Code == codes.FailedPrecondition
}
