package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func pool(a *Authority) *x509.CertPool {
	p, err := a.Trust(nil)
	if err != nil {
		panic(err)
	}
	return p
}

func TestTrust(t *testing.T) {
	a, err := New("podd")
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("other")
	if err != nil {
		t.Fatal(err)
	}
	both, err := a.Trust(other.PEM())
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range []*Authority{a, other} {
		if _, err := ca.cert.Verify(x509.VerifyOptions{Roots: both}); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Trust([]byte("nothing")); err == nil {
		t.Error("no certificate is no error")
	}
}

// TestOpen: an authority outlives podd, and one that was tampered with is no
// reason to make another in silence.
func TestOpen(t *testing.T) {
	root := t.TempDir()
	first, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(root)
	if err != nil || !bytes.Equal(first.PEM(), again.PEM()) {
		t.Fatalf("opened again it is another (%v)", err)
	}
	path := filepath.Join(root, FileName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		mode os.FileMode
		want string
	}{
		"cut short":     {text[:len(text)/2], 0o600, "remove it"},
		"empty":         {nil, 0o600, "does not begin with a certificate"},
		"another's":     {append(other.PEM(), text[len(first.PEM()):]...), 0o600, "not that of its certificate"},
		"read by group": {text, 0o640, "can be read by others"},
	} {
		os.Remove(path)
		if err := os.WriteFile(path, c.text, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(root); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
	os.Remove(path)
	if err := os.Symlink("/etc/hostname", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root); err == nil {
		t.Error("a link was followed")
	}
}

// TestHandshake: both sides trust what one authority made, for what it was made.
func TestHandshake(t *testing.T) {
	a, err := New("podd")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := New("other")
	if err != nil {
		t.Fatal(err)
	}
	serving := a.Serving([]string{"n1", "localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	cert, key, err := a.Client("admin", []string{"system:masters"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		roots *x509.CertPool
		ok    bool
	}{
		{"n1", pool(a), true}, {"127.0.0.1", pool(a), true}, {"n2", pool(a), false}, {"n1", pool(stranger), false},
	} {
		client, server := net.Pipe()
		go tls.Server(server, &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Get() },
			ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: pool(a),
		}).Handshake()
		err := tls.Client(client, &tls.Config{ServerName: c.name, RootCAs: c.roots, Certificates: []tls.Certificate{mine}}).Handshake()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		client.Close()
	}
	if mine.Leaf.Subject.CommonName != "admin" || mine.Leaf.Subject.Organization[0] != "system:masters" {
		t.Errorf("the client is %s", mine.Leaf.Subject)
	}
	_, err = mine.Leaf.Verify(x509.VerifyOptions{Roots: pool(a), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		t.Error("a client's certificate makes a server")
	}
}

// TestServingIsRenewed long before it ends, and not at every look.
func TestServingIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New("podd")
		if err != nil {
			t.Fatal(err)
		}
		s := a.Serving([]string{"n1"}, nil)
		first, err := s.Get()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(servingLife / 2)
		if now, _ := s.Get(); now != first {
			t.Error("renewed too early")
		}
		time.Sleep(servingLife / 4)
		now, err := s.Get()
		if err != nil || now == first || !now.Leaf.NotAfter.After(time.Now().Add(servingLife/2)) {
			t.Errorf("not renewed: %v, until %v", err, now.Leaf.NotAfter)
		}
	})
}
