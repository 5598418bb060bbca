package cri

import (
	"context"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// Exec returns a URL at which the runtime runs a command in a running container. The URL is
// for one client, which upgrades the connection to SPDY or WebSocket.
func (c *Client) Exec(ctx context.Context, id string, command []string, s runtime.Streams) (url string, err error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Exec, &api.ExecRequest{
		ContainerId: id, Cmd: command, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY,
	})
	return r.GetUrl(), err
}

// Attach returns a URL for the streams of a running container. See Exec.
func (c *Client) Attach(ctx context.Context, id string, s runtime.Streams) (url string, err error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Attach, &api.AttachRequest{
		ContainerId: id, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Tty: s.TTY,
	})
	return r.GetUrl(), err
}

// PortForward returns a URL for connections to ports of a sandbox. See Exec. ports may be
// empty, because SPDY clients send the ports later.
func (c *Client) PortForward(ctx context.Context, sandboxID string, ports []int32) (url string, err error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.PortForward, &api.PortForwardRequest{PodSandboxId: sandboxID, Port: ports})
	return r.GetUrl(), err
}

// Checkpoint writes the state of a running container to a file, which the runtime creates.
// timeout is rounded up to whole seconds; zero means no timeout.
func (c *Client) Checkpoint(ctx context.Context, id, file string, timeout time.Duration) error {
	_, err := invoke(ctx, c, timeout+c.timeout, c.runtime.CheckpointContainer,
		&api.CheckpointContainerRequest{ContainerId: id, Location: file, Timeout: wholeSeconds(timeout)})
	return err
}
