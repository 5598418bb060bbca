package runtime

import "errors"

// Errors that callers distinguish. All other errors have only a text for users, which contains no
// gRPC codes and no chains of wrappers.
var (
	// ErrNotFound means that the sandbox, container or image does not exist. The stop and
	// remove methods of package cri return nil instead.
	ErrNotFound = errors.New("not found")
	// ErrNameReserved means that the runtime still reserves the name of the sandbox or
	// container for an interrupted call.
	ErrNameReserved = errors.New("name is reserved")
	// ErrTaskLost means that the runtime cannot remove a container or sandbox because it has
	// lost track of the container's process.
	ErrTaskLost = errors.New("the runtime has lost track of the container's process")
	// ErrImageDamaged means that the runtime has lost a part of an image, for example in a power
	// cut, and cannot create containers from it.
	ErrImageDamaged = errors.New("the runtime has lost a part of the image")
	// ErrVolumeImageDamaged means that the runtime has lost a part of the image of an image volume,
	// and cannot create containers with the volume. It does not say which image volume.
	ErrVolumeImageDamaged = errors.New("the runtime has lost a part of the image of an image volume")
	// ErrUnavailable means that the runtime did not respond. The runtime may or may not
	// have executed the call.
	ErrUnavailable = errors.New("runtime unavailable")
	// ErrUnimplemented means that the runtime does not implement the call.
	ErrUnimplemented = errors.New("not implemented by this runtime")
)

// A PullError describes a failed image pull.
type PullError struct {
	Image string
	// Registry is the host in Image, or "docker.io" if Image contains no host.
	Registry string
	// Reason is a container waiting reason: ErrImagePull, InvalidImageName,
	// RegistryUnavailable or SignatureValidationFailed.
	Reason string
	// Status is the HTTP status of the registry's response, or 0 if it is unknown. After
	// 401, 403 or 404 an early retry does not help.
	Status int
	// Unreachable reports whether the pull failed because no registry responded.
	Unreachable bool
	Err         error
}

func (e *PullError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }
