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
	// attachTime is how long a volume may take until it is attached before that is a
	// trouble, as with the kubelet.
	attachTime = 2*time.Minute + 3*time.Second
	// attachSoon is when is first asked whether attaching it has failed.
	attachSoon = 5 * time.Second
)

// attachment finds that a volume is attached to this machine: the Node's status names
// it as in use, which podd writes, and as attached, which the cluster's controller
// does, and its VolumeAttachment says so. What is attached stays so until the status
// says that it is not.
func (l *lookup) attachment(ctx context.Context, volume v1.UniqueVolumeName, c *Cluster) {
	began, failure := time.Now(), error(nil)
	b := backoff{first: soon}
	for ctx.Err() == nil {
		reported, otherReported := c.inUse.reports(volume)
		seen, otherNodes := c.nodes.get()
		n := seen.items[types.NamespacedName{Name: c.o.Node}]
		attached := n != nil && namesAttached(n, volume)
		var again <-chan time.Time
		switch {
		case l.has && (n == nil || attached):
			began, failure = time.Now(), nil // should that end
		case !reported:
			l.attaching(ctx, began, nil, "volume %s has not been added to the list of VolumesInUse in the node's status", volume)
		case !attached:
			l.attaching(ctx, began, failure, "volume %s is not attached yet, as the node's status has it", volume)
			again = time.After(spread(max(b.upTo(mostKnown), attachSoon)))
		default:
			a, err := l.client.attachedNow(ctx, c.o.Node, volume, l.ref.Name)
			if err == nil {
				l.send(ctx, finding{object: attachment(a.Status.AttachmentMetadata)})
				b = backoff{first: soon}
				continue
			}
			l.attaching(ctx, began, failed(err), "volume %s: %v", volume, told(err))
			again = time.After(spread(b.upTo(mostBlind)))
		}
		select {
		case <-otherReported:
		case <-otherNodes:
		case <-again:
			if reported && !attached {
				_, err := l.client.attachment(ctx, l.ref.Name)
				failure = failed(err)
			}
		case <-ctx.Done():
		}
	}
}

// attaching tells what is waited for: a trouble once it takes too long, or when its
// attacher has failed.
func (l *lookup) attaching(ctx context.Context, began time.Time, failure error, format string, args ...any) {
	lack := manifest.Lack{Why: fmt.Sprintf(format, args...), Soon: time.Since(began) < attachTime}
	if failure != nil {
		lack = manifest.Lack{Why: failure.Error()}
	}
	if l.has || lack != l.lack {
		l.lack = lack
		l.send(ctx, finding{lack: lack})
	}
}

// attachError is what the attacher of a volume says.
type attachError struct{ error }

func failed(err error) error {
	if e, ok := errors.AsType[attachError](err); ok {
		return e.error
	}
	return nil
}

func namesAttached(n *v1.Node, volume v1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == volume })
}

// attachedNow is the attachment of a volume that the status names as in use. The
// controller takes one that it does not find there out of those attached first, which a
// watch may tell late: what the Node says is asked for once more.
func (c *client) attachedNow(ctx context.Context, node string, volume v1.UniqueVolumeName, name string) (*storage.VolumeAttachment, error) {
	n := &v1.Node{}
	if err := c.into(ctx, c.core.Get().Resource("nodes").Name(node), n); err != nil {
		return nil, err
	}
	if !namesAttached(n, volume) {
		return nil, errors.New("it is not attached yet, as the node's status has it")
	}
	return c.attachment(ctx, name)
}

// attachment is one by which a volume is attached; else the error tells why it is not.
func (c *client) attachment(ctx context.Context, name string) (*storage.VolumeAttachment, error) {
	a := &storage.VolumeAttachment{}
	if err := c.into(ctx, c.storage.Get().Resource("volumeattachments").Name(name), a); err != nil {
		return nil, err
	}
	switch {
	case a.DeletionTimestamp != nil:
		return nil, errors.New("volume attachment is being deleted")
	case a.Status.Attached:
		return a, nil
	case a.Status.AttachError != nil:
		return nil, attachError{errors.New("AttachVolume.Attach failed: " + said(a.Status.AttachError.Message))}
	}
	return nil, fmt.Errorf("it is not attached for volume attachment %s", name)
}
