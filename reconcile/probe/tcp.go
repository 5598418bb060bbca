package probe

import (
	"context"
	"net"

	v1 "k8s.io/api/core/v1"
)

// probeTCP runs a TCP probe. It passes if a connection can be established.
func (t Target) probeTCP(ctx context.Context, a *v1.TCPSocketAction) (Result, error) {
	host, err := t.host(a.Host)
	if err != nil {
		return Result{}, err
	}
	port, err := t.port(a.Port)
	if err != nil {
		return Result{}, err
	}
	d := newDialer()
	d.Timeout = t.Timeout
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return newFailure(err.Error())
	}
	conn.Close()
	return Result{Passed: true}, nil
}
