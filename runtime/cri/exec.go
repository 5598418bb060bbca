package cri

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ExecSync runs a command in a running container and returns at most limit bytes of each
// stream. timeout is rounded up to whole seconds; zero means no timeout. If a command takes
// longer, the runtime kills it, and the error matches context.DeadlineExceeded but not
// runtime.ErrUnavailable.
//
// The runtime sends up to 16 MiB per stream, but gRPC accepts at most 16 MiB in total. If
// the output is larger, ExecSync returns an error with this reason.
func (c *Client) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration, limit int) (runtime.ExecResult, error) {
	timeout = max(timeout, 0)
	bounded, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, timeout+c.timeout)
	}
	defer cancel()
	r, err := c.runtime.ExecSync(bounded,
		&api.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: wholeSeconds(timeout)})
	if err != nil {
		return runtime.ExecResult{}, c.execError(ctx, bounded, err, timeout)
	}
	if timeout > 0 && isTimedOut(r) {
		return runtime.ExecResult{}, timeoutError(timeout)
	}
	result := runtime.ExecResult{ExitCode: r.GetExitCode()}
	var isStdoutTruncated, isStderrTruncated bool
	result.Stdout, isStdoutTruncated = firstBytes(r.GetStdout(), limit)
	result.Stderr, isStderrTruncated = firstBytes(r.GetStderr(), limit)
	result.Truncated = isStdoutTruncated || isStderrTruncated
	return result, nil
}

// execError converts the error of ExecSync. It distinguishes a command that exceeded its
// timeout from a runtime that did not respond before the deadline of the call.
func (c *Client) execError(ctx, callCtx context.Context, err error, timeout time.Duration) error {
	isCommandTimeout := status.Code(err) == codes.DeadlineExceeded && !errors.Is(callCtx.Err(), context.DeadlineExceeded)
	if isCommandTimeout && timeout > 0 {
		return timeoutError(timeout)
	}
	return c.convertError(ctx, err)
}

// timeoutError returns the error for a command that exceeded its timeout.
func timeoutError(timeout time.Duration) error {
	return &callError{text: "the command took longer than " + timeout.String(), kinds: []error{context.DeadlineExceeded}}
}

// isTimedOut reports whether CRI-O killed a command at its timeout. In this case CRI-O
// returns no error, but an exit code that no process can have.
func isTimedOut(r *api.ExecSyncResponse) bool {
	return r.GetExitCode() == -1 && string(r.GetStderr()) == "command timed out"
}

// firstBytes returns a copy of the first limit bytes of a stream, so that the rest can be
// garbage collected. truncated reports whether the stream is longer.
func firstBytes(stream []byte, limit int) (start []byte, truncated bool) {
	if len(stream) <= limit {
		return stream, false
	}
	return slices.Clone(stream[:max(limit, 0)]), true
}
