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

// ExecSync runs a command in a running container and returns at most limit
// bytes of each stream. timeout is rounded up to whole seconds; zero is none.
// A command that takes longer is killed by the runtime, and the error is
// context.DeadlineExceeded and not runtime.ErrUnavailable.
//
// The runtime sends up to 16 MiB a stream and gRPC takes 16 MiB in all: a
// command that says more than that fails with an error that says so.
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
	result := runtime.ExecResult{ExitCode: r.GetExitCode()}
	var cutOut, cutErr bool
	result.Stdout, cutOut = beginning(r.GetStdout(), limit)
	result.Stderr, cutErr = beginning(r.GetStderr(), limit)
	result.Truncated = cutOut || cutErr
	return result, nil
}

// execError tells a slow command, which the runtime reports, from a runtime
// that does not answer, where the deadline of the call itself passed.
func (c *Client) execError(ctx, bounded context.Context, err error, timeout time.Duration) error {
	slow := status.Code(err) == codes.DeadlineExceeded && !errors.Is(bounded.Err(), context.DeadlineExceeded)
	if slow && timeout > 0 {
		return &callError{text: "the command took longer than " + timeout.String(), kinds: []error{context.DeadlineExceeded}}
	}
	return c.clean(ctx, err)
}

// beginning copies the head of a stream, so that the rest can be collected.
func beginning(stream []byte, limit int) ([]byte, bool) {
	if len(stream) <= limit {
		return stream, false
	}
	return slices.Clone(stream[:max(limit, 0)]), true
}
