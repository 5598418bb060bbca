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

// Protocols that Dial asks for.
const (
	remoteCommand = "v4.channel.k8s.io"
	portForward   = "portforward.k8s.io"
)

// upgradeTimeout bounds the time until streams can be opened; the runtime is
// asked meanwhile.
const upgradeTimeout = 30 * time.Second

// maxMessage bounds what a server can say of its refusal and of a stream's end.
const maxMessage = 64 << 10

// Refused is a server's answer that is no connection.
type Refused struct {
	Status  int
	Message string
}

func (e *Refused) Error() string { return e.Message }

// errCut is that the connection ended before what went on over it.
var errCut = errors.New("the connection was cut")

// Conn is a connection that streams can be opened on. Safe for concurrent use.
type Conn struct{ spdy httpstream.Connection }

// DialCommand asks for the streams of a command or a container, at a path with
// its query. It takes conn over, whatever it returns.
func DialCommand(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, remoteCommand)
}

// DialForward asks for those of a pod's ports.
func DialForward(ctx context.Context, conn net.Conn, target *url.URL) (*Conn, error) {
	return dial(ctx, conn, target, portForward)
}

func dial(ctx context.Context, conn net.Conn, target *url.URL, protocol string) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upgradeTimeout, fmt.Errorf("no answer for %s", upgradeTimeout))
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
		return nil, fmt.Errorf("beginning SPDY: %w", err)
	}
	return &Conn{streams}, nil
}

// upgrade has the server change the protocol.
func upgrade(conn net.Conn, target *url.URL, protocol string) (net.Conn, error) {
	r := &http.Request{Method: http.MethodPost, URL: target, Host: target.Host, Header: http.Header{}}
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	r.Header.Set(httpstream.HeaderProtocolVersion, protocol)
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		if got := answer.Header.Get(httpstream.HeaderProtocolVersion); got != "" && got != protocol {
			return nil, fmt.Errorf("the server speaks %.40q and not %s", got, protocol)
		}
		return buffered{conn, from}, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxMessage)) // what came is shown
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = "the server answered " + answer.Status
	}
	return nil, &Refused{answer.StatusCode, message}
}

// buffered is a connection of which something was read ahead.
type buffered struct {
	net.Conn
	from *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.from.Read(p) }

// Close ends all streams.
func (c *Conn) Close() error { return c.spdy.Close() }

// Closed is closed, or gets a value, when the other side has ended.
func (c *Conn) Closed() <-chan bool { return c.spdy.CloseChan() }

// open opens a stream of a type, with further headers in pairs.
func (c *Conn) open(kind string, more ...string) (httpstream.Stream, error) {
	h := http.Header{}
	h.Set("streamType", kind)
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	s, err := c.spdy.CreateStream(h)
	if err != nil {
		return nil, fmt.Errorf("opening the stream for %s: %w", kind, err)
	}
	return s, nil
}
