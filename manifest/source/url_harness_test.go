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

// fleet is a server whose response a test sets.
type fleet struct {
	t    *testing.T
	wire *wire
	web  *httptest.Server

	mu     sync.Mutex // guards all following fields
	answer http.HandlerFunc
	asked  []request
}

// request is a received request.
type request struct {
	at     time.Time
	uri    string
	host   string
	header http.Header
}

func newFleet(t *testing.T, answer http.HandlerFunc) *fleet {
	f := &fleet{t: t, wire: newWire(), answer: answer}
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

func (f *fleet) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	answer := f.answer
	f.asked = append(f.asked, request{time.Now(), r.RequestURI, r.Host, r.Header})
	f.mu.Unlock()
	answer(w, r)
}

// now sets the response for later requests.
func (f *fleet) now(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// requests returns the requests received so far.
func (f *fleet) requests() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]request{}, f.asked...)
}

// url returns the source of this server.
func (f *fleet) url(path string, o URLOptions) *URL {
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

// list answers 200 with these pods.
func list(names ...string) http.HandlerFunc { return body200(yaml(names...)) }

// body200 answers 200 with this.
func body200(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(content)) // the client may have closed the connection
	}
}

// status answers with nothing but a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// raw answers with these bytes and hangs up.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write([]byte(answer))
		_ = conn.Close()
	}
}
