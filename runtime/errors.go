package runtime

import "errors"

// What callers branch on; everything else is a plain error whose text is fit
// for a user: no gRPC codes, no wrapper chains.
var (
	// ErrNotFound: the sandbox, container or image does not exist. When
	// stopping or removing, cri returns nil instead.
	ErrNotFound = errors.New("not found")
	// ErrNameReserved: an interrupted call still holds the sandbox or
	// container name in the runtime.
	ErrNameReserved = errors.New("name is reserved")
	// ErrTaskLost: the runtime cannot remove something because of a process
	// that it has lost track of.
	ErrTaskLost = errors.New("the runtime lost track of a process")
	// ErrUnavailable: the runtime did not answer; nothing is known of the
	// effect.
	ErrUnavailable = errors.New("runtime unavailable")
	// ErrUnimplemented: the runtime does not serve this call.
	ErrUnimplemented = errors.New("not served by this runtime")
)

// PullError is a failed image pull.
type PullError struct {
	Image string
	// Registry is the host that Image names, "docker.io" where it names none.
	Registry string
	// Reason is a container waiting reason: ErrImagePull, InvalidImageName,
	// RegistryUnavailable or SignatureValidationFailed.
	Reason string
	// Status is the registry's HTTP status where it is known, else 0; 401, 403
	// and 404 do not come right by trying again soon.
	Status int
	// Unreachable says that no registry answered.
	Unreachable bool
	Err         error
}

func (e *PullError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }
