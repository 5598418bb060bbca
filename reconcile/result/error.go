package result

import (
	"errors"
	"time"
)

// A StartError is the error of a failed start of a container.
type StartError struct {
	Reason string // the container's waiting reason, for example CreateContainerError
	Err    error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the reason.
func (e *StartError) Unwrap() error { return e.Err }

// StartReason returns the waiting reason of a container whose start failed with err.
func StartReason(err error) string {
	if e, ok := errors.AsType[*StartError](err); ok {
		return e.Reason
	}
	return "CreateContainerError"
}

// A SandboxStatusError is the error of querying the status of a sandbox that RunPodSandbox has created.
type SandboxStatusError struct{ Err error }

func (e *SandboxStatusError) Error() string { return "querying the new sandbox: " + e.Err.Error() }

// Unwrap returns the error of the query.
func (e *SandboxStatusError) Unwrap() error { return e.Err }

// An AbandonedCallError is the error of an action whose call to the runtime was canceled or did not
// return in time. The runtime may still execute the call.
type AbandonedCallError struct{ Err error }

func (e *AbandonedCallError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the call.
func (e *AbandonedCallError) Unwrap() error { return e.Err }

// A RetryLaterError is the error of an action that must not be tried again before Until.
type RetryLaterError struct {
	Until time.Time
	Err   error
}

func (e *RetryLaterError) Error() string { return e.Err.Error() }

// Unwrap returns the error without Until.
func (e *RetryLaterError) Unwrap() error { return e.Err }
