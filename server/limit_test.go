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

	"podd/server/pki"
)

// dial connects to addr until the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a request without a body and returns the status line.
func say(t *testing.T, c net.Conn, request string) string {
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

func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("a connection goes on: %d bytes, %v", n, err)
	}
}

// TestStrangersMakeRoom: however many connect and say nothing, those who are
// known stay, and come in.
func TestStrangersMakeRoom(t *testing.T) {
	addr := serve(t, &Server{MaxConns: 4, Guarded: true, Streams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stranger" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		Admit(r)
	})})
	known := []net.Conn{dial(t, addr), dial(t, addr)}
	for _, c := range known {
		if got := say(t, c, "GET /"); got != "HTTP/1.1 200 OK" {
			t.Fatal(got)
		}
	}
	var strangers []net.Conn
	for range 20 {
		strangers = append(strangers, dial(t, addr))
	}
	heard := dial(t, addr)
	if got := say(t, heard, "GET /stranger"); got != "HTTP/1.1 401 Unauthorized" {
		t.Error(got)
	}
	strangers = append(strangers, heard)
	for range 4 {
		strangers = append(strangers, dial(t, addr))
	}
	if got := say(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" {
		t.Error(got)
	}
	for _, c := range strangers[:20] {
		ended(t, c)
	}
	for _, c := range known {
		if got := say(t, c, "GET /"); got != "HTTP/1.1 200 OK" {
			t.Error(got)
		}
	}
}

// TestIdleMakeRoom: where nobody is known, who is being answered stays and who
// only keeps a connection goes.
func TestIdleMakeRoom(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	addr := serve(t, &Server{MaxConns: 2, Streams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(begun)
			<-end
		}
	})})
	long, idle := dial(t, addr), dial(t, addr)
	io.WriteString(long, "GET /long HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-begun
	if got := say(t, idle, "GET /"); got != "HTTP/1.1 200 OK" {
		t.Fatal(got)
	}
	for range 5 {
		if got := say(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" {
			t.Error(got)
		}
	}
	ended(t, idle)
	close(end)
	if line, err := bufio.NewReader(long).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestWaitsForIdle: who waits because everybody is being answered comes in when one
// of them has its whole answer.
func TestWaitsForIdle(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	addr := serve(t, &Server{MaxConns: 1, Streams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			close(begun)
			<-end
		}
	})})
	long := dial(t, addr)
	io.WriteString(long, "GET /long HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-begun
	next := dial(t, addr)
	next.SetDeadline(time.Now().Add(idleTimeout / 2))
	io.WriteString(next, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
	<-time.After(50 * time.Millisecond) // it is accepted, and waits
	close(end)
	for _, c := range []net.Conn{long, next} {
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("%q, %v", line, err)
		}
	}
}

// TestNobodyTakes: clients that take nothing of their answers keep nobody out of a
// face that is open to everybody.
func TestNobodyTakes(t *testing.T) {
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
	began := time.Now()
	if got := say(t, dial(t, addr), "GET /"); got != "HTTP/1.1 200 OK" || time.Since(began) > answerTimeout/2 {
		t.Errorf("%s after %s", got, time.Since(began))
	}
}

// TestNobodyReads: a client that takes nothing ends its stream, not podd.
func TestNobodyReads(t *testing.T) {
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
			conn, stop := piped(t, &Server{Streams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				h(w, r)
			})})
			defer stop()
			began := time.Now()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n")
			<-over
			if took := time.Since(began); took > patience+time.Second {
				t.Errorf("%s: held for %s", name, took)
			}
		})
	}
}

// TestSlowHeader: who sends a request a byte at a time has the time for one.
func TestSlowHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, stop := piped(t, &Server{Streams: true, Handler: http.NotFoundHandler()})
		defer stop()
		began := time.Now()
		for _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nX: "); err == nil; _, err = io.WriteString(conn, "x") {
			<-time.After(100 * time.Millisecond)
		}
		if took := time.Since(began); took > headerTimeout+time.Second {
			t.Errorf("held for %s", took)
		}
	})
}

// TestVanished: the kernel asks after clients that went without a word.
func TestVanished(t *testing.T) {
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
		"user timeout": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds())},
	} {
		var got int
		raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), o.level, o.option) })
		if err != nil || got != o.want {
			t.Errorf("%s is %d, %v, want %d", name, got, err, o.want)
		}
	}
}

// open is how many goroutines and descriptors this process has.
func open(t *testing.T) (goroutines, descriptors int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(all)
}

// TestFlood: strangers of every kind come, good clients among them are answered,
// and nothing is left of any stranger that went.
func TestFlood(t *testing.T) {
	ca, err := pki.New("test")
	if err != nil {
		t.Fatal(err)
	}
	serving := ca.Serving([]string{"n1"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	roots, err := ca.Trust(nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, &Server{
		MaxConns: 32, MaxHeader: 1 << 10, Guarded: true, Streams: true,
		TLS: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Get() }},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("Connection", "close")
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
			Admit(r)
		}),
	})
	good := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	ask := func() {
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
			t.Error(resp.Status)
		}
	}
	secure := func() net.Conn {
		return tls.Client(dial(t, addr), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	}
	ask()
	goroutines, descriptors := open(t)
	var strangers []net.Conn
	send := func(c net.Conn, text string) {
		strangers = append(strangers, c)
		io.WriteString(c, text)
	}
	for i := range 50 {
		send(dial(t, addr), "")
		send(dial(t, addr), "\x16\x03\x01\x02\x00\x01")    // a handshake that is never finished
		send(dial(t, addr), "GET / HTTP/1.1\r\n\r\n")      // none at all
		send(secure(), "GET / HTTP/1.1\r\nHost: n1\r\nX:") // a header that is never finished
		if i%10 == 0 {
			for request, want := range map[string]string{
				"GET /": "401 Unauthorized",
				"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 8<<10): "431 Request Header Fields Too Large",
			} {
				c := secure()
				strangers = append(strangers, c)
				if got := say(t, c, request); got != "HTTP/1.1 "+want {
					t.Errorf("%.20s: %s, want %s", request, got, want)
				}
			}
		}
		ask()
		good.CloseIdleConnections() // the next one comes in anew
	}
	for _, c := range strangers {
		c.Close()
	}
	ask()
	for began := time.Now(); ; {
		g, d := open(t)
		if g <= goroutines && d <= descriptors {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d goroutines and %d descriptors, before the flood %d and %d", g, d, goroutines, descriptors)
		}
		<-time.After(10 * time.Millisecond)
	}
	good.CloseIdleConnections()
}
