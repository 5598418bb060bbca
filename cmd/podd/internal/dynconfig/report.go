package dynconfig

import (
	"fmt"
	"strings"
	"time"

	"podd/manifest/wording"
)

// status returns the Status that corresponds to the state.
func (m *manager) status() Status {
	s := Status{Assigned: m.assigned, Active: m.state.inUse(), LastKnownGood: m.state.LastKnownGood, IsOnTrial: m.state.Trial != nil}
	assigned := m.link.assigned()
	isUsed := m.assigned.Digest == s.Active.Digest
	switch r := m.state.Rejection; {
	case m.readErr != "":
		s.Error = m.readErr
	case assigned.err != "":
		s.Error = assigned.err
	case m.storeErr != "" && !isUsed:
		s.Error = m.storeErr
	case r != nil:
		s.Error = r.describe()
	case m.state.Retry != nil:
		s.Error = m.state.Retry.describe()
	}
	if isUsed {
		s.Warning = m.storeErr
	}
	return s
}

// maxReasonBytes limits the length of a reason, because events and conditions are limited.
const maxReasonBytes = 800

// oneLine returns a text in one line of limited length.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case b.Len() > maxReasonBytes:
			continue
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		case b.Len() > 0:
			b.WriteString("; ")
		}
		b.WriteString(strings.TrimSpace(line))
	}
	return wording.Clip(b.String(), maxReasonBytes)
}

// changes returns the notices for a change of the state. trial is the duration of a trial.
func changes(before, after State, trial time.Duration) (notices []Notice) {
	isRejection := after.Rejection != nil && (before.Rejection == nil || *before.Rejection != *after.Rejection)
	if r := after.Rejection; isRejection {
		notices = append(notices, r.notice(after))
	}
	hasTrial := after.Trial != nil
	switch {
	case after.Retry != nil && before.Retry == nil:
		notices = append(notices, after.Retry.notice())
	case hasTrial && (before.Trial == nil || before.Trial.Version.Digest != after.Trial.Version.Digest):
		notices = append(notices, after.Trial.notice(trial))
	case after.LastKnownGood.Digest != before.LastKnownGood.Digest && after.LastKnownGood.Digest != "":
		notices = append(notices, Notice{Reason: "KubeletConfigAccepted", Message: after.LastKnownGood.String() + " has passed its trial"})
	case before.Trial != nil && !hasTrial && !isRejection && after.LastKnownGood.Digest != "":
		notices = append(notices, Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd uses %s again", after.LastKnownGood)})
	case (before.Rejection != nil || before.Retry != nil) && after.Rejection == nil && after.Retry == nil:
		notices = append(notices, Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("%s, which podd uses, is assigned again", after.inUse())})
	}
	return notices
}

// isStateChange reports whether changes returns such a notice. The notices about the state at the start of
// a process replace it.
func (n Notice) isStateChange() bool {
	return n.Reason == "KubeletConfigChanged" || n.Reason == "KubeletConfigRejected" || n.Reason == "KubeletConfigPostponed"
}

// startNotices returns the notices about the state at the start of a process, which reports what an
// earlier process has found.
func startNotices(s State, trial time.Duration) (notices []Notice) {
	if s.Rejection != nil {
		notices = append(notices, s.Rejection.notice(s))
	}
	if s.Retry != nil {
		notices = append(notices, s.Retry.notice())
	}
	if s.Trial != nil {
		notices = append(notices, s.Trial.notice(trial))
	}
	return notices
}

// describe returns a clause that describes the rejection.
func (r *Rejection) describe() string {
	return fmt.Sprintf("%s was rejected: %s", r.Version.Source(), r.Reason)
}

// notice returns the notice about the rejection. s is the state after it.
func (r *Rejection) notice(s State) Notice {
	message := r.describe()
	switch {
	case s.Trial != nil:
		message += "; podd uses the configuration on trial"
	case s.LastKnownGood.Digest != "":
		message += "; podd uses the last known good configuration"
	}
	return Notice{IsWarning: true, Reason: "KubeletConfigRejected", Message: message}
}

// describe returns a clause that describes why the configuration is not in use.
func (r *Retry) describe() string {
	return fmt.Sprintf("the trial of %s ended, because %s; podd tries the configuration again after the outage", r.Trial.Version.Source(), r.Reason)
}

// notice returns the notice about the end of the trial.
func (r *Retry) notice() Notice {
	return Notice{IsWarning: true, Reason: "KubeletConfigPostponed", Message: r.describe() + "; podd uses the last known good configuration"}
}

// notice returns the notice about the trial. duration is its duration.
func (t *Trial) notice(duration time.Duration) Notice {
	return Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd uses %s, which is on trial for %s", t.Version, duration)}
}
