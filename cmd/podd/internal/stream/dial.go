package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
)

// The protocols of DialCommand and DialForward.
const (
	remoteCommand = "v4.channel.k8s.io"
	portForward   = "portforward.k8s.io"
)

// upgradeTimeout limits the upgrade of the connection, which includes a request to the
// runtime.
const upgradeTimeout = 30 * time.Second

// maxMessage limits error messages of the server.
const maxMessage = 64 << 10

// A ResponseError is a response other than an upgrade.
type ResponseError struct {
	Status  int
	Message string
}

func (e *ResponseError) Error() string { return e.Message }

// errConnectionClosed is the error of a stream after its connection was closed.
var errConnectionClosed = errors.New("the connection was closed")

// Conn is a connection with multiple streams. It is safe for concurrent use.
type Conn struct{ spdy httpstream.Connection }

// DialCommand requests the streams of a command or container. It takes ownership of conn.
func DialCommand(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, remoteCommand)
}

// DialForward requests port forwarding to a pod.
func DialForward(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, portForward)
}

func dial(ctx context.Context, conn net.Conn, target *url.URL, protocol string) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upgradeTimeout, fmt.Errorf("no response within %s", upgradeTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	upgraded, err := upgrade(conn, target, protocol)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	streams, err := spdy.NewClientConnection(upgraded)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("opening an SPDY connection: %w", err)
	}
	return &Conn{streams}, nil
}

// upgrade upgrades the protocol of the connection.
func upgrade(conn net.Conn, target *url.URL, protocol string) (net.Conn, error) {
	r := &http.Request{Method: http.MethodPost, URL: target, Host: target.Host, Header: http.Header{}}
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	r.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if got := resp.Header.Get(httpstream.HeaderProtocolVersion); got != "" && got != protocol {
			return nil, fmt.Errorf("the server selected the protocol %.40q, want %s", got, protocol)
		}
		return buffered{conn, from}, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage)) // a partial message is still shown
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = "the server returned " + resp.Status
	}
	return nil, &ResponseError{resp.StatusCode, message}
}

// buffered is a connection with a read buffer.
type buffered struct {
	net.Conn
	from *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.from.Read(p) }

// Close closes all streams.
func (c *Conn) Close() error { return c.spdy.Close() }

// open opens a stream of a type. extra contains the names and values of additional
// headers.
func (c *Conn) open(kind string, extra ...string) (httpstream.Stream, error) {
	h := http.Header{}
	h.Set("streamType", kind)
	for i := 0; i < len(extra); i += 2 {
		h.Set(extra[i], extra[i+1])
	}
	s, err := c.spdy.CreateStream(h)
	if err != nil {
		return nil, fmt.Errorf("opening the %s stream: %w", kind, err)
	}
	return s, nil
}
