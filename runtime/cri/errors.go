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

// callError is a failed call: what to say, and what it is for errors.Is.
type callError struct {
	text  string
	kinds []error
}

func (e *callError) Error() string   { return e.text }
func (e *callError) Unwrap() []error { return e.kinds }

// clean turns the error of a call made under ctx into one that can be shown and
// told apart. nil stays nil.
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
		text = c.endpoint + ": the runtime did not answer in time"
	case code == codes.ResourceExhausted && strings.Contains(text, "message larger than max"):
		text = "the runtime's answer is larger than 16 MiB"
	}
	return &callError{text: readable(text), kinds: kinds}
}

// ended tells whether a call was cut off by the deadline of its context, which
// is as good as over.
func ended(ctx context.Context, code codes.Code) bool {
	deadline, ok := ctx.Deadline()
	return code == codes.Canceled && ok && time.Until(deadline) < 100*time.Millisecond
}

// classify is an ordered table: first match wins.
func classify(ctx context.Context, code codes.Code, text string) []error {
	switch {
	// The caller gave up: its own doing, whatever the runtime says of it.
	case ctx.Err() != nil:
		return []error{ctx.Err()}
	// The runtime keeps the caller's deadline too, and can be first.
	case ended(ctx, code):
		return []error{context.DeadlineExceeded}
	// containerd: name "x" is reserved for "id"; CRI-O: name is reserved. Both
	// send it with the code Unknown.
	case isReserved(text):
		return []error{runtime.ErrNameReserved}
	// See package runtime/shim.
	case strings.Contains(text, "cannot delete running task"):
		return []error{runtime.ErrTaskLost}
	case code == codes.NotFound:
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

func isReserved(text string) bool {
	return strings.Contains(text, "is reserved for") || strings.Contains(text, "name is reserved")
}

// gone makes a success of "it does not exist", as CRI asks of whatever stops or
// removes.
func gone(err error) error {
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}
