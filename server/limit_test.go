package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// dial returns a connection to addr that is closed when the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// statusLine sends a request without a body and returns the status line.
func statusLine(t *testing.T, c net.Conn, request string) string {
	t.Helper()
	if _, err := io.WriteString(c, request+" HTTP/1.1\r\nHost: n1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return strings.TrimSpace(line)
}

func waitClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("reading until the end: got %d bytes and error %v, want the end of a closed connection", n, err)
	}
}

// TestServer_GuardedConnLimit checks that, if many unauthenticated clients connect and send
// nothing, connections of authenticated clients stay open, and that new connections are accepted.
func TestServer_GuardedConnLimit(t *testing.T) {
	addr := serve(t, &Server{MaxConns: 4, HandlerMarksAuthenticated: true, AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unauthorized" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		MarkAuthenticated(r)
	})})
	known := []net.Conn{dial(t, addr), dial(t, addr)}
	for _, c := range known {
		if got := statusLine(t, c, "GET /"); got != "HTTP/1.1 200 OK" {
			t.Fatal(got)
		}
	}
	var unknown []net.Conn
	for range 20 {
		unknown = append(unknown, dial(t, addr))
	}
	rejected := dial(t, addr)
	if got := statusLine(t, rejected, "GET /unauthorized"); got != "HTTP/1.1 401 Unauthorized" {
		t.Error(got)
	}
	unknown = append(unknown, rejected)
	for range 4 {
		unknown = append(unknown, dial(t, addr))
	}
	if got := statusLine(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" {
		t.Error(got)
	}
	for _, c := range unknown[:20] {
		waitClosed(t, c)
	}
	for _, c := range known {
		if got := statusLine(t, c, "GET /"); got != "HTTP/1.1 200 OK" {
			t.Error(got)
		}
	}
}

// TestServer_IdleConnLimit checks that, if the endpoint does not authenticate clients, new
// connections replace idle connections, but no connection with a request in progress.
func TestServer_IdleConnLimit(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	addr := serve(t, &Server{MaxConns: 2, AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(begun)
			<-end
		}
	})})
	long, idle := dial(t, addr), dial(t, addr)
	io.WriteString(long, "GET /long HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-begun
	if got := statusLine(t, idle, "GET /"); got != "HTTP/1.1 200 OK" {
		t.Fatal(got)
	}
	for range 5 {
		if got := statusLine(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" {
			t.Error(got)
		}
	}
	waitClosed(t, idle)
	close(end)
	if line, err := bufio.NewReader(long).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("got %q and error %v, want status 200", line, err)
	}
}

// TestServer_WaitsForIdle checks that, if all connections have a request in progress, a new
// connection is served as soon as a response is complete.
func TestServer_WaitsForIdle(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	addr := serve(t, &Server{MaxConns: 1, AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(begun)
			<-end
		}
	})})
	long := dial(t, addr)
	io.WriteString(long, "GET /long HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-begun
	next := dial(t, addr)
	io.WriteString(next, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-time.After(50 * time.Millisecond) // give the server time to accept the connection next
	close(end)
	for _, c := range []net.Conn{long, next} {
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("got %q and error %v, want status 200", line, err)
		}
	}
}

// TestServer_SlowReaderConnLimit checks that clients that do not read their responses do not block
// an endpoint without authentication.
func TestServer_SlowReaderConnLimit(t *testing.T) {
	begun := make(chan struct{}, 2)
	addr := serve(t, &Server{MaxConns: 2, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/large" {
			return
		}
		begun <- struct{}{}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})})
	for range cap(begun) {
		io.WriteString(dial(t, addr), "GET /large HTTP/1.1\r\nHost: n1\r\n\r\n")
		<-begun
	}
	// Without time limits (see serve), the large responses never end by themselves.
	if got := statusLine(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" {
		t.Errorf("got %q, want status 200", got)
	}
}

// TestServer_WriteTimeout checks that, if a client reads nothing, its connection is closed, and
// that other clients are served.
func TestServer_WriteTimeout(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"written": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
		"taken over": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for err == nil {
				_, err = conn.Write(make([]byte, 64<<10))
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			conn, stop := piped(t, &Server{AllowsStreams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				h(w, r)
			})})
			defer stop()
			began := time.Now()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
			<-over
			if took := time.Since(began); took > writeTimeout+time.Second {
				t.Errorf("%s: the connection was open for %s, want at most %s", name, took, writeTimeout+time.Second)
			}
		})
	}
}

// TestServer_HeaderTimeout checks that a client that sends a header one byte at a time is
// disconnected after headerTimeout.
func TestServer_HeaderTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, stop := piped(t, &Server{AllowsStreams: true, Handler: http.NotFoundHandler()})
		defer stop()
		began := time.Now()
		for _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nX: "); err == nil; _, err = io.WriteString(conn, "x") {
			<-time.After(100 * time.Millisecond)
		}
		if took := time.Since(began); took > headerTimeout+time.Second {
			t.Errorf("the connection was open for %s, want at most %s", took, headerTimeout+time.Second)
		}
	})
}

// TestListen_Keepalive checks that the kernel closes the connection of a client whose host does not
// respond any longer.
func TestListen_Keepalive(t *testing.T) {
	ln, err := Listen(t.Context(), "test", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dial(t, ln.Addr().String())
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]struct{ level, option, want int }{
		"keepalive":    {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"user timeout": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(writeTimeout.Milliseconds())},
	} {
		var got int
		raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), o.level, o.option) })
		if err != nil || got != o.want {
			t.Errorf("socket option %s: got %d, error %v; want %d", name, got, err, o.want)
		}
	}
}

// countResources returns the numbers of goroutines and file descriptors of this process.
func countResources(t *testing.T) (goroutines, descriptors int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(all)
}

// TestServer_Flood checks that, during a flood of unauthenticated connections of every kind, valid
// clients are served, and that closed connections leave no resources behind.
func TestServer_Flood(t *testing.T) {
	ca, certificate := newAuthority(t)
	roots, err := ca.RootPool(nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, &Server{
		MaxConns: 32, MaxHeaderBytes: 1 << 10, HandlerMarksAuthenticated: true, AllowsStreams: true,
		TLS: &tls.Config{GetCertificate: certificate},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("Connection", "close")
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			MarkAuthenticated(r)
		}),
	})
	good := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	request := func() {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, "https://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		resp, err := (&http.Client{Transport: good}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("got %s, want 200", resp.Status)
		}
	}
	secure := func() net.Conn {
		return tls.Client(dial(t, addr), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	}
	request()
	goroutines, descriptors := countResources(t)
	var unknown []net.Conn
	send := func(c net.Conn, text string) {
		unknown = append(unknown, c)
		io.WriteString(c, text)
	}
	for i := range 50 {
		send(dial(t, addr), "")
		send(dial(t, addr), "\x16\x03\x01\x02\x00\x01")    // an incomplete TLS handshake
		send(dial(t, addr), "GET / HTTP/1.1\r\n\r\n")      // no TLS handshake
		send(secure(), "GET / HTTP/1.1\r\nHost: n1\r\nX:") // an incomplete header
		if i%10 == 0 {
			for request, want := range map[string]string{
				"GET /": "401 Unauthorized",
				"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 8<<10): "431 Request Header Fields Too Large",
			} {
				c := secure()
				unknown = append(unknown, c)
				if got := statusLine(t, c, request); got != "HTTP/1.1 "+want {
					t.Errorf("%.20s: got %s, want %s", request, got, want)
				}
			}
		}
		request()
		good.CloseIdleConnections() // so that the next request opens a new connection
	}
	for _, c := range unknown {
		c.Close()
	}
	request()
	for began := time.Now(); ; {
		g, d := countResources(t)
		if g <= goroutines && d <= descriptors {
			break
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("after the flood: got %d goroutines and %d descriptors, want at most %d and %d as before", g, d, goroutines, descriptors)
		}
		<-time.After(10 * time.Millisecond)
	}
	good.CloseIdleConnections()
}
