package cri

import (
	"context"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// Exec returns the URL at which the runtime runs a command in a running container for one
// client that upgrades to SPDY or WebSocket.
func (c *Client) Exec(ctx context.Context, id string, command []string, s runtime.Streams) (string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Exec, &api.ExecRequest{
		ContainerId: id, Cmd: command, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY,
	})
	return r.GetUrl(), err
}

// Attach is like Exec, for the streams of the container itself.
func (c *Client) Attach(ctx context.Context, id string, s runtime.Streams) (string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Attach, &api.AttachRequest{
		ContainerId: id, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY,
	})
	return r.GetUrl(), err
}

// PortForward is like Exec, for connections to ports of a sandbox. ports may be empty: SPDY
// clients send them later.
func (c *Client) PortForward(ctx context.Context, sandboxID string, ports []int32) (string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.PortForward, &api.PortForwardRequest{PodSandboxId: sandboxID, Port: ports})
	return r.GetUrl(), err
}

// Checkpoint writes the state of a running container to a file, which the runtime creates.
// timeout is rounded up to whole seconds; zero means none.
func (c *Client) Checkpoint(ctx context.Context, id, file string, timeout time.Duration) error {
	_, err := invoke(ctx, c, timeout+c.timeout, c.runtime.CheckpointContainer,
		&api.CheckpointContainerRequest{ContainerId: id, Location: file, Timeout: wholeSeconds(timeout)})
	return err
}
