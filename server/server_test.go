package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server/events"
	"podd/server/pki"
	"podd/server/servertest"
)

// pod returns a ready, existing pod in namespace default.
func pod(name string) *PodView {
	return &PodView{
		Pod: &v1.Pod{
			TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		},
		Exists: true,
		Ready:  true,
	}
}

// keys returns the keys of pods in namespace default.
func keys(names ...string) []Key {
	var out []Key
	for _, n := range names {
		out = append(out, Key{"default", n})
	}
	return out
}

// fakeDaemon is a daemon in memory. It publishes a View and records the commands that it
// receives.
type fakeDaemon struct {
	events *events.Log
	*LatestView
	restarted []string
	down      func(ctx context.Context) error
	shutdown  func(ctx context.Context, grace time.Duration) error
	resumed   error // returned by Resume
	log       func(ctx context.Context, req LogRequest, w io.Writer) error
}

func (m *fakeDaemon) Restart(_ context.Context, key types.NamespacedName, container string) error {
	if key.Name == "absent-n1" {
		return NewNotFoundError("no pod " + key.String())
	}
	m.restarted = append(m.restarted, key.String()+" "+container)
	return nil
}

func (m *fakeDaemon) Down(ctx context.Context) error { return m.down(ctx) }

func (m *fakeDaemon) Shutdown(ctx context.Context, grace time.Duration) error {
	return m.shutdown(ctx, grace)
}

func (m *fakeDaemon) Resume(context.Context) error { return m.resumed }

func (m *fakeDaemon) Logs(ctx context.Context, req LogRequest, w io.Writer) error {
	return m.log(ctx, req, w)
}

func (m *fakeDaemon) handler() http.Handler {
	return (&API{State: m, Command: m, Logs: m, Events: m.events}).Handler()
}

func newFakeDaemon(names ...string) *fakeDaemon {
	v := &View{Revision: 7, Node: "n1", Version: "v0.1.0", Runtime: "containerd 2.4.2", Problems: []ProblemView{}}
	for _, n := range names {
		v.Pods = append(v.Pods, pod(n))
	}
	return &fakeDaemon{LatestView: NewLatestView(v), events: events.New(events.Options{Node: "n1"})}
}

// sendTo sends a request to h as if it was received at 10.1.2.3:10255.
func sendTo(h http.Handler, method, target, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	local := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 10255}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// serve starts s, which runs until the test ends, and returns its address. Its connections have no
// time limits.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	ln, err := Listen(t.Context(), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), servertest.WithoutDeadlines(ln)) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("Serve: got error %v, want nil", err)
		}
	})
	return ln.Addr().String()
}

func TestServe_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, ended := make(chan struct{}), false
		conn, cancel, done := pipe(t, &Server{AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			close(entered)
			<-r.Context().Done()
			ended = true
		})})
		defer conn.Close()
		client := make(chan error, 1)
		go func() {
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			client <- err
		}()
		go func() { <-entered; cancel() }()
		if err := <-done; err != nil {
			t.Errorf("Serve: got error %v, want nil", err)
		}
		if !ended {
			t.Error("Serve returned before the handler, want Serve to wait for the handler")
		}
		if err := <-client; err != nil {
			t.Errorf("client: got error %v, want a complete response", err)
		}
	})
}

// TestServe_ShutdownHijacked checks that Serve returns even if a handler is blocked. The handler
// writes to a hijacked connection, and the client reads nothing.
func TestServe_ShutdownHijacked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ln, err := Listen(ctx, "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan struct{})
	s := &Server{AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		close(taken)
		for err == nil {
			_, err = conn.Write(make([]byte, 64<<10))
		}
	})}
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	go func() { <-taken; cancel() }()
	if err := s.Serve(ctx, servertest.WithoutDeadlines(ln)); err != nil {
		t.Errorf("Serve: got error %v, want nil", err)
	}
}

// TestServe_TLS checks that TLS clients are served with every cipher suite and only with HTTP/1.1,
// and that handshake errors are not logged.
func TestServe_TLS(t *testing.T) {
	ca, certificate := newAuthority(t)
	roots, err := ca.RootPool(nil)
	if err != nil {
		t.Fatal(err)
	}
	var logged syncBuffer
	addr := serve(t, &Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }),
		Log:     slog.New(slog.NewTextHandler(&logged, nil)),
		TLS: &tls.Config{
			GetCertificate: certificate,
			CipherSuites:   []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		},
	})
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); string(text) != "HTTP/1.1" {
		t.Errorf("got protocol %s, want HTTP/1.1", text)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "noise, and no handshake at all\r\n\r\n")
	io.Copy(io.Discard, conn) // until the server closes the connection
	if logged.String() != "" {
		t.Errorf("got log %s, want none", logged.String())
	}
}

// newAuthority returns a certificate authority, and a function for tls.Config.GetCertificate
// that returns its serving certificate for 127.0.0.1.
func newAuthority(t *testing.T) (ca *pki.Authority, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) {
	t.Helper()
	ca, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	serving := ca.NewServingCertificate([]string{"n1"}, func() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1)} })
	return ca, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Get() }
}

// syncBuffer is a buffer that is safe for concurrent use.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestServe_Errors(t *testing.T) {
	ln, err := Listen(t.Context(), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Listen(t.Context(), "--healthz-port", ln.Addr().String())
	want := "listening on " + ln.Addr().String() + ", --healthz-port: bind: address already in use; stop the process that uses the port, or use another port"
	if err == nil || err.Error() != want {
		t.Errorf("second Listen on the same port: got error %v, want %q", err, want)
	}
	ln.Close()
	if err := (&Server{Handler: http.NotFoundHandler()}).Serve(t.Context(), ln); err == nil || !strings.HasPrefix(err.Error(), "accepting connections on ") {
		t.Errorf("Serve on a closed listener: got error %v, want the prefix \"accepting connections on \"", err)
	}
}

// TestLimitListener checks that, when the limit is reached, a connection is accepted only after
// another connection is closed.
func TestLimitListener(t *testing.T) {
	inner, outer := net.Pipe()
	defer outer.Close()
	ln := newLimitListener(&onceListener{conns: []net.Conn{inner, inner, inner}}, 1)
	accept := func() (net.Conn, error) {
		c, err := ln.Accept()
		if err == nil {
			c.(*limitConn).setAdmitted(true)
		}
		return c, err
	}
	first, err := accept()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { _, err := accept(); second <- err }()
	select {
	case <-second:
		t.Fatal("Accept returned a second connection before the first was closed, want it to wait")
	default:
	}
	first.Close()
	first.Close() // the second Close must not free the slot again
	if err := <-second; err != nil {
		t.Fatalf("Accept after the first connection was closed: got error %v, want nil", err)
	}
	go func() { _, err := accept(); second <- err }()
	ln.Close()
	if err := <-second; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("Accept after Close: got error %v, want net.ErrClosed", err)
	}
}

// onceListener returns the given connections.
type onceListener struct{ conns []net.Conn }

func (l *onceListener) Accept() (net.Conn, error) {
	c := l.conns[0]
	l.conns = l.conns[1:]
	return c, nil
}
func (l *onceListener) Close() error   { return nil }
func (l *onceListener) Addr() net.Addr { return &net.TCPAddr{} }

// pipeListener accepts in-memory connections, so that synctest controls the time.
type pipeListener struct {
	conns chan net.Conn
	done  <-chan struct{}
	end   func()
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.end(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// pipe returns an in-memory connection to s, which runs until cancel is called. done then receives the
// result of Serve.
func pipe(t *testing.T, s *Server) (conn net.Conn, cancel func(), done <-chan error) {
	inner, outer := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	closed, end := context.WithCancel(t.Context()) // as for a listener, only Close ends this context
	ln := &pipeListener{make(chan net.Conn, 1), closed.Done(), end}
	ln.conns <- inner
	result := make(chan error, 1)
	go func() { result <- s.Serve(ctx, ln) }()
	return outer, cancel, result
}

// piped is like pipe, but the returned function also closes the connection and checks the result of
// Serve.
func piped(t *testing.T, s *Server) (conn net.Conn, stop func()) {
	conn, cancel, done := pipe(t, s)
	return conn, func() {
		cancel()
		conn.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: got error %v, want nil", err)
		}
	}
}

// TestServer_UnreadBody checks that a rejected client that never sends its announced body is
// disconnected.
func TestServer_UnreadBody(t *testing.T) {
	for _, body := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
		synctest.Test(t, func(t *testing.T) {
			conn, stop := piped(t, &Server{AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "close")
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
			})})
			defer stop()
			io.WriteString(conn, "POST / HTTP/1.1\r\nHost: n1\r\n"+body+"\r\n\r\n")
			began := time.Now()
			response, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(response), "HTTP/1.1 401 ") {
				t.Errorf("%s: got response %q and error %v, want status 401", body, response, err)
			}
			if took := time.Since(began); took > responseTimeout+time.Second {
				t.Errorf("%s: the connection was open for %s, want at most %s", body, took, responseTimeout+time.Second)
			}
		})
	}
}

// TestServer_StreamsNoTimeLimit checks that streams, and responses to a body that was read, have no
// time limit.
func TestServer_StreamsNoTimeLimit(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"hijacked": func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			line, err := rw.ReadString('\n')
			io.WriteString(conn, strings.ToUpper(line))
			if err != nil {
				t.Error(err)
			}
		},
		"read": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				t.Error(r.Context().Err())
			case <-time.After(3 * responseTimeout):
			}
			w.Header().Set("Connection", "close")
			io.WriteString(w, "LATE\n")
		},
	}
	for name, h := range handlers {
		synctest.Test(t, func(t *testing.T) {
			conn, stop := piped(t, &Server{AllowsStreams: true, Handler: h})
			defer stop()
			io.WriteString(conn, "POST / HTTP/1.1\r\nHost: n1\r\nContent-Length: 5\r\n\r\n")
			if name == "hijacked" {
				<-time.After(2 * responseTimeout)
			}
			io.WriteString(conn, "late\n")
			if response, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(response), "LATE\n") {
				t.Errorf("%s: got response %q and error %v, want LATE at the end", name, response, err)
			}
		})
	}
}

// TestServer_Options checks that the request "OPTIONS *" is passed to the handler, like every other
// request.
func TestServer_Options(t *testing.T) {
	addr := serve(t, &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	})})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: n1\r\nConnection: close\r\n\r\n")
	if response, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(response), "HTTP/1.1 401 ") {
		t.Errorf("got response %q and error %v, want status 401", response, err)
	}
}
