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
	p, err := a.RootPool(nil)
	if err != nil {
		panic(err)
	}
	return p
}

func TestRootPool(t *testing.T) {
	a, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	both, err := a.RootPool(other.PEM())
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range []*Authority{a, other} {
		if _, err := ca.currentIssuer.Load().cert.Verify(x509.VerifyOptions{Roots: both}); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.RootPool([]byte("nothing")); err == nil {
		t.Error("RootPool of a text without a certificate: got no error, want one")
	}
}

// TestOpen checks that Open returns the stored authority. If the file was modified, Open
// must return an error and not create another authority.
func TestOpen(t *testing.T) {
	root := t.TempDir()
	first, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(root)
	if err != nil || !bytes.Equal(first.PEM(), again.PEM()) {
		t.Fatalf("second Open of the same directory: got error %v, or another certificate; want the certificate of the first Open", err)
	}
	path := filepath.Join(root, FileName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the authority: got mode %v, error %v; want mode 0600", info.Mode(), err)
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
		"cut short":     {text[:len(text)/2], 0o600, "remove this file"},
		"empty":         {nil, 0o600, "first PEM block is not a certificate"},
		"another's":     {append(other.PEM(), text[len(first.PEM()):]...), 0o600, "does not match the certificate"},
		"read by group": {text, 0o640, "other users may have read the key"},
	} {
		os.Remove(path)
		if err := os.WriteFile(path, c.text, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(root); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
	os.Remove(path)
	if err := os.Symlink("/etc/hostname", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root); err == nil {
		t.Error("Open of a symbolic link: got no error, want one")
	}
}

// TestReplace checks that after Replace neither clients nor servers trust certificates that
// were signed before. This must also apply after a restart of podd.
func TestReplace(t *testing.T) {
	root := t.TempDir()
	a, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	given, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(a *Authority) *x509.Certificate {
		t.Helper()
		cert, key, err := a.SignClient("podd-admin", []string{"system:masters"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	trusts := func(roots *x509.CertPool, c *x509.Certificate) bool {
		_, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err == nil
	}
	text := given.PEM()
	own, both := a.RootPoolFunc(nil), a.RootPoolFunc(func() []byte { return text })
	serving := a.NewServingCertificate([]string{"n1"}, func() []net.IP { return nil })
	before, theirs := leaf(a), leaf(given)
	served, err := serving.Get()
	if err != nil {
		t.Fatal(err)
	}
	if first := both(); first != both() || !trusts(own(), before) || !trusts(first, before) || !trusts(first, theirs) {
		t.Fatal("before Replace: got a changed pool, or no trust in a signed certificate; want the same pool and trust")
	}
	wasIssued, err := a.Replace()
	if err != nil {
		t.Fatal(err)
	}
	after := leaf(a)
	if !wasIssued(before) || wasIssued(after) || wasIssued(theirs) {
		t.Errorf("wasIssued of a certificate from before Replace, of one from after Replace, and of one of another authority: got %t, %t, %t, want true, false, false", wasIssued(before), wasIssued(after), wasIssued(theirs))
	}
	again, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, roots := range map[string]*x509.CertPool{"own": own(), "both": both(), "after a restart": again.RootPoolFunc(nil)()} {
		if trusts(roots, before) || !trusts(roots, after) || trusts(roots, served.Leaf) {
			t.Errorf("%s: got trust in the old client %t, the new client %t, the old server %t; want false, true, false", name, trusts(roots, before), trusts(roots, after), trusts(roots, served.Leaf))
		}
	}
	if !trusts(both(), theirs) {
		t.Error("clients of another authority: got no trust, want trust")
	}
	if now, err := serving.Get(); err != nil || !trusts(own(), now.Leaf) {
		t.Errorf("serving certificate after Replace: got error %v, or a certificate that is not trusted; want a trusted certificate", err)
	}
	text = []byte("nothing")
	if trusts(both(), theirs) || !trusts(both(), after) {
		t.Error("after the text of the other authority has become invalid: got trust in clients of that authority, or no trust in podd's own clients; want trust only in podd's own clients")
	}
}

// TestReplace_WriteFails checks that Replace returns an error and changes nothing if the
// file cannot be written.
func TestReplace_WriteFails(t *testing.T) {
	root := t.TempDir()
	a, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	before := a.PEM()
	dir := filepath.Dir(filepath.Join(root, FileName))
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // prevents the creation of the directory
		t.Fatal(err)
	}
	if _, err := a.Replace(); err == nil || !bytes.Equal(a.PEM(), before) {
		t.Errorf("got error %v, authority has changed: %t; want an error, authority has changed: false", err, !bytes.Equal(a.PEM(), before))
	}
}

// TestHandshake checks that client and server trust certificates of the same authority, but
// only for their purpose.
func TestHandshake(t *testing.T) {
	a, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	serving := a.NewServingCertificate([]string{"n1", "localhost"}, func() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1)} })
	cert, key, err := a.SignClient("admin", []string{"system:masters"}, time.Hour)
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
		{"n1", pool(a), true}, {"127.0.0.1", pool(a), true}, {"n2", pool(a), false}, {"n1", pool(foreign), false},
	} {
		client, server := net.Pipe()
		go tls.Server(server, &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving.Get() },
			ClientAuth:     tls.RequireAndVerifyClientCert, ClientCAs: pool(a),
		}).Handshake()
		err := tls.Client(client, &tls.Config{ServerName: c.name, RootCAs: c.roots, Certificates: []tls.Certificate{mine}}).Handshake()
		if (err == nil) != c.ok {
			t.Errorf("%s: got error %v, want success %t", c.name, err, c.ok)
		}
		client.Close()
	}
	if mine.Leaf.Subject.CommonName != "admin" || mine.Leaf.Subject.Organization[0] != "system:masters" {
		t.Errorf("got client subject %s, want admin in system:masters", mine.Leaf.Subject)
	}
	_, err = mine.Leaf.Verify(x509.VerifyOptions{Roots: pool(a), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		t.Error("handshake with a client certificate as serving certificate: got no error, want one")
	}
}

// TestServingCertificate_Renewal checks that the certificate is renewed long before it
// expires, and not at every Get.
func TestServingCertificate_Renewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ips := []net.IP{net.ParseIP("10.0.0.1")}
		s := a.NewServingCertificate([]string{"n1"}, func() []net.IP { return ips })
		first, err := s.Get()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(servingLifetime / 2)
		if now, _ := s.Get(); now != first {
			t.Error("at half of the lifetime: got another certificate, want the first one")
		}
		time.Sleep(servingLifetime / 4)
		now, err := s.Get()
		if err != nil || now == first || !now.Leaf.NotAfter.After(time.Now().Add(servingLifetime/2)) {
			t.Errorf("at three quarters of the lifetime: got error %v and a certificate that expires at %v, want no error and a new certificate", err, now.Leaf.NotAfter)
		}

		ips[0] = net.ParseIP("10.0.0.2")
		other, err := s.Get()
		if err != nil || other.Leaf.VerifyHostname("10.0.0.2") != nil || other.Leaf.VerifyHostname("10.0.0.1") == nil {
			t.Errorf("after an address change: got a certificate for %v, error %v; want one for 10.0.0.2", other.Leaf.IPAddresses, err)
		}
		if again, _ := s.Get(); again != other {
			t.Error("second Get without an address change: got another certificate, want the same")
		}
	})
}
