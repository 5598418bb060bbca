package plan

import (
	"time"

	"podd/manifest/refs"
)

// ReasonAttachLimitExceeded is the reason of a pod that failed because the node has reached a limit of
// attached volumes.
const ReasonAttachLimitExceeded = "VolumeAttachmentLimitExceeded"

// attachDeadline returns the time at which an admitted pod of a cluster fails because the node has reached
// a limit of attached volumes; zero means never. As in a kubelet, a pod does not fail while something else
// prevents its start, such as an unready network. A pod with a ready sandbox does not fail either.
//
// The time is counted from the admission of this pod, although the attachment may have failed earlier for
// another pod with the same volume. Otherwise the replacement of a failed pod would fail at once if it is
// bound to this node again.
func (f *facts) attachDeadline() time.Time {
	if f.in.Objects.AttachLimitMessage == "" || f.in.History.StartTime.IsZero() || !f.in.Desired.Traits.FailsIfRejected || !f.lacksObjects() || f.mayHaveUnknownObject() ||
		f.lacksExitCode() || f.mayHaveFinished() || f.isNotAdmitted() || f.isRuntimeNotReady() || f.isNetworkNotReady() {
		return time.Time{}
	}
	return f.in.History.StartTime.Add(refs.AttachTimeout)
}

// isPastAttachDeadline reports whether attachDeadline has passed.
func (f *facts) isPastAttachDeadline() bool {
	at := f.attachDeadline()
	return !at.IsZero() && !f.in.Now.Before(at)
}
