package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestCloseClients checks that CloseClients disconnects the clients with a revoked certificate,
// including clients with streams. Other connections stay open, and new connections are accepted.
func TestCloseClients(t *testing.T) {
	ca, servingCertificate := newAuthority(t)
	certificate := func() tls.Certificate {
		t.Helper()
		cert, key, err := ca.SignClient("podd-admin", nil, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	revoked, valid := certificate(), certificate()
	s := &Server{
		HandlerMarksAuthenticated: true, AllowsStreams: true,
		TLS: &tls.Config{
			GetCertificate: servingCertificate, ClientAuth: tls.RequestClientCert,
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/taken": // echoes its input, as exec may
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				io.Copy(c, c)
			case "/lasts":
				w.Write(nil)
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}),
	}
	isRevoked := func(c *x509.Certificate) bool { return c.Equal(revoked.Leaf) }
	if n := s.CloseClients(isRevoked); n != 0 {
		t.Errorf("CloseClients before Serve: closed %d connections, want 0", n)
	}
	addr := serve(t, s)
	connect := func(path string, shows ...tls.Certificate) net.Conn {
		t.Helper()
		c := tls.Client(dial(t, addr), &tls.Config{InsecureSkipVerify: true, Certificates: shows})
		if got := statusLine(t, c, "GET "+path); got != "HTTP/1.1 200 OK" {
			t.Fatal(got)
		}
		return c
	}
	old := []net.Conn{connect("/taken", revoked), connect("/lasts", revoked), connect("/idle", revoked)}
	taken, idle, anonymous := connect("/taken", valid), connect("/idle", valid), connect("/idle")
	if n := s.CloseClients(isRevoked); n != len(old) {
		t.Errorf("CloseClients: got %d closed connections, want %d", n, len(old))
	}
	for _, c := range old {
		waitClosed(t, c)
	}
	if _, err := io.WriteString(taken, "echo\n"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(taken); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("stream of a client whose certificate is not revoked: got error %v, want a line", err)
		}
		if line == "echo\n" {
			break
		}
	}
	for _, c := range []net.Conn{idle, anonymous} {
		if got := statusLine(t, c, "GET /idle"); got != "HTTP/1.1 200 OK" {
			t.Errorf("response to a client without a revoked certificate: got %s, want status 200", got)
		}
	}
	connect("/idle", revoked) // CloseClients only closes connections; the handler must reject the certificate
}
