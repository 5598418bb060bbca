package cluster

import "podd/reconcile/volume/csi"

// Drivers are the CSI drivers of this machine. Each answer comes with a channel that is
// closed when there is another; neither is written to.
type Drivers interface {
	// Registered are those that can be asked for volumes.
	Registered() ([]csi.Driver, <-chan struct{})
	// InUse are the PersistentVolumes that drivers have here, each from before its
	// driver first heard of it until it let go of it.
	InUse() ([]csi.Use, <-chan struct{})
	// Grown are those that were brought to a capacity here, or were not.
	Grown() ([]csi.Growth, <-chan struct{})
}

var _ Drivers = (*csi.Drivers)(nil)
