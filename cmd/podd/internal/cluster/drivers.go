package cluster

import (
	"context"

	"podd/reconcile/volume/csi"
)

// Drivers provides the CSI drivers of this node. Each method that returns a list also returns a channel
// that is closed when the list changes. Callers must not modify lists.
type Drivers interface {
	// Registered returns the drivers that are ready for volumes.
	Registered() ([]csi.Driver, <-chan struct{})
	// VolumesInUse returns the volumes on this node. The result contains a volume from the time
	// before the first call of its driver until the volume has been removed.
	VolumesInUse() ([]csi.VolumeID, <-chan struct{})
	// Expansions returns the successful and failed expansions of volumes on this node.
	Expansions() ([]csi.Expansion, <-chan struct{})
	// UpdateMaxVolumes requests the maximum number of volumes from a driver. The result of Registered
	// changes if this number has changed.
	UpdateMaxVolumes(ctx context.Context, driver string) error
}

var _ Drivers = (*csi.Drivers)(nil)
