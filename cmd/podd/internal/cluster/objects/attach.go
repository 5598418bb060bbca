package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/manifest"
	"podd/manifest/refs"
)

// firstAttachCheck is the delay before the VolumeAttachment is first checked for an error.
const firstAttachCheck = 5 * time.Second

// followAttachment sends a result when a volume is attached to this node, and when the reason why
// the volume is not attached has changed. followAttachment returns when ctx is done.
//
// podd writes volumesInUse of the Node's status, and the attach-detach controller writes
// volumesAttached. followAttachment considers a volume attached when both lists name it and its
// VolumeAttachment confirms the attachment, and until volumesAttached no longer names it.
//
// If the attacher reports that the node has reached a limit of attached volumes, the attacher may still
// succeed, for example after another volume was detached. followAttachment therefore sends
// ExceedsAttachLimit only if the VolumeAttachment still contains this error after refs.AttachTimeout, and
// podd has tried to update the limit of the driver. Package plan also waits for this time after the
// admission of each pod, because several pods may use the volume.
func (l *lookup) followAttachment(ctx context.Context, volume v1.UniqueVolumeName, o *Options) {
	wait := newAttachWait()
	for ctx.Err() == nil {
		if l.hasObject {
			wait = newAttachWait() // in case the volume has been detached
		}
		isReported, reportedChanged := o.VolumesInUse.IsReported(volume)
		n, nodesChanged := o.Nodes.Find(types.NamespacedName{Name: o.NodeName})
		isAttached := n != nil && isListedAsAttached(n, volume)
		var check <-chan time.Time
		switch {
		case l.hasObject && (n == nil || isAttached):
		case !isReported:
			l.reportPending(ctx, wait.startedAt, nil, "volume %s has not been added to the list of VolumesInUse in the node's status", volume)
		case !isAttached:
			l.reportPending(ctx, wait.startedAt, wait.err, "volume %s is not attached yet according to the node's status", volume)
			if wait.nextCheck.IsZero() {
				wait.scheduleCheck()
			}
			check = time.After(time.Until(wait.nextCheck))
		default:
			metadata, err := l.confirmAttachment(ctx, o.NodeName, volume)
			if err == nil {
				l.send(ctx, lookupResult{object: attachment(metadata)})
				continue
			}
			wait.handleError(err, volume, o.AttachFailures)
			l.reportPending(ctx, wait.startedAt, wait.err, "volume %s: %v", volume, apiserver.WithoutHost(err))
			check = time.After(backoff.WithJitter(wait.backoff.NextUpTo(apiserver.MaxUncachedWait)))
		}
		select {
		case <-reportedChanged:
		case <-nodesChanged:
		case <-check:
			if isReported && !isAttached {
				_, err := l.getAttachment(ctx, volume)
				wait.handleError(err, volume, o.AttachFailures)
				wait.scheduleCheck()
			}
		case <-ctx.Done():
		}
	}
}

// reportPending sends the reason why a volume is not attached or a certificate is not issued, unless
// the last result contained the same reason. The reason is failure, the error of the volume's
// attacher or of the certificate request. If failure is nil, the reason is the formatted text.
// podd reports this text as a problem only if the wait, which began at startedAt, has lasted for
// refs.AttachTimeout.
func (l *lookup) reportPending(ctx context.Context, startedAt time.Time, failure error, format string, args ...any) {
	missing := manifest.MissingObject{Message: fmt.Sprintf(format, args...), WillExist: time.Since(startedAt) < refs.AttachTimeout}
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
	isFinal      bool // exceedsLimit is set, and pods that have waited for refs.AttachTimeout fail
	recorded     int  // result of LimitRecorder.Record if exceedsLimit is set
}

// An attachWait is the wait of a lookup for the attachment of a volume.
type attachWait struct {
	startedAt time.Time
	err       error // the attachError that handleError has found; nil if there is none
	// nextCheck is the time of the next check of a volume that is not attached according to the Node's
	// status. It is zero until the first check is scheduled.
	nextCheck time.Time
	backoff   backoff.Backoff // for the checks
}

// newAttachWait returns an attachWait that starts now.
func newAttachWait() attachWait {
	return attachWait{startedAt: time.Now(), backoff: backoff.Backoff{InitialWait: firstLookupWait}}
}

// scheduleCheck sets nextCheck. One check is at the end of refs.AttachTimeout.
func (w *attachWait) scheduleCheck() {
	delay := backoff.WithJitter(max(w.backoff.NextUpTo(apiserver.MaxCachedWait), firstAttachCheck))
	if rest := refs.AttachTimeout - time.Since(w.startedAt); rest > 0 {
		delay = min(delay, rest)
	}
	w.nextCheck = time.Now().Add(delay)
}

// handleError sets w.err to the attachError in err, which a request has just returned, or to nil. If the
// node has reached a limit of attached volumes, handleError records this in limits, so that podd updates
// the limit of the driver. Even after refs.AttachTimeout, such an error is final only if podd has tried to
// update the limit after the previous error. Otherwise the pod could fail before the update, and the
// scheduler could bind the replacement of the pod to this node.
func (w *attachWait) handleError(err error, volume v1.UniqueVolumeName, limits LimitRecorder) {
	e, ok := errors.AsType[attachError](err)
	if !ok {
		w.err = nil
		return
	}
	if e.exceedsLimit {
		driver := refs.VolumeDriver(volume)
		previous, _ := errors.AsType[attachError](w.err)
		e.isFinal = previous.exceedsLimit && limits.Handled(driver) >= previous.recorded && time.Since(w.startedAt) >= refs.AttachTimeout
		e.recorded = limits.Record(driver)
	}
	w.err = e
}

// isListedAsAttached reports whether volumesAttached of the Node's status contains a volume.
func isListedAsAttached(n *v1.Node, volume v1.UniqueVolumeName) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a v1.AttachedVolume) bool { return a.Name == volume })
}

// confirmAttachment returns the metadata of the VolumeAttachment that l looks up, or an error if the
// volume is not attached. A controller that detaches a volume first removes the volume from the
// Node's status. confirmAttachment therefore reads the Node, because the cached Node may be out of
// date.
func (l *lookup) confirmAttachment(ctx context.Context, node string, volume v1.UniqueVolumeName) (map[string]string, error) {
	n := &v1.Node{}
	if err := l.client.Do(ctx, l.client.Core.Get().Resource("nodes").Name(node), n); err != nil {
		return nil, err
	}
	if !isListedAsAttached(n, volume) {
		return nil, errors.New("not attached yet according to the node's status")
	}
	return l.getAttachment(ctx, volume)
}

// getAttachment returns the metadata of the VolumeAttachment that l looks up, or an error if the volume
// is not attached. It returns nil for an iSCSI or Fibre Channel volume, which has no
// VolumeAttachment.
func (l *lookup) getAttachment(ctx context.Context, volume v1.UniqueVolumeName) (map[string]string, error) {
	if !refs.IsCSIVolume(volume) {
		return nil, nil
	}
	a := &storage.VolumeAttachment{}
	if err := l.client.Do(ctx, l.client.Storage.Get().Resource("volumeattachments").Name(l.ref.Name), a); err != nil {
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
			error:        errors.New("AttachVolume.Attach failed: " + apiserver.Sanitize(e.Message)),
			exceedsLimit: e.ErrorCode != nil && *e.ErrorCode == int32(codes.ResourceExhausted),
		}
	}
	return nil, fmt.Errorf("volume attachment %s is not attached", l.ref.Name)
}
