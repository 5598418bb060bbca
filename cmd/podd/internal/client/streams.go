package client

import (
	"context"
	"errors"
	"net"
	"net/url"

	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// OpenStreams opens a connection for streams of a pod. path is a path of the kubelet API, such as
// /exec/default/web/app. dial performs the handshake of the protocol.
func (p *Client) OpenStreams(ctx context.Context, dial func(context.Context, net.Conn, *url.URL) (*stream.Conn, error), path string, query url.Values) (*stream.Conn, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, p.connectionError(ctx, err)
	}
	streams, err := dial(ctx, conn, &url.URL{Scheme: "http", Host: "podd", Path: path, RawQuery: query.Encode()})
	if response := (*stream.ResponseError)(nil); errors.As(err, &response) {
		return nil, &server.Error{Status: response.Status, Message: response.Message}
	}
	if err != nil {
		return nil, p.connectionError(ctx, err)
	}
	return streams, nil
}

// RunCommand runs a command in a container, or attaches to a container. It adds the parameters for
// the streams of c to query. It returns when the command has exited. If the exit code is not zero,
// the error is a *stream.ExitError.
func (p *Client) RunCommand(ctx context.Context, path string, query url.Values, c *stream.Command) error {
	for name, isSet := range map[string]bool{"input": c.Stdin != nil, "output": c.Stdout != nil, "error": c.Stderr != nil, "tty": c.TTY} {
		if isSet {
			query.Set(name, "1")
		}
	}
	conn, err := p.OpenStreams(ctx, stream.DialCommand, path, query)
	if err != nil {
		return err
	}
	return c.Run(ctx, conn)
}
