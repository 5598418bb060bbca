package cluster

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// volumesInUse tracks the volumes that the attach-detach controller must not detach: the volumes
// of bound pods and the volumes that are still on this node. podd names them in volumesInUse of
// the Node's status. podd must not mount a volume before the API server has confirmed the status that
// names the volume. Otherwise the controller could detach the volume while it is mounted.
// volumesInUse is safe for concurrent use.
type volumesInUse struct {
	mu      sync.Mutex // guards all following fields
	desired desiredVolumes
	// namedVolumes contains the volumes in the last status that podd has sent or is about to send.
	// reportedVolumes contains the volumes that the API server has confirmed and that are still in
	// namedVolumes.
	namedVolumes, reportedVolumes map[v1.UniqueVolumeName]bool
	// desiredChanged is closed by the next change of the field desired, and reportedChanged by the
	// next change of reportedVolumes. A channel is nil until a method returns it.
	desiredChanged, reportedChanged chan struct{}
}

// desiredVolumes contains the volumes of the pods bound to the node.
type desiredVolumes struct {
	names map[v1.UniqueVolumeName]bool
	// driversWithoutAttachment contains the names of the drivers with volumes that need no attachment.
	// It is nil until the CSIDrivers were listed.
	driversWithoutAttachment map[string]bool
	isComplete               bool // the map in the field names contains all volumes of the pods
}

// equals reports whether all fields of w and o are equal.
func (w desiredVolumes) equals(o desiredVolumes) bool {
	return w.isComplete == o.isComplete && maps.Equal(w.names, o.names) &&
		(w.driversWithoutAttachment == nil) == (o.driversWithoutAttachment == nil) && maps.Equal(w.driversWithoutAttachment, o.driversWithoutAttachment)
}

// setDesired sets the volumes of the bound pods. After it returns, every new status of the Node
// names these volumes.
func (u *volumesInUse) setDesired(w desiredVolumes) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.desired.equals(w) {
		u.desired = w
		closeAndClear(&u.desiredChanged)
	}
}

// names returns the volumes that the Node's status must name, and a channel that is closed when the
// desired volumes change. statusVolumes contains the volumes that the status of the Node names now.
// onNode contains the CSI volumes that are on this node, and disks the iSCSI and Fibre Channel volumes.
//
// names omits a CSI volume on this node if the volume's driver needs no attachment, and omits all CSI
// volumes on this node until the CSIDrivers were listed. Until desired.isComplete is set, the
// result includes all statusVolumes.
func (u *volumesInUse) names(statusVolumes []v1.UniqueVolumeName, onNode []csi.VolumeID, disks []v1.UniqueVolumeName) (names []v1.UniqueVolumeName, desiredChanged <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.desired.names)
	if all == nil {
		all = map[v1.UniqueVolumeName]bool{}
	}
	for _, name := range disks {
		all[name] = true
	}
	if u.desired.driversWithoutAttachment != nil {
		for _, use := range onNode {
			if !u.desired.driversWithoutAttachment[use.Driver] {
				all[refs.UniqueVolumeName(use.Driver, use.Handle)] = true
			}
		}
	}
	if !u.desired.isComplete {
		for _, name := range statusVolumes {
			all[name] = true
		}
	}
	u.namedVolumes = all
	u.updateReported(u.reportedVolumes)
	return slices.Sorted(maps.Keys(all)), ensureChan(&u.desiredChanged)
}

// setReported records the volumes in the last status that the API server has confirmed.
func (u *volumesInUse) setReported(names []v1.UniqueVolumeName) {
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
func (u *volumesInUse) updateReported(confirmed map[v1.UniqueVolumeName]bool) {
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

// isReported reports whether the API server has confirmed a status of the Node that names the
// volume and the next status will also name it. The channel is closed when the result may change.
func (u *volumesInUse) isReported(name v1.UniqueVolumeName) (reported bool, changed <-chan struct{}) {
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
