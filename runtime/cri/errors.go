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

// callError is a failed call: its text, and the errors that it matches.
type callError struct {
	text  string
	kinds []error
}

func (e *callError) Error() string   { return e.text }
func (e *callError) Unwrap() []error { return e.kinds }

// clean converts the error of a call made under ctx into one with a text for users that
// matches the errors of package runtime. It returns nil for nil.
func (c *Client) clean(ctx context.Context, err error) error {
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
		text = c.endpoint + ": " + disconnected(text)
	case code == codes.DeadlineExceeded && strings.HasPrefix(text, "context deadline exceeded"):
		text = c.endpoint + ": no response from the container runtime in time"
	case code == codes.ResourceExhausted && strings.Contains(text, "send message larger than max"):
		text = "the runtime cannot send a response of this size; raise its limit (containerd: max_send_message_size in [grpc], CRI-O: grpc_max_send_msg_size)"
	case code == codes.ResourceExhausted && strings.Contains(text, "message larger than max"):
		text = "the runtime's response is larger than podd accepts"
	}
	return &callError{text: readable(text), kinds: kinds}
}

// ended reports whether a call was canceled because the deadline of its context has passed,
// or is about to.
func ended(ctx context.Context, code codes.Code) bool {
	deadline, ok := ctx.Deadline()
	return code == codes.Canceled && ok && time.Until(deadline) < 100*time.Millisecond
}

// classify is an ordered table: the first match wins.
func classify(ctx context.Context, code codes.Code, text string) []error {
	switch {
	// The caller canceled the call, whatever the runtime reports.
	case ctx.Err() != nil:
		return []error{ctx.Err()}
	// The runtime has the same deadline, and may notice it first.
	case ended(ctx, code):
		return []error{context.DeadlineExceeded}
	case isReserved(text):
		return []error{runtime.ErrNameReserved}
	// See package runtime/shim.
	case strings.Contains(text, "cannot delete running task"):
		return []error{runtime.ErrTaskLost}
	case code == codes.NotFound, isAbsent(text):
		return []error{runtime.ErrNotFound}
	case code == codes.Unimplemented:
		return []error{runtime.ErrUnimplemented}
	case code == codes.Unavailable:
		return []error{runtime.ErrUnavailable}
	case code == codes.DeadlineExceeded:
		return []error{runtime.ErrUnavailable, context.DeadlineExceeded}
	// A runtime that shuts down cancels the calls it serves.
	case code == codes.Canceled:
		return []error{runtime.ErrUnavailable}
	}
	return nil
}

// isReserved reports whether containerd or CRI-O reports that another call holds the name
// of the sandbox or container to create. Both use the code Unknown. Errors of plugins about
// other reserved names do not match.
func isReserved(text string) bool {
	return strings.HasPrefix(text, "failed to reserve sandbox name ") || strings.HasPrefix(text, "failed to reserve container name ") ||
		text == "name is reserved" || strings.HasSuffix(text, ": name is reserved")
}

// isAbsent reports whether CRI-O reports that the object of a call, or the image or sandbox
// of CreateContainer, does not exist. Some of its calls use the code Unknown for this.
func isAbsent(text string) bool {
	return strings.Contains(text, "does not resolve to an image ID") ||
		strings.HasPrefix(text, "specified sandbox not found: ") || strings.HasPrefix(text, "container with ID starting with ")
}

// ignoreNotFound returns nil for runtime.ErrNotFound, as CRI specifies for stopping and
// removing.
func ignoreNotFound(err error) error {
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}
