package source

import (
	"io"
	"log"

	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/manifest"
)

// authority signs certificates for servers and clients.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := a.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) template(name string) *x509.Certificate {
	a.n++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// sign returns a certificate and its key in PEM.
func (a *authority) sign(name string) (cert, key []byte) {
	own := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, a.template(name), a.cert, own.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// serveTLS starts a server that requires client certificates of the authority. The server responds
// with a pod that has the name of the client.
func (a *authority) serveTLS() *httptest.Server {
	cert, key := a.sign("server")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			http.Redirect(w, r, "http://"+r.Host+"/x", http.StatusFound)
			return
		}
		list(r.TLS.PeerCertificates[0].Subject.CommonName)(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s
}

func TestURL_ClientCertificate(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	s := a.serveTLS()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+"~", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	client := func(name string) (certFile, keyFile string) {
		cert, key := a.sign(name)
		return write("cert", cert), write("key", key)
	}
	o := urlOptions(t)
	o.CheckFrequency = 10 * time.Millisecond
	o.CAFile = write("ca", a.pem())
	o.CertFile, o.KeyFile = client("one")
	start := func(path string) *running {
		u, err := NewURL(s.URL+path, o)
		if err != nil {
			t.Fatal(err)
		}
		return run(t, u)
	}
	r := start("/x")
	r.untilPods("one")
	client("two")
	r.untilPods("two")
	if all, _ := r.batches(); strings.Contains(show(all[len(all)-1]), "PRIVATE") {
		t.Error("got a Problem that contains the private key, want none")
	}
	write("key", bytes.Repeat([]byte("no key "), 9))
	r.until("a problem of the key", func(b manifest.Batch) bool {
		return podsOf(b) == "two" && strings.Contains(problemsOf(b), "reading the client certificate")
	})
	if err := os.Remove(o.CAFile); err != nil {
		t.Fatal(err)
	}
	r.untilProblem("no such file or directory", "two")
	write("ca", []byte("no certificate"))
	r.untilProblem("it contains no certificate in PEM format", "two")
	r.stop()

	client("three")
	write("ca", newAuthority(t).pem())
	start("/x").untilProblem("certificate signed by unknown authority", "two")
	write("ca", a.pem())
	o.CacheDir = ""
	start("/plain").untilProblem("it leads from https to http")
}
