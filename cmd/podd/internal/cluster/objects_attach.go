package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"

	"podd/manifest"
	"podd/manifest/refs"
)

const (
	// attachTimeout is the time after which a pending attachment is reported as a problem. The
	// kubelet has the same timeout.
	attachTimeout = 2*time.Minute + 3*time.Second
	// firstAttachCheck is the delay before the VolumeAttachment is first checked for an error.
	firstAttachCheck = 5 * time.Second
)

// followAttachment sends a result when a volume is attached to this node, and when the reason why
// the volume is not attached has changed. node is the name of this node. followAttachment returns
// when ctx is done.
//
// podd writes volumesInUse of the Node's status, and the attach-detach controller writes
// volumesAttached. followAttachment considers a volume attached when both lists name it and its
// VolumeAttachment confirms the attachment, and until volumesAttached no longer names it.
//
// If the attacher reports that the node has reached a limit of attached volumes, the attacher may still
// succeed, for example after another volume was detached. followAttachment therefore sends
// ExceedsAttachLimit only if the VolumeAttachment still contains this error after attachTimeout, as the
// kubelet does.
func (l *lookup) followAttachment(ctx context.Context, volume v1.UniqueVolumeName, node string, shared *sharedState) {
	startedAt, attacherErr := time.Now(), error(nil)
	b := backoff{initialWait: firstLookupWait}
	for ctx.Err() == nil {
		isReported, reportedChanged := shared.volumesInUse.isReported(volume)
		n, nodesChanged := shared.findNode(node)
		isAttached := n != nil && isListedAsAttached(n, volume)
		var check <-chan time.Time
		switch {
		case l.hasObject && (n == nil || isAttached):
			startedAt, attacherErr = time.Now(), nil // for the next attachment, if the volume is detached
		case !isReported:
			l.reportPending(ctx, startedAt, nil, "volume %s has not been added to the list of VolumesInUse in the node's status", volume)
		case !isAttached:
			l.reportPending(ctx, startedAt, attacherErr, "volume %s is not attached yet according to the node's status", volume)
			wait := withJitter(max(b.nextUpTo(maxCachedWait), firstAttachCheck))
			if rest := attachTimeout - time.Since(startedAt); rest > 0 {
				wait = min(wait, rest)
			}
			check = time.After(wait)
		default:
			metadata, err := l.client.confirmAttachment(ctx, node, volume, l.ref.Name)
			if err == nil {
				l.send(ctx, lookupResult{object: attachment(metadata)})
				b = backoff{initialWait: firstLookupWait}
				continue
			}
			l.reportPending(ctx, startedAt, findAttachError(err, startedAt, volume, shared), "volume %s: %v", volume, withoutHost(err))
			check = time.After(withJitter(b.nextUpTo(maxUncachedWait)))
		}
		select {
		case <-reportedChanged:
		case <-nodesChanged:
		case <-check:
			if isReported && !isAttached {
				_, err := l.client.getAttachment(ctx, volume, l.ref.Name)
				attacherErr = findAttachError(err, startedAt, volume, shared)
			}
		case <-ctx.Done():
		}
	}
}

// reportPending sends the reason why a volume is not attached or a certificate is not issued, unless
// the last result contained the same reason. The reason is failure, the error of the volume's
// attacher or of the certificate request. If failure is nil, the reason is the formatted text.
// podd reports this text as a problem only if the wait, which began at startedAt, has lasted for
// attachTimeout.
func (l *lookup) reportPending(ctx context.Context, startedAt time.Time, failure error, format string, args ...any) {
	missing := manifest.MissingObject{Message: fmt.Sprintf(format, args...), WillExist: time.Since(startedAt) < attachTimeout}
	if failure != nil {
		e, _ := errors.AsType[attachError](failure)
		missing = manifest.MissingObject{Message: failure.Error(), ExceedsAttachLimit: e.isFinal}
	}
	if l.hasObject || missing != l.lastPendingReason {
		l.lastPendingReason = missing
		l.send(ctx, lookupResult{missing: missing})
	}
}

// An attachError is an error that the attacher of a volume has reported.
type attachError struct {
	error
	exceedsLimit bool // the node has reached a limit of attached volumes
	isFinal      bool // exceedsLimit is set, and the wait for the attachment has lasted for attachTimeout
}

// findAttachError returns the attachError in err, which a request has just returned, or nil. startedAt is
// the beginning of the wait for the attachment. If the node has reached a limit of attached volumes,
// findAttachError records the error in shared, so that podd updates the limit of the driver.
func findAttachError(err error, startedAt time.Time, volume v1.UniqueVolumeName, shared *sharedState) error {
	e, ok := errors.AsType[attachError](err)
	if !ok {
		return nil
	}
	if e.exceedsLimit {
		e.isFinal = time.Since(startedAt) >= attachTimeout
		recordLimitError(&shared.limitErrors, refs.VolumeDriver(volume))
	}
	return e
}

// isListedAsAttached reports whether volumesAttached of the Node's status contains a volume.
func isListedAsAttached(n *v1.Node, volume v1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == volume })
}

// confirmAttachment returns the metadata of the VolumeAttachment with the given name, or an error if
// the volume is not attached. A controller that detaches a volume first removes the volume from the
// Node's status. confirmAttachment therefore reads the Node, because the cached Node may be out of
// date.
func (c *client) confirmAttachment(ctx context.Context, node string, volume v1.UniqueVolumeName, name string) (map[string]string, error) {
	n := &v1.Node{}
	if err := c.do(ctx, c.core.Get().Resource("nodes").Name(node), n); err != nil {
		return nil, err
	}
	if !isListedAsAttached(n, volume) {
		return nil, errors.New("not attached yet according to the node's status")
	}
	return c.getAttachment(ctx, volume, name)
}

// getAttachment returns the metadata of the VolumeAttachment with the given name, or an error if the
// volume is not attached. It returns nil for an iSCSI or Fibre Channel volume, which has no
// VolumeAttachment.
func (c *client) getAttachment(ctx context.Context, volume v1.UniqueVolumeName, name string) (map[string]string, error) {
	if !refs.IsCSIVolume(volume) {
		return nil, nil
	}
	a := &storage.VolumeAttachment{}
	if err := c.do(ctx, c.storage.Get().Resource("volumeattachments").Name(name), a); err != nil {
		return nil, err
	}
	switch {
	case a.DeletionTimestamp != nil:
		return nil, errors.New("volume attachment is being deleted")
	case a.Status.Attached:
		return a.Status.AttachmentMetadata, nil
	case a.Status.AttachError != nil:
		e := a.Status.AttachError
		return nil, attachError{
			error:        errors.New("AttachVolume.Attach failed: " + sanitize(e.Message)),
			exceedsLimit: e.ErrorCode != nil && *e.ErrorCode == int32(codes.ResourceExhausted),
		}
	}
	return nil, fmt.Errorf("volume attachment %s is not attached", name)
}
