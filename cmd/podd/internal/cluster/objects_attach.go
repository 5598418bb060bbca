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
	// attachTime is how long an attach may take before it is a problem, as in the kubelet.
	attachTime = 2*time.Minute + 3*time.Second
	// attachSoon is the delay of the first check for an attach error.
	attachSoon = 5 * time.Second
)

// attachment waits until a volume is attached to this node: the Node's status names it as
// in use, which podd writes, and as attached, which the attach-detach controller writes,
// and its VolumeAttachment confirms that. It then remains attached until the status no
// longer names it.
func (l *lookup) attachment(ctx context.Context, volume v1.UniqueVolumeName, c *Cluster) {
	began, failure := time.Now(), error(nil)
	b := backoff{first: firstLookupWait}
	for ctx.Err() == nil {
		reported, otherReported := c.inUse.isReported(volume)
		seen, otherNodes := c.nodes.get()
		n := seen.items[types.NamespacedName{Name: c.o.Node}]
		attached := n != nil && namesAttached(n, volume)
		var again <-chan time.Time
		switch {
		case l.hasObject && (n == nil || attached):
			began, failure = time.Now(), nil // in case the volume is detached later
		case !reported:
			l.reportPending(ctx, began, nil, "volume %s has not been added to the list of VolumesInUse in the node's status", volume)
		case !attached:
			l.reportPending(ctx, began, failure, "volume %s is not attached yet, as the node's status has it", volume)
			again = time.After(spread(max(b.upTo(maxCachedWait), attachSoon)))
		default:
			a, err := l.client.attachedNow(ctx, c.o.Node, volume, l.ref.Name)
			if err == nil {
				l.send(ctx, lookupResult{object: attachment(a.Status.AttachmentMetadata)})
				b = backoff{first: firstLookupWait}
				continue
			}
			l.reportPending(ctx, began, attachFailure(err), "volume %s: %v", volume, withoutHost(err))
			again = time.After(spread(b.upTo(maxUncachedWait)))
		}
		select {
		case <-otherReported:
		case <-otherNodes:
		case <-again:
			if reported && !attached {
				_, err := l.client.attachment(ctx, l.ref.Name)
				failure = attachFailure(err)
			}
		case <-ctx.Done():
		}
	}
}

// reportPending reports the reason for the wait. It is a problem after attachTime, or if
// the attacher has failed.
func (l *lookup) reportPending(ctx context.Context, began time.Time, failure error, format string, args ...any) {
	lack := manifest.MissingObject{Why: fmt.Sprintf(format, args...), Soon: time.Since(began) < attachTime}
	if failure != nil {
		lack = manifest.MissingObject{Why: failure.Error()}
	}
	if l.hasObject || lack != l.lack {
		l.lack = lack
		l.send(ctx, lookupResult{lack: lack})
	}
}

// attachError is the error of a volume's attacher.
type attachError struct{ error }

func attachFailure(err error) error {
	if e, ok := errors.AsType[attachError](err); ok {
		return e.error
	}
	return nil
}

func namesAttached(n *v1.Node, volume v1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == volume })
}

// attachedNow returns the attachment of a volume that the status names as in use. It
// reads the Node again, because the cached one may be old: the controller removes a
// volume that is not in use from the attached volumes first.
func (c *client) attachedNow(ctx context.Context, node string, volume v1.UniqueVolumeName, name string) (*storage.VolumeAttachment, error) {
	n := &v1.Node{}
	if err := c.do(ctx, c.core.Get().Resource("nodes").Name(node), n); err != nil {
		return nil, err
	}
	if !namesAttached(n, volume) {
		return nil, errors.New("it is not attached yet, as the node's status has it")
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
	return nil, fmt.Errorf("it is not attached for volume attachment %s", name)
}
