package cri

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"podd/runtime"
)

// A callError is the error of a failed call. kinds contains the errors of package runtime that the
// callError matches.
type callError struct {
	text  string
	kinds []error
}

func (e *callError) Error() string   { return e.text }
func (e *callError) Unwrap() []error { return e.kinds }

// convertError converts the error of a call that was made with ctx. The result has a text for users
// and matches the errors of package runtime. If err is nil, convertError returns nil.
func (c *Client) convertError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	code, text := codes.Unknown, err.Error()
	if s, ok := status.FromError(err); ok {
		code, text = s.Code(), s.Message()
	}
	kinds := classify(ctx, code, text)
	switch {
	case code == codes.Unavailable:
		text = c.endpoint + ": " + connectionCause(text)
	case code == codes.DeadlineExceeded && strings.HasPrefix(text, "context deadline exceeded"):
		text = c.endpoint + ": no response from the container runtime in time"
	case code == codes.ResourceExhausted && strings.Contains(text, "send message larger than max"):
		text = "the runtime cannot send a response of this size; raise its limit (containerd: max_send_message_size in [grpc], CRI-O: grpc_max_send_msg_size)"
	case code == codes.ResourceExhausted && strings.Contains(text, "message larger than max"):
		text = "the runtime's response is larger than podd accepts"
	}
	return &callError{text: makeReadable(text), kinds: kinds}
}

// isPastDeadline reports whether a call was canceled because the deadline of ctx has passed
// or is about to pass.
func isPastDeadline(ctx context.Context, code codes.Code) bool {
	deadline, ok := ctx.Deadline()
	return code == codes.Canceled && ok && time.Until(deadline) < 100*time.Millisecond
}

// classify returns the errors of package runtime that a failed call matches. The order of the cases
// matters: the first case that matches determines the result.
//
// In old versions of containerd and CRI-O, some methods without an implementation return the code Unknown
// and the text "not implemented yet".
func classify(ctx context.Context, code codes.Code, text string) []error {
	switch {
	// The caller canceled the call; the code of the runtime does not matter.
	case ctx.Err() != nil:
		return []error{ctx.Err()}
	// gRPC sends the deadline to the runtime, too. So the runtime may report that the deadline has
	// passed before ctx is done.
	case isPastDeadline(ctx, code):
		return []error{context.DeadlineExceeded}
	case isNameReservedText(text):
		return []error{runtime.ErrNameReserved}
	// The runtime has lost track of the container's process; see package runtime/shim.
	case strings.Contains(text, "cannot delete running task"):
		return []error{runtime.ErrTaskLost}
	case isImageDamaged(text):
		return []error{runtime.ErrImageDamaged}
	case isVolumeImageDamaged(text):
		return []error{runtime.ErrVolumeImageDamaged}
	case code == codes.NotFound, isNotFoundText(text):
		return []error{runtime.ErrNotFound}
	// Another program has the socket. The runtime may return, so hooks and probes must wait for it.
	case code == codes.Unavailable && isHTTP1Text(text):
		return []error{runtime.ErrUnavailable, runtime.ErrUnimplemented}
	case code == codes.Unimplemented, code == codes.Unknown && strings.HasPrefix(text, "not implemented"):
		return []error{runtime.ErrUnimplemented}
	case code == codes.Unavailable:
		return []error{runtime.ErrUnavailable}
	case code == codes.DeadlineExceeded:
		return []error{runtime.ErrUnavailable, context.DeadlineExceeded}
	// A runtime cancels its calls in progress when it shuts down.
	case code == codes.Canceled:
		return []error{runtime.ErrUnavailable}
	}
	return nil
}

// isHTTP1Text reports whether text is gRPC's error for a server that does not support HTTP/2. Docker's
// API is such a server.
func isHTTP1Text(text string) bool {
	return strings.Contains(text, "the frame header looked like an HTTP/1.1 header")
}

// isNameReservedText reports whether text is the error of containerd or CRI-O for a sandbox or
// container name that is reserved for another call. Both runtimes use the code Unknown for this
// error. Errors of plugins about other reserved names do not match.
func isNameReservedText(text string) bool {
	return strings.HasPrefix(text, "failed to reserve sandbox name ") || strings.HasPrefix(text, "failed to reserve container name ") ||
		text == "name is reserved" || strings.HasSuffix(text, ": name is reserved")
}

// isNotFoundText reports whether text is an error of CRI-O for an object that does not exist. In
// some calls, CRI-O uses the code Unknown for this error. The object is the subject of the call, or
// the image or sandbox of CreateContainer.
func isNotFoundText(text string) bool {
	return strings.Contains(text, "does not resolve to an image ID") ||
		strings.HasPrefix(text, "specified sandbox not found: ") || strings.HasPrefix(text, "container with ID starting with ")
}

// ignoreNotFound returns nil if err is runtime.ErrNotFound, and err otherwise. CRI requires that a
// stop or remove call succeeds if the object does not exist.
func ignoreNotFound(err error) error {
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}
