package nodesync

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
	"podd/runtime/atomicfile"
)

// A Syncer creates the Node in the API server and updates its status when this node changes.
type Syncer struct {
	o *Options
	// uid is the UID of the Node, for owner references. It is nil if the Node does not exist.
	uid atomic.Pointer[types.UID]

	lastListCount  int           // Snapshot.ListCount of the last snapshot; 0 before the first snapshot
	cachedNode     *v1.Node      // the Node in the last snapshot; may be nil
	currentNode    *v1.Node      // the Node in the last snapshot or response; nil if there is none
	isSynced       bool          // this connection has synced the Node
	dropsFeatures  bool          // the API server is older than 1.35 and did not store the declared features in the last status
	sentAt         time.Time     // time of the last status that podd sent
	resendInterval time.Duration // an unchanged status is sent again when this time has passed since sentAt
}

// New returns a Syncer for one connection.
func New(o Options) *Syncer { return &Syncer{o: &o} }

// UID returns the UID of the Node, for owner references, or nil if the Node does not exist. It may be
// called concurrently.
func (s *Syncer) UID() *types.UID { return s.uid.Load() }

// IsSynced reports whether the Syncer has synced the Node. It must not be called before Run has
// returned.
func (s *Syncer) IsSynced() bool { return s.isSynced }

// Run syncs the Node until ctx is done. It sends changes on this node at once. Changes by other
// clients are corrected with the next periodic status.
func (s *Syncer) Run(ctx context.Context, nodes *apiserver.Store[*v1.Node]) {
	var b backoff.Backoff
	var retry <-chan time.Time // receives a value when a failed attempt must be repeated; nil if the last attempt did not fail
	var lastSent *v1.Node      // the Node in the View that was last sent to the API server
	mustSync := false
	tick := time.NewTicker(s.o.UpdateFrequency)
	defer tick.Stop()
	for {
		view := s.o.State.View()
		snap, nodesChanged := nodes.Get()
		volumes, desiredChanged, onNodeChanged := s.volumes()
		if snap.ListCount > s.lastListCount {
			retry = nil // the API server is reachable, so the wait is over
		}
		mustSync = s.update(snap) || mustSync || view.NodeObject != lastSent || s.currentNode != nil && !slices.Equal(volumes, s.currentNode.Status.VolumesInUse)
		if mustSync && retry == nil && s.lastListCount > 0 && view.NodeObject != nil {
			lastSent, mustSync = view.NodeObject, false
			err := s.sync(ctx, lastSent, volumes, time.Now())
			if err == nil && s.currentNode != nil {
				s.o.VolumesInUse.SetReported(s.currentNode.Status.VolumesInUse)
			}
			s.o.Report(ctx, err)
			if err == nil || isPermanent(err) {
				b = backoff.Backoff{}
			} else {
				mustSync, retry = true, time.After(b.Next())
			}
			continue // read the state again, because it may have changed during the request
		}
		select {
		case <-nodesChanged:
		case <-s.o.State.Changed(view.Revision):
		case <-desiredChanged:
		case <-onNodeChanged:
		case <-tick.C:
			mustSync = true
		case <-retry:
			retry = nil
		case <-ctx.Done():
			return
		}
	}
}

// volumes returns the volumes that the Node's status must name, and two channels. desiredChanged
// is closed when the volumes of bound pods change, and onNodeChanged when the CSI volumes on this node
// change. No channel reports the detachment of a disk, because the View of its pod then changes.
func (s *Syncer) volumes() (names []v1.UniqueVolumeName, desiredChanged, onNodeChanged <-chan struct{}) {
	var onNode []csi.VolumeID
	if s.o.CSI != nil {
		onNode, onNodeChanged = s.o.CSI.VolumesInUse()
	}
	var stored []v1.UniqueVolumeName
	if s.currentNode != nil {
		stored = s.currentNode.Status.VolumesInUse
	}
	names, desiredChanged = s.o.VolumesInUse.Names(stored, onNode, s.disksInUse(stored))
	return names, desiredChanged, onNodeChanged
}

// disksInUse returns the iSCSI and Fibre Channel volumes on this node. If some of them cannot be read, it
// also returns those in stored, the volumesInUse of the current status, because the controller must not
// detach a volume that is still mounted.
func (s *Syncer) disksInUse(stored []v1.UniqueVolumeName) []v1.UniqueVolumeName {
	if s.o.DisksInUse == nil {
		return nil
	}
	disks, err := s.o.DisksInUse()
	if err == nil {
		return disks
	}
	return append(disks, slices.DeleteFunc(slices.Clone(stored), func(name v1.UniqueVolumeName) bool {
		return refs.IsCSIVolume(name)
	})...)
}

// isPermanent reports whether a retry after err cannot succeed.
func isPermanent(err error) bool {
	switch err.(type) {
	case DeletedError, MissingError:
		return true
	}
	return false
}

// update applies a snapshot and reports whether the Node must be synced at once. It ignores a
// snapshot that it has already applied, because responses to podd's own updates may be newer.
func (s *Syncer) update(snap apiserver.Snapshot[*v1.Node]) bool {
	n := snap.Items[types.NamespacedName{Name: s.o.NodeName}]
	if n == s.cachedNode && snap.ListCount == s.lastListCount {
		return false
	}
	isRelisted := snap.ListCount > s.lastListCount
	s.cachedNode, s.lastListCount = n, snap.ListCount
	isReplaced := (n == nil) != (s.currentNode == nil) || n != nil && n.UID != s.currentNode.UID
	s.setCurrent(n)
	return isRelisted || isReplaced
}

// setCurrent sets currentNode and uid.
func (s *Syncer) setCurrent(n *v1.Node) {
	s.currentNode = n
	var uid *types.UID
	if n != nil {
		uid = &n.UID
	}
	s.uid.Store(uid)
}

// sync creates the Node or patches its status, unless the status is up to date. It does not
// retry.
func (s *Syncer) sync(ctx context.Context, local *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	if s.currentNode == nil {
		return s.create(ctx, local, volumes, now)
	}
	next := s.currentNode
	if !s.isSynced {
		next = s.o.adoptedNode(next, local)
		if s.o.ResetsExtended {
			zeroExtendedResources(next.Status.Capacity)
			zeroExtendedResources(next.Status.Allocatable)
		}
	}
	next = s.o.updatedNode(next, local, now)
	next.Status.VolumesInUse = volumes
	changed := s.isChanged(next)
	if !changed && !s.sentAt.IsZero() && now.Sub(s.sentAt) < s.resendInterval {
		return nil
	}
	text, err := nodeStatusPatch(s.currentNode, next)
	if err != nil {
		return err
	}
	var response v1.Node
	request := s.o.Client.Heartbeats.Patch(types.StrategicMergePatchType).Resource("nodes").Name(s.o.NodeName).SubResource("status").Body(text)
	err = s.o.Client.Do(ctx, request, &response)
	if apierrors.IsNotFound(err) {
		return nil // the Node was deleted; the next snapshot will show the deletion
	}
	if err != nil {
		return err
	}
	s.dropsFeatures = len(next.Status.DeclaredFeatures) > 0 && len(response.Status.DeclaredFeatures) == 0
	s.recordSync(&response, now, changed)
	return nil
}

// isChanged reports whether podd must send the Node in the parameter next at once, because it
// differs from the current Node. It ignores declared features that the API server does not store.
// podd still sends these features in every status, so that an API server that is upgraded later
// stores them.
func (s *Syncer) isChanged(next *v1.Node) bool {
	if s.dropsFeatures {
		n := *next
		n.Status.DeclaredFeatures = s.currentNode.Status.DeclaredFeatures
		next = &n
	}
	return isNodeChanged(s.currentNode, next)
}

// create creates the Node. If this connection has already synced the Node, the Node was deleted,
// and create returns DeletedError. If podd must not create Nodes, create returns
// MissingError.
func (s *Syncer) create(ctx context.Context, local *v1.Node, volumes []v1.UniqueVolumeName, now time.Time) error {
	switch {
	case s.isSynced:
		return DeletedError{s.o.NodeName}
	case !s.o.RegisterNode:
		return MissingError{s.o.NodeName}
	}
	s.o.endRegistrationStep(Attempted, now)
	var n v1.Node
	node := s.o.newNode(local, now)
	node.Status.VolumesInUse = volumes
	err := s.o.Client.Do(ctx, s.o.Client.Core.Post().Resource("nodes").Body(node), &n)
	if apierrors.IsAlreadyExists(err) {
		return nil // another client has created the Node; the next snapshot will contain the Node
	}
	if err != nil {
		return err
	}
	s.o.endRegistrationStep(Registered, time.Now())
	s.recordSync(&n, now, true)
	return nil
}

// recordSync records a successful sync with the response n. After a change it randomizes the next
// interval, so that nodes that changed at the same time do not report at the same time.
func (s *Syncer) recordSync(n *v1.Node, now time.Time, changed bool) {
	s.resendInterval = s.o.ReportFrequency
	if changed || s.sentAt.IsZero() {
		s.resendInterval = time.Duration(float64(s.resendInterval) * (0.5 + rand.Float64()))
	}
	if !s.isSynced {
		s.o.Log.Info("node joined the cluster", "node", s.o.NodeName, "apiServer", s.o.Client.Host)
		if err := atomicfile.Write(s.o.NodeSyncedFile, nil); err != nil {
			s.o.Log.Warn("recording the first sync of the Node failed; after a restart, podd may set extended resources of the Node to 0 again", "err", err)
		}
	}
	if isNodeReady(n) {
		s.o.endRegistrationStep(Ready, time.Now())
	}
	s.isSynced, s.sentAt = true, now
	s.setCurrent(n)
}

// isNodeReady reports whether the condition Ready of a Node is true.
func isNodeReady(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
}
