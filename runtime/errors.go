package runtime

import "errors"

// Errors that callers distinguish. All other errors are plain and have a text for users: no
// gRPC codes, no wrapper chains.
var (
	// ErrNotFound means that the sandbox, container or image does not exist. When stopping
	// or removing it, package cri returns nil instead.
	ErrNotFound = errors.New("not found")
	// ErrNameReserved means that an interrupted call still holds the sandbox or container
	// name in the runtime.
	ErrNameReserved = errors.New("name is reserved")
	// ErrTaskLost means that the runtime cannot remove a container or sandbox because it
	// has lost track of its process.
	ErrTaskLost = errors.New("the runtime lost track of a process")
	// ErrUnavailable means that the runtime did not respond; the effect of the call is
	// unknown.
	ErrUnavailable = errors.New("runtime unavailable")
	// ErrUnimplemented means that the runtime does not implement the call.
	ErrUnimplemented = errors.New("not implemented by this runtime")
)

// A PullError is a failed image pull.
type PullError struct {
	Image string
	// Registry is the host in Image, "docker.io" if there is none.
	Registry string
	// Reason is a container waiting reason: ErrImagePull, InvalidImageName,
	// RegistryUnavailable or SignatureValidationFailed.
	Reason string
	// Status is the registry's HTTP status, or 0 if it is unknown. A retry soon after 401,
	// 403 or 404 does not help.
	Status int
	// Unreachable reports that no registry responded.
	Unreachable bool
	Err         error
}

func (e *PullError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }
