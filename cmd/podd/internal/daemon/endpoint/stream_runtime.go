package endpoint

import (
	"context"
	"errors"
	"slices"
	"time"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/server"
	"podd/server/kubelet"
)

// A streamRuntime opens streams into containers with the runtime.
type streamRuntime struct{ client *cri.Client }

var _ kubelet.Runtime = streamRuntime{}

// Exec implements kubelet.Runtime.
func (c streamRuntime) Exec(ctx context.Context, id string, command []string, s kubelet.Streams) (string, error) {
	return c.client.Exec(ctx, id, command, runtime.Streams(s))
}

// Attach implements kubelet.Runtime.
func (c streamRuntime) Attach(ctx context.Context, id string, s kubelet.Streams) (string, error) {
	return c.client.Attach(ctx, id, runtime.Streams(s))
}

// PortForward implements kubelet.Runtime.
func (c streamRuntime) PortForward(ctx context.Context, sandbox string, ports []int32) (string, error) {
	return c.client.PortForward(ctx, sandbox, ports)
}

// maxOutputBytes limits stdout and stderr of a command that runs without a stream, in bytes.
const maxOutputBytes = 16 << 20

// Run implements kubelet.Runtime.
func (c streamRuntime) Run(ctx context.Context, id string, command []string) (output []byte, exitCode int32, err error) {
	r, err := c.client.ExecSync(ctx, id, command, 0, maxOutputBytes)
	return slices.Concat(r.Stdout, r.Stderr), r.ExitCode, err
}

// Checkpoint implements kubelet.Runtime.
func (c streamRuntime) Checkpoint(ctx context.Context, id, file string, timeout time.Duration) error {
	err := c.client.Checkpoint(ctx, id, file, timeout)
	if errors.Is(err, runtime.ErrUnimplemented) {
		return server.NewNotFoundError("the runtime does not support checkpoints")
	}
	return err
}
