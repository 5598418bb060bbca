package cluster

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// volumesInUse tracks the volumes that the attach-detach controller must not detach:
// those that pods use, from before the first call of a driver, and those that are still
// on this node. The Node's status must name a volume before anything is done with it. It
// is safe for concurrent use.
type volumesInUse struct {
	mu      sync.Mutex // guards all following fields
	desired desiredVolumes
	// named contains the volumes in the last status that podd has sent or is about to send, and
	// reported those of them that the API server has confirmed.
	named, reported map[v1.UniqueVolumeName]bool
	// These channels are closed by the next change; they are nil until requested.
	desiredChanged, reportedChanged chan struct{}
}

// desiredVolumes contains the volumes of the pods bound to the node.
type desiredVolumes struct {
	names map[v1.UniqueVolumeName]bool
	// unattached contains the drivers with volumes that need no attachment; nil if unknown.
	unattached map[string]bool
	isComplete bool // all volumes of the pods are known
}

func (w desiredVolumes) equals(o desiredVolumes) bool {
	return w.isComplete == o.isComplete && maps.Equal(w.names, o.names) &&
		(w.unattached == nil) == (o.unattached == nil) && maps.Equal(w.unattached, o.unattached)
}

// setDesired sets the volumes of the pods. After it returns, every new status names them.
func (u *volumesInUse) setDesired(w desiredVolumes) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.desired.equals(w) {
		u.desired = w
		closeChanged(&u.desiredChanged)
	}
}

// names returns the volumes that the Node's status must name, and a channel that is closed
// when the desired volumes change. present contains the volumes in the current status, and
// here those on this node. Until all desired volumes are known, those in present are kept.
func (u *volumesInUse) names(present []v1.UniqueVolumeName, here []csi.VolumeID) ([]v1.UniqueVolumeName, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.desired.names)
	if all == nil {
		all = map[v1.UniqueVolumeName]bool{}
	}
	if u.desired.unattached != nil {
		for _, use := range here {
			if !u.desired.unattached[use.Driver] {
				all[refs.UniqueVolume(use.Driver, use.Handle)] = true
			}
		}
	}
	if !u.desired.isComplete {
		for _, name := range present {
			all[name] = true
		}
	}
	u.named = all
	u.updateReported(u.reported)
	return slices.Sorted(maps.Keys(all)), changedChan(&u.desiredChanged)
}

// setReported sets the volumes in the status that the API server has confirmed.
func (u *volumesInUse) setReported(names []v1.UniqueVolumeName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	confirmed := map[v1.UniqueVolumeName]bool{}
	for _, name := range names {
		confirmed[name] = true
	}
	u.updateReported(confirmed)
}

// updateReported sets reported to the confirmed volumes that are still named. The caller must
// hold mu.
func (u *volumesInUse) updateReported(confirmed map[v1.UniqueVolumeName]bool) {
	next := map[v1.UniqueVolumeName]bool{}
	for name := range confirmed {
		if u.named[name] {
			next[name] = true
		}
	}
	if !maps.Equal(next, u.reported) {
		u.reported = next
		closeChanged(&u.reportedChanged)
	}
}

// isReported reports whether the status names a volume and will continue to, and returns
// a channel that is closed when that may change.
func (u *volumesInUse) isReported(name v1.UniqueVolumeName) (bool, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reported[name], changedChan(&u.reportedChanged)
}

// changedChan returns *c, and creates it if it is nil.
func changedChan(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// closeChanged closes *c, if it is not nil, and sets it to nil.
func closeChanged(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
