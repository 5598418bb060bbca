package dynconfig

import (
	"fmt"
	"strings"
	"time"
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
		s.Error = fmt.Sprintf("%s was rejected: %s", r.Version, r.Reason)
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
	if text = b.String(); len(text) > maxReasonBytes {
		text = strings.ToValidUTF8(text[:maxReasonBytes], "") + "…"
	}
	return text
}

// changes returns the notices for a change of the state. trial is the duration of a trial.
func changes(before, after State, trial time.Duration) (notices []Notice) {
	isRejection := after.Rejection != nil && (before.Rejection == nil || *before.Rejection != *after.Rejection)
	if r := after.Rejection; isRejection {
		message := fmt.Sprintf("%s was rejected: %s", r.Version, r.Reason)
		if v := after.inUse(); v.Digest != "" {
			message += "; podd uses " + v.String()
		}
		notices = append(notices, Notice{IsWarning: true, Reason: "KubeletConfigRejected", Message: message})
	}
	hasTrial := after.Trial != nil
	switch {
	case hasTrial && (before.Trial == nil || before.Trial.Version.Digest != after.Trial.Version.Digest):
		notices = append(notices, Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd uses %s, which is on trial for %s", after.Trial.Version, trial)})
	case after.LastKnownGood.Digest != before.LastKnownGood.Digest && after.LastKnownGood.Digest != "":
		notices = append(notices, Notice{Reason: "KubeletConfigAccepted", Message: after.LastKnownGood.String() + " has passed its trial"})
	case before.Trial != nil && !hasTrial && !isRejection && after.LastKnownGood.Digest != "":
		notices = append(notices, Notice{Reason: "KubeletConfigChanged", Message: fmt.Sprintf("podd uses %s again", after.LastKnownGood)})
	}
	return notices
}
