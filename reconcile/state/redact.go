package state

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/redact"
	"podd/manifest/refs"
	"podd/reconcile/result"
)

// Redact returns text without the private values in the versions of the pod and in the Secrets that
// these versions refer to. An error of the runtime may quote such values.
func (s *State) Redact(text string) string {
	var pods []*v1.Pod
	for _, p := range []*manifest.Pod{s.PlanInput.Desired, s.PlanInput.Successor, s.PlanInput.Previous, s.replacedVersion, s.publishedVersion} {
		if p != nil && !slices.Contains(pods, p.Object) {
			pods = append(pods, p.Object)
		}
	}
	text = redact.Text(text, pods...)
	for _, r := range []*refs.Resolved{s.Refs, s.SuccessorRefs, s.PreviousRefs, s.Order.Refs, s.Order.EarlierRefs} {
		if r != nil {
			text = redact.Data(text, slices.Collect(maps.Values(r.Secrets))...)
		}
	}
	return text
}

// redactedError wraps an error and replaces its text by a text without private values. errors.Is
// and errors.As find the wrapped error.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

// Unwrap returns the wrapped error, for errors.Is and errors.As.
func (e redactedError) Unwrap() error { return e.error }

// redactResult returns f without private values in its error and warning, so that statuses, events
// and logs can show them.
func (t *transition) redactResult(f result.Result) result.Result {
	if f.Err != nil {
		f.Err = redactedError{f.Err, t.Redact(f.Err.Error())}
	}
	if f.Warning != "" {
		f.Warning = t.Redact(f.Warning)
	}
	return f
}
