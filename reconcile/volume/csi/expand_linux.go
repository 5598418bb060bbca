package csi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"

	"podd/manifest/order"
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
	// IsInfeasible reports whether the driver can never expand the volume to this capacity.
	IsInfeasible bool
	// IsRepeated reports whether an earlier attempt to expand the volume to this capacity also
	// failed.
	IsRepeated bool
}

// Expansions returns the results of expanding volumes in use on this node, and a channel. The
// channel is closed when the results change.
func (d *Drivers) Expansions() ([]Expansion, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	expansions := slices.AppendSeq(slices.Collect(maps.Values(d.expanded)), maps.Values(d.failedExpansions))
	order.Stable(expansions, func(a, b Expansion) int { return compareVolumeIDs(a.VolumeID, b.VolumeID) })
	return expansions, d.expansionsChanged
}

// expand makes the driver expand the volume on this node if its capacity has increased.
func (op *operation) expand(ctx context.Context) error {
	id := op.v.id()
	if !op.d.needsExpansion(op.v) {
		return nil
	}
	if op.caps.supportsExpansion() {
		err := op.call(ctx, func(ctx context.Context) error {
			_, err := op.nodeClient.NodeExpandVolume(ctx, op.v.expandRequest(op.p, op.caps))
			return err
		})
		if err != nil {
			op.d.recordExpansionFailure(op.v, err)
			return err
		}
	} // without the capability, the driver needs no expansion on the node
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
	delete(op.d.failedExpansions, id)
	signalChange(&op.d.expansionsChanged)
	return nil
}

// infeasibleCodes contains the gRPC codes of a failed expansion after which the kubelet does not
// retry.
var infeasibleCodes = []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}

// recordExpansionFailure records that expanding v failed with err. It does nothing if err is not a
// *callError, or if the driver may still process the call.
func (d *Drivers) recordExpansionFailure(v Volume, err error) {
	e, ok := errors.AsType[*callError](err)
	if !ok || e.IsUncertain {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := v.id()
	lastFailure, hasFailed := d.failedExpansions[id]
	d.failedExpansions[id] = Expansion{id, v.Volume, v.Capacity, &ExpansionFailure{
		Message: err.Error(), IsInfeasible: slices.Contains(infeasibleCodes, e.Code), IsRepeated: hasFailed && lastFailure.Capacity == v.Capacity,
	}}
	signalChange(&d.expansionsChanged)
}

// needsExpansion reports whether the capacity of a volume is larger than the capacity to which it
// was last expanded on this node.
func (d *Drivers) needsExpansion(v Volume) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v.isPersistent() && v.MustExpand && d.expanded[v.id()].Capacity < v.Capacity
}

// cannotExpandInUse reports whether err means that the driver cannot expand a volume that is in use.
func cannotExpandInUse(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && e.Code == codes.FailedPrecondition
}
