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
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
)

// runtime is a server of streams that does with them what a test says, once all
// of want, or of a pair for each connection, are there.
func runtime(t *testing.T, want int, do func(map[string]httpstream.Stream)) (net.Conn, *url.URL) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/refuse") {
			http.Error(w, "container main is not running", http.StatusNotFound)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{remoteCommand, portForward}); err != nil {
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
			for len(all) < want {
				select {
				case s := <-streams:
					all[s.Headers().Get(v1.StreamType)] = s
				case <-conn.CloseChan():
					return
				}
			}
			do(all)
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
	success = `{"status":"Success"}`
	code3   = `{"status":"Failure","reason":"NonZeroExitCode","message":"m","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`
	code0   = `{"status":"Failure","reason":"NonZeroExitCode","message":"odd","details":{"causes":[{"reason":"ExitCode","message":"0"}]}}`
	failure = `{"status":"Failure","message":"no such file"}`
)

func TestCommand(t *testing.T) {
	for _, c := range []struct{ end, want string }{
		{success, ""}, {code3, "command terminated with exit code 3"}, {code0, "odd"}, {failure, "no such file"},
		{"plain words", "plain words"}, {"", errConnectionClosed.Error()}, {`{}`, "the command failed, and the runtime does not say why: the connection was cut"},
	} {
		conn, target := runtime(t, 4, func(s map[string]httpstream.Stream) {
			said, _ := io.ReadAll(s[v1.StreamTypeStdin]) // until the client's end
			fmt.Fprintf(s[v1.StreamTypeStdout], "got %s", said)
			io.WriteString(s[v1.StreamTypeStderr], "trouble")
			io.WriteString(s[v1.StreamTypeError], c.end)
		})
		streams, err := DialCommand(t.Context(), conn, target)
		if err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		err = (&Command{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &talk}).Run(t.Context(), streams)
		if got := errorText(err); got != c.want || out.String() != "got hello" || talk.String() != "trouble" {
			t.Errorf("%s: %q, %q, %q", c.end, got, out.String(), talk.String())
		}
	}
}

// TestRefusedAtOnce: a command that ended, with the connection, before the client
// had told that it writes nothing to the stream of the end is heard nevertheless.
func TestRefusedAtOnce(t *testing.T) {
	conn, target := runtime(t, 3, func(s map[string]httpstream.Stream) {
		io.WriteString(s[v1.StreamTypeError], failure)
	})
	streams, err := DialCommand(t.Context(), &opening{Conn: conn}, target)
	if err != nil {
		t.Fatal(err)
	}
	err = (&Command{Stdout: io.Discard, Stderr: io.Discard}).Run(t.Context(), streams)
	if got := errorText(err); got != "no such file" {
		t.Errorf("got %q", got)
	}
}

// opening is a connection that takes what opens streams, and is broken for all that
// is written to one.
type opening struct {
	net.Conn
	upgraded bool
	begun    []byte // of a frame of SPDY
}

func (o *opening) Write(p []byte) (int, error) {
	if !o.upgraded {
		o.upgraded = true
		return o.Conn.Write(p)
	}
	o.begun = append(o.begun, p...)
	for len(o.begun) >= 8 {
		const control = 0x80
		size := 8 + int(binary.BigEndian.Uint32(o.begun[4:])&0xffffff)
		if o.begun[0]&control == 0 {
			return 0, syscall.EPIPE
		}
		if len(o.begun) < size {
			break
		}
		o.begun = o.begun[size:]
	}
	return o.Conn.Write(p)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSizes: the sizes of a terminal arrive in their order.
func TestSizes(t *testing.T) {
	conn, target := runtime(t, 3, func(s map[string]httpstream.Stream) {
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
		t.Errorf("%v: %q", err, out.String())
	}
}

// TestEndings: of the user, of our own output, of podd.
func TestEndings(t *testing.T) {
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
		"user":   {func(cancel func(), _ net.Conn) error { cancel(); return nil }, context.Canceled},
		"output": {func(func(), net.Conn) error { return io.ErrShortWrite }, io.ErrShortWrite},
		"podd":   {func(_ func(), conn net.Conn) error { conn.Close(); return nil }, errConnectionClosed},
	} {
		conn, target := runtime(t, 3, hang)
		ctx, cancel := context.WithCancel(t.Context())
		streams, err := DialCommand(ctx, conn, target)
		if err != nil {
			t.Fatal(err)
		}
		out := writer(func(b []byte) (int, error) { return len(b), c.out(cancel, conn) })
		if err := (&Command{Stdin: blocked, Stdout: out}).Run(ctx, streams); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		cancel()
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestRefused(t *testing.T) {
	conn, target := runtime(t, 1, nil)
	target.Path = "/refuse"
	_, err := DialCommand(t.Context(), conn, target)
	if refused := (*ResponseError)(nil); !errors.As(err, &refused) || *refused != (ResponseError{404, "container main is not running"}) {
		t.Errorf("%v", err)
	}
}

// TestForward: many clients over one connection, each gets its own and all of it.
func TestForward(t *testing.T) {
	conn, target := runtime(t, 2, func(s map[string]httpstream.Stream) {
		go func() {
			data, trouble := s[v1.StreamTypeData], s[v1.StreamTypeError]
			if data.Headers().Get(v1.PortHeader) == "81" {
				io.WriteString(trouble, "nobody listens on 81")
			} else {
				io.Copy(data, data)
			}
			data.Close()
			trouble.Close()
		}()
	})
	streams, err := DialForward(t.Context(), conn, target)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	for i := range 5 {
		mine, theirs := tcpPair(t)
		done := make(chan error, 1)
		go func() { done <- streams.Forward(80, theirs) }()
		text := strings.Repeat(fmt.Sprint(i), 1<<17)
		go func() {
			io.WriteString(mine, text)
			mine.CloseWrite()
		}()
		got, err := io.ReadAll(mine)
		if failed := <-done; err != nil || failed != nil || string(got) != text {
			t.Errorf("%d: %d bytes, %v, %v", i, len(got), err, failed)
		}
	}
	mine, theirs := tcpPair(t)
	if err := streams.Forward(81, theirs); errorText(err) != "nobody listens on 81" {
		t.Errorf("%v", err)
	}
	if _, err := mine.Read(make([]byte, 1)); err == nil {
		t.Error("the client was not told")
	}
}

func tcpPair(t *testing.T) (mine *net.TCPConn, theirs net.Conn) {
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
	if theirs, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); theirs.Close() })
	return conn.(*net.TCPConn), theirs
}
