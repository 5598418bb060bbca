package source

import (
	"io"
	"log"

	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// wire is an in-memory network, so that a test can use a fake clock.
type wire struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

var errUnplugged = errors.New("network is unreachable")

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-w.closed:
		return nil, errUnplugged
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fakeServer is a server with a response that a test sets.
type fakeServer struct {
	t    *testing.T
	wire *wire
	web  *httptest.Server

	mu       sync.Mutex // guards all following fields
	handler  http.HandlerFunc
	received []request
}

// request is a received request.
type request struct {
	at     time.Time
	uri    string
	host   string
	header http.Header
}

func newFakeServer(t *testing.T, handler http.HandlerFunc) *fakeServer {
	f := &fakeServer{t: t, wire: newWire(), handler: handler}
	f.web = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	if err := f.web.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	f.web.Listener = f.wire
	f.web.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.web.Start()
	t.Cleanup(f.web.Close)
	return f
}

func (f *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	handler := f.handler
	f.received = append(f.received, request{time.Now(), r.RequestURI, r.Host, r.Header})
	f.mu.Unlock()
	handler(w, r)
}

// handle sets the handler of later requests.
func (f *fakeServer) handle(handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handler = handler
}

// requests returns the requests received so far.
func (f *fakeServer) requests() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]request{}, f.received...)
}

// url returns the source of this server.
func (f *fakeServer) url(path string, o URLOptions) *URL {
	f.t.Helper()
	u, err := NewURL("http://127.0.0.1"+path, o)
	if err != nil {
		f.t.Fatal(err)
	}
	u.dial = f.wire.dial
	return u
}

// urlOptions returns the options of a test.
func urlOptions(t *testing.T) URLOptions {
	o := URLOptions{Options: testOptions(t)}
	o.CheckFrequency = 0
	return o
}

// list returns a handler that responds with these pods.
func list(names ...string) http.HandlerFunc { return body200(yaml(names...)) }

// body200 returns a handler that responds with status 200 and this content.
func body200(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(content)) // the client may have closed the connection
	}
}

// status returns a handler that responds with only a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// raw returns a handler that responds with these bytes and closes the connection.
func raw(response string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write([]byte(response))
		_ = conn.Close()
	}
}
