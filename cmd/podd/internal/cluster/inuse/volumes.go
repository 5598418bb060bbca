// Package inuse tracks the volumes of this node that the attach-detach controller must not detach.
//
// volumesInUse of the Node's status names CSI volumes that a controller attaches, and all iSCSI and Fibre
// Channel volumes. It names such a volume as long as a bound pod uses the volume or the volume is on this
// node. podd does not mount the volume before the API server has confirmed a status that names the volume.
// After a start, podd keeps the names in the status until all pods and volumes were listed.
package inuse

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// Volumes tracks the volumes that the attach-detach controller must not detach: the volumes
// of bound pods and the volumes that are still on this node. podd names them in volumesInUse of
// the Node's status. podd must not mount a volume before the API server has confirmed the status that
// names the volume. Otherwise the controller could detach the volume while it is mounted.
// Volumes is safe for concurrent use. The zero value contains no volumes.
type Volumes struct {
	mu      sync.Mutex // guards all following fields
	desired Desired
	// namedVolumes contains the volumes in the last status that podd has sent or is about to send.
	// reportedVolumes contains the volumes that the API server has confirmed and that are still in
	// namedVolumes.
	namedVolumes, reportedVolumes map[v1.UniqueVolumeName]bool
	// desiredChanged is closed by the next change of the field desired, and reportedChanged by the
	// next change of reportedVolumes. A channel is nil until a method returns it.
	desiredChanged, reportedChanged chan struct{}
}

// Desired contains the volumes of the pods bound to the node.
type Desired struct {
	Names map[v1.UniqueVolumeName]bool
	// DriversWithoutAttachment contains the names of the drivers with volumes that need no attachment.
	// It is nil until the CSIDrivers were listed.
	DriversWithoutAttachment map[string]bool
	IsComplete               bool // Names contains all volumes of the pods
}

// equals reports whether all fields of w and o are equal.
func (w Desired) equals(o Desired) bool {
	return w.IsComplete == o.IsComplete && maps.Equal(w.Names, o.Names) &&
		(w.DriversWithoutAttachment == nil) == (o.DriversWithoutAttachment == nil) && maps.Equal(w.DriversWithoutAttachment, o.DriversWithoutAttachment)
}

// SetDesired sets the volumes of the bound pods. After it returns, every new status of the Node
// names these volumes.
func (u *Volumes) SetDesired(w Desired) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.desired.equals(w) {
		u.desired = w
		closeAndClear(&u.desiredChanged)
	}
}

// Names returns the volumes that the Node's status must name, and a channel that is closed when the
// desired volumes change. statusVolumes contains the volumes that the status of the Node names now.
// onNode contains the CSI volumes that are on this node, and disks the iSCSI and Fibre Channel volumes.
//
// Names omits a CSI volume on this node if the volume's driver needs no attachment, and omits all CSI
// volumes on this node until the CSIDrivers were listed. Until Desired.IsComplete is set, the
// result includes all statusVolumes.
func (u *Volumes) Names(statusVolumes []v1.UniqueVolumeName, onNode []csi.VolumeID, disks []v1.UniqueVolumeName) (names []v1.UniqueVolumeName, desiredChanged <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.desired.Names)
	if all == nil {
		all = map[v1.UniqueVolumeName]bool{}
	}
	for _, name := range disks {
		all[name] = true
	}
	if u.desired.DriversWithoutAttachment != nil {
		for _, use := range onNode {
			if !u.desired.DriversWithoutAttachment[use.Driver] {
				all[refs.UniqueVolumeName(use.Driver, use.Handle)] = true
			}
		}
	}
	if !u.desired.IsComplete {
		for _, name := range statusVolumes {
			all[name] = true
		}
	}
	u.namedVolumes = all
	u.updateReported(u.reportedVolumes)
	return slices.Sorted(maps.Keys(all)), ensureChan(&u.desiredChanged)
}

// SetReported records the volumes in the last status that the API server has confirmed.
func (u *Volumes) SetReported(names []v1.UniqueVolumeName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	confirmed := map[v1.UniqueVolumeName]bool{}
	for _, name := range names {
		confirmed[name] = true
	}
	u.updateReported(confirmed)
}

// updateReported sets reportedVolumes to the volumes that are both in the parameter confirmed and
// in namedVolumes. The caller must hold mu.
func (u *Volumes) updateReported(confirmed map[v1.UniqueVolumeName]bool) {
	next := map[v1.UniqueVolumeName]bool{}
	for name := range confirmed {
		if u.namedVolumes[name] {
			next[name] = true
		}
	}
	if !maps.Equal(next, u.reportedVolumes) {
		u.reportedVolumes = next
		closeAndClear(&u.reportedChanged)
	}
}

// IsReported reports whether the API server has confirmed a status of the Node that names the
// volume and the next status will also name it. The channel is closed when the result may change.
func (u *Volumes) IsReported(name v1.UniqueVolumeName) (reported bool, changed <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reportedVolumes[name], ensureChan(&u.reportedChanged)
}

// ensureChan returns the channel *c. It creates the channel if *c is nil.
func ensureChan(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// closeAndClear closes the channel *c and sets *c to nil. It does nothing if *c is nil.
func closeAndClear(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
