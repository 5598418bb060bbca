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

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// The protocols that DialCommand and DialForward request.
const (
	remoteCommandProtocol = "v4.channel.k8s.io"
	portForwardProtocol   = "portforward.k8s.io"
)

// upgradeTimeout is the maximum duration of the upgrade of a connection. During the upgrade, the
// server sends a request to the runtime.
const upgradeTimeout = 30 * time.Second

// maxMessageBytes is the maximum size in bytes of an error message of the server.
const maxMessageBytes = 64 << 10

// A ResponseError is the error of a request if the status of the response is not 101 Switching
// Protocols.
type ResponseError struct {
	Status  int
	Message string
}

// Error returns the message of the server.
func (e *ResponseError) Error() string { return e.Message }

// errConnectionClosed is the error of a stream if its connection has been closed.
var errConnectionClosed = errors.New("the connection was closed")

// A Conn is a connection with multiple streams. It is safe for concurrent use.
type Conn struct{ spdy httpstream.Connection }

// DialCommand requests the streams of a command or container at the URL target. It closes conn if
// it returns an error; otherwise closing the Conn closes conn.
func DialCommand(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, remoteCommandProtocol)
}

// DialForward requests port forwarding to a pod at the URL target. It closes conn if it returns an
// error; otherwise closing the Conn closes conn.
func DialForward(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, portForwardProtocol)
}

// dial upgrades conn to a connection with multiple streams. It closes conn if it returns an error.
func dial(ctx context.Context, conn net.Conn, target *url.URL, protocol string) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upgradeTimeout, fmt.Errorf("no response within %s", upgradeTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	spdyConn, err := upgrade(conn, target, protocol)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	streams, err := spdy.NewClientConnection(spdyConn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("opening an SPDY connection: %w", err)
	}
	return &Conn{streams}, nil
}

// upgrade requests an upgrade of the connection to SPDY and a protocol on top of SPDY. It returns
// the connection for SPDY.
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
			return nil, fmt.Errorf("the server selected the streaming protocol %.40q instead of %s", got, protocol)
		}
		return bufferedConn{conn, from}, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessageBytes)) // the error is ignored, because a partial message is shown, too
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = "the server returned " + resp.Status
	}
	return nil, &ResponseError{resp.StatusCode, message}
}

// A bufferedConn is a connection with data that has already been read into a buffer.
type bufferedConn struct {
	net.Conn
	from *bufio.Reader
}

// Read reads the buffered data first.
func (b bufferedConn) Read(p []byte) (int, error) { return b.from.Read(p) }

// Close closes the connection and all of its streams.
func (c *Conn) Close() error { return c.spdy.Close() }

// openStream opens a stream of a type, such as "stdin". extra contains alternating names and values
// of additional headers.
func (c *Conn) openStream(kind string, extra ...string) (httpstream.Stream, error) {
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
