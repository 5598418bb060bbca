package main

import (
	"context"
	"errors"
	"net"
	"net/url"

	"podd/cmd/podd/internal/stream"
	"podd/server"
)

// open asks podd for streams into a pod, at a path of the kubelet's API.
func (p *peer) open(ctx context.Context, dial func(context.Context, net.Conn, *url.URL) (*stream.Conn, error), path string, q url.Values) (*stream.Conn, error) {
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	streams, err := dial(ctx, conn, &url.URL{Scheme: "http", Host: "podd", Path: path, RawQuery: q.Encode()})
	if refused := (*stream.Refused)(nil); errors.As(err, &refused) {
		return nil, &server.Error{Status: refused.Status, Message: refused.Message}
	}
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	return streams, nil
}

// runCommand takes part in a command or container until it has ended; the code
// of one that fails becomes podd's own.
func (p *peer) runCommand(ctx context.Context, path string, q url.Values, c *stream.Command) error {
	for name, has := range map[string]bool{"input": c.Stdin != nil, "output": c.Stdout != nil, "error": c.Stderr != nil, "tty": c.TTY} {
		if has {
			q.Set(name, "1")
		}
	}
	conn, err := p.open(ctx, stream.DialCommand, path, q)
	if err != nil {
		return err
	}
	return c.Run(ctx, conn)
}

// withCode makes of a command's code podd's own. Quiet says nothing of it.
func withCode(err error, quiet bool) error {
	exit := (*stream.ExitError)(nil)
	switch {
	case !errors.As(err, &exit):
		return err
	case quiet:
		return exitWith(exit.Code, nil)
	}
	return exitWith(exit.Code, err)
}
