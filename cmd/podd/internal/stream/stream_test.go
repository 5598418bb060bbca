package stream

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// serveStreams starts a server of streams and returns a connection to it. The server calls handle when a
// client has opened n streams. With port forwarding, n must be 2, and the server calls handle for each
// pair of streams.
func serveStreams(t *testing.T, n int, handle func(map[string]httpstream.Stream)) (net.Conn, *url.URL) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/refuse") {
			http.Error(w, "container main is not running", http.StatusNotFound)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{remoteCommandProtocol, portForwardProtocol}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 20)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			go func() { <-replied; streams <- s }()
			return nil
		})
		if conn == nil {
			return
		}
		defer conn.Close()
		for {
			all := map[string]httpstream.Stream{}
			for len(all) < n {
				select {
				case s := <-streams:
					all[s.Headers().Get(v1.StreamType)] = s
				case <-conn.CloseChan():
					return
				}
			}
			handle(all)
			if all[v1.StreamTypeData] == nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, target
}

const (
	success   = `{"status":"Success"}`
	exitCode3 = `{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
	exitCode0 = `{"status":"Failure","reason":"NonZeroExitCode","message":"invalid code","details":{"causes":[{"reason":"ExitCode","message":"0"}]}}`
	failure   = `{"status":"Failure","message":"no such file"}`
)

// TestCommand checks that a command receives its input, and that Run returns the output and the error
// for each status that the server sends at the end.
func TestCommand(t *testing.T) {
	for _, c := range []struct{ status, want string }{
		{success, ""}, {exitCode3, "command terminated with exit code 3"}, {exitCode0, "invalid code"}, {failure, "no such file"},
		{"plain text", "plain text"}, {"", errConnectionClosed.Error()}, {`{}`, "the command failed, and the runtime reported no reason: the connection was closed"},
	} {
		conn, target := serveStreams(t, 4, func(s map[string]httpstream.Stream) {
			input, _ := io.ReadAll(s[v1.StreamTypeStdin]) // until the client closes it
			fmt.Fprintf(s[v1.StreamTypeStdout], "got %s", input)
			io.WriteString(s[v1.StreamTypeStderr], "warning")
			io.WriteString(s[v1.StreamTypeError], c.status)
		})
		streams, err := DialCommand(t.Context(), conn, target)
		if err != nil {
			t.Fatal(err)
		}
		var out, stderr bytes.Buffer
		err = (&Command{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &stderr}).Run(t.Context(), streams)
		if got := errorText(err); got != c.want || out.String() != "got hello" || stderr.String() != "warning" {
			t.Errorf("status %q: got error %q, stdout %q, stderr %q; want error %q, stdout \"got hello\", stderr \"warning\"", c.status, got, out.String(), stderr.String(), c.want)
		}
	}
}

// TestCommand_ImmediateFailure checks that the error of a command is returned even if the
// server closes the connection before the client has closed its side of the error stream.
func TestCommand_ImmediateFailure(t *testing.T) {
	conn, target := serveStreams(t, 3, func(s map[string]httpstream.Stream) {
		io.WriteString(s[v1.StreamTypeError], failure)
	})
	streams, err := DialCommand(t.Context(), &openOnlyConn{Conn: conn}, target)
	if err != nil {
		t.Fatal(err)
	}
	err = (&Command{Stdout: io.Discard, Stderr: io.Discard}).Run(t.Context(), streams)
	if got := errorText(err); got != "no such file" {
		t.Errorf("got error %q, want \"no such file\"", got)
	}
}

// An openOnlyConn is a connection on which streams can be opened, but writes to a stream
// fail.
type openOnlyConn struct {
	net.Conn
	isUpgraded bool
	frames     []byte // SPDY frames, of which the last may be incomplete
}

func (o *openOnlyConn) Write(p []byte) (int, error) {
	if !o.isUpgraded {
		o.isUpgraded = true
		return o.Conn.Write(p)
	}
	o.frames = append(o.frames, p...)
	for len(o.frames) >= 8 {
		const control = 0x80
		size := 8 + int(binary.BigEndian.Uint32(o.frames[4:])&0xffffff)
		if o.frames[0]&control == 0 {
			return 0, syscall.EPIPE
		}
		if len(o.frames) < size {
			break
		}
		o.frames = o.frames[size:]
	}
	return o.Conn.Write(p)
}

// errorText returns the text of an error, or "".
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCommand_Sizes checks that the sizes of a terminal are sent in the order in which the caller reports
// them.
func TestCommand_Sizes(t *testing.T) {
	conn, target := serveStreams(t, 3, func(s map[string]httpstream.Stream) {
		var got [len(`{"Width":80,"Height":24}` + "\n" + `{"Width":100,"Height":30}` + "\n")]byte
		io.ReadFull(s[v1.StreamTypeResize], got[:])
		s[v1.StreamTypeStdout].Write(got[:])
		io.WriteString(s[v1.StreamTypeError], success)
	})
	streams, err := DialCommand(t.Context(), conn, target)
	if err != nil {
		t.Fatal(err)
	}
	sizes := make(chan Size, 2)
	sizes <- Size{80, 24}
	sizes <- Size{100, 30}
	var out bytes.Buffer
	if err := (&Command{Stdout: &out, TTY: true, Sizes: sizes}).Run(t.Context(), streams); err != nil || !strings.Contains(out.String(), `{"Width":100,"Height":30}`) {
		t.Errorf("got error %v, received sizes %q; want no error and both sizes", err, out.String())
	}
}

// TestCommand_Ends checks the error of Run if the context is canceled, if the output cannot be
// written, and if the server closes the connection.
func TestCommand_Ends(t *testing.T) {
	hang := func(s map[string]httpstream.Stream) {
		io.WriteString(s[v1.StreamTypeStdout], "begun")
		io.ReadAll(s[v1.StreamTypeError])
		io.ReadAll(s[v1.StreamTypeStdin])
	}
	blocked, _ := io.Pipe()
	for name, c := range map[string]struct {
		out  func(cancel func(), conn net.Conn) error
		want error
	}{
		"context canceled":  {func(cancel func(), _ net.Conn) error { cancel(); return nil }, context.Canceled},
		"write error":       {func(func(), net.Conn) error { return io.ErrShortWrite }, io.ErrShortWrite},
		"connection closed": {func(_ func(), conn net.Conn) error { conn.Close(); return nil }, errConnectionClosed},
	} {
		conn, target := serveStreams(t, 3, hang)
		ctx, cancel := context.WithCancel(t.Context())
		streams, err := DialCommand(ctx, conn, target)
		if err != nil {
			t.Fatal(err)
		}
		out := writerFunc(func(b []byte) (int, error) { return len(b), c.out(cancel, conn) })
		if err := (&Command{Stdin: blocked, Stdout: out}).Run(ctx, streams); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
		cancel()
	}
}

// A writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestDialCommand_Refused checks the error if the server responds to the upgrade with an error.
func TestDialCommand_Refused(t *testing.T) {
	conn, target := serveStreams(t, 1, nil)
	target.Path = "/refuse"
	_, err := DialCommand(t.Context(), conn, target)
	if refused := (*ResponseError)(nil); !errors.As(err, &refused) || *refused != (ResponseError{404, "container main is not running"}) {
		t.Errorf("got error %v, want status 404 with the message \"container main is not running\"", err)
	}
}

// TestForward checks that each of several clients of one connection receives only its own data. It
// also checks the error for a port on which no program listens.
func TestForward(t *testing.T) {
	conn, target := serveStreams(t, 2, func(s map[string]httpstream.Stream) {
		go func() {
			data, errorStream := s[v1.StreamTypeData], s[v1.StreamTypeError]
			if data.Headers().Get(v1.PortHeader) == "81" {
				io.WriteString(errorStream, "connection refused: 81")
			} else {
				io.Copy(data, data)
			}
			data.Close()
			errorStream.Close()
		}()
	})
	streams, err := DialForward(t.Context(), conn, target)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	for i := range 5 {
		local, remote := tcpPair(t)
		done := make(chan error, 1)
		go func() { done <- streams.Forward(80, remote) }()
		text := strings.Repeat(fmt.Sprint(i), 1<<17)
		go func() {
			io.WriteString(local, text)
			local.CloseWrite()
		}()
		got, err := io.ReadAll(local)
		if forwardErr := <-done; err != nil || forwardErr != nil || string(got) != text {
			t.Errorf("client %d: got %d bytes, read error %v, Forward error %v; want the %d bytes that the client sent", i, len(got), err, forwardErr, len(text))
		}
	}
	local, remote := tcpPair(t)
	if err := streams.Forward(81, remote); errorText(err) != "connection refused: 81" {
		t.Errorf("port 81: got error %v, want \"connection refused: 81\"", err)
	}
	if _, err := local.Read(make([]byte, 1)); err == nil {
		t.Error("port 81: connection of the client is still open, want it closed")
	}
}

// tcpPair returns the two ends of a TCP connection.
func tcpPair(t *testing.T) (local *net.TCPConn, remote net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if remote, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); remote.Close() })
	return conn.(*net.TCPConn), remote
}
