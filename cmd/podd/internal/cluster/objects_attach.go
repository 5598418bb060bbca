package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

const (
	// attachTimeout is how long an attach may take before it is a problem, as in the kubelet.
	attachTimeout = 2*time.Minute + 3*time.Second
	// firstAttachCheck is the delay of the first check for an attach error.
	firstAttachCheck = 5 * time.Second
)

// attachment reports whether a volume is attached to this node, until ctx is done. A volume is
// attached if the Node's status names it as in use, which podd writes, and as attached, which
// the attach-detach controller writes, and its VolumeAttachment confirms that. It then remains
// attached until the status no longer names it.
func (l *lookup) attachment(ctx context.Context, volume v1.UniqueVolumeName, c *Cluster) {
	began, failure := time.Now(), error(nil)
	b := backoff{first: firstLookupWait}
	for ctx.Err() == nil {
		reported, reportedChanged := c.inUse.isReported(volume)
		nodes, nodesChanged := c.nodes.get()
		n := nodes.items[types.NamespacedName{Name: c.o.Node}]
		attached := n != nil && hasAttached(n, volume)
		var check <-chan time.Time
		switch {
		case l.hasObject && (n == nil || attached):
			began, failure = time.Now(), nil // in case the volume is detached later
		case !reported:
			l.reportPending(ctx, began, nil, "volume %s has not been added to the list of VolumesInUse in the node's status", volume)
		case !attached:
			l.reportPending(ctx, began, failure, "volume %s is not attached yet according to the node's status", volume)
			check = time.After(spread(max(b.upTo(maxCachedWait), firstAttachCheck)))
		default:
			a, err := l.client.attachedNow(ctx, c.o.Node, volume, l.ref.Name)
			if err == nil {
				l.send(ctx, lookupResult{object: attachment(a.Status.AttachmentMetadata)})
				b = backoff{first: firstLookupWait}
				continue
			}
			l.reportPending(ctx, began, attachFailure(err), "volume %s: %v", volume, withoutHost(err))
			check = time.After(spread(b.upTo(maxUncachedWait)))
		}
		select {
		case <-reportedChanged:
		case <-nodesChanged:
		case <-check:
			if reported && !attached {
				_, err := l.client.attachment(ctx, l.ref.Name)
				failure = attachFailure(err)
			}
		case <-ctx.Done():
		}
	}
}

// reportPending sends the reason for which a volume is not attached: failure, the error of its
// attacher, if it is not nil. The reason is a problem if there is a failure, or attachTimeout
// after began.
func (l *lookup) reportPending(ctx context.Context, began time.Time, failure error, format string, args ...any) {
	lack := manifest.MissingObject{Why: fmt.Sprintf(format, args...), Soon: time.Since(began) < attachTimeout}
	if failure != nil {
		lack = manifest.MissingObject{Why: failure.Error()}
	}
	if l.hasObject || lack != l.lack {
		l.lack = lack
		l.send(ctx, lookupResult{lack: lack})
	}
}

// An attachError is an error that the attacher of a volume has reported.
type attachError struct{ error }

// attachFailure returns the error of the attacher in err, or nil.
func attachFailure(err error) error {
	if e, ok := errors.AsType[attachError](err); ok {
		return e.error
	}
	return nil
}

// hasAttached reports whether the status of the Node names a volume as attached.
func hasAttached(n *v1.Node, volume v1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == volume })
}

// attachedNow returns the VolumeAttachment of a volume that the status names as in use, or an
// error if the volume is not attached. It reads the Node again, because the cached one may be
// out of date: a controller that detaches a volume first removes it from the status.
func (c *client) attachedNow(ctx context.Context, node string, volume v1.UniqueVolumeName, name string) (*storage.VolumeAttachment, error) {
	n := &v1.Node{}
	if err := c.do(ctx, c.core.Get().Resource("nodes").Name(node), n); err != nil {
		return nil, err
	}
	if !hasAttached(n, volume) {
		return nil, errors.New("not attached yet according to the node's status")
	}
	return c.attachment(ctx, name)
}

// attachment returns the VolumeAttachment if the volume is attached, or an error.
func (c *client) attachment(ctx context.Context, name string) (*storage.VolumeAttachment, error) {
	a := &storage.VolumeAttachment{}
	if err := c.do(ctx, c.storage.Get().Resource("volumeattachments").Name(name), a); err != nil {
		return nil, err
	}
	switch {
	case a.DeletionTimestamp != nil:
		return nil, errors.New("volume attachment is being deleted")
	case a.Status.Attached:
		return a, nil
	case a.Status.AttachError != nil:
		return nil, attachError{errors.New("AttachVolume.Attach failed: " + sanitize(a.Status.AttachError.Message))}
	}
	return nil, fmt.Errorf("volume attachment %s is not attached", name)
}
