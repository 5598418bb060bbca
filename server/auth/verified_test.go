package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"
)

// signer is a certificate with its private key.
type signer struct {
	*x509.Certificate
	key crypto.Signer
}

// sign returns a certificate that the parameter by signs, or a self-signed certificate if by is
// nil. The parameters from and until limit its validity.
func sign(t testing.TB, by *signer, ca bool, from, until time.Time) *signer {
	t.Helper()
	return signName(t, by, pkix.Name{CommonName: "bob", Organization: []string{"dev"}}, ca, from, until)
}

// signName is like sign, but returns a certificate with the given subject unless it is a CA.
func signName(t testing.TB, by *signer, subject pkix.Name, ca bool, from, until time.Time) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: from, NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: ca, BasicConstraintsValid: true,
	}
	if ca {
		c.Subject = pkix.Name{CommonName: "ca"}
		c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageCertSign, nil
	}
	if by == nil {
		by = &signer{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.Certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &signer{c, key}
}

func newPool(all ...*signer) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, s := range all {
		pool.AddCert(s.Certificate)
	}
	return pool
}

// TestAuthenticator_Verify checks that a cached verification applies only to the same authorities
// and only while all certificates of the chain are valid.
func TestAuthenticator_Verify(t *testing.T) {
	now := time.Now()
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	long, short := sign(t, nil, true, hour(-9), hour(9)), sign(t, nil, true, hour(-1), hour(1))
	first, other := newPool(long, short), newPool(sign(t, nil, true, hour(-9), hour(9)))
	leaf, soon := sign(t, long, false, hour(-3), hour(3)), sign(t, short, false, hour(-3), hour(3))
	between := sign(t, long, true, hour(-9), hour(9))
	below := sign(t, between, false, hour(-3), hour(3))
	a := &Authenticator{}
	for _, c := range []struct {
		name  string
		chain []*x509.Certificate
		by    *x509.CertPool
		at    time.Time
		want  bool
	}{
		{"not cached", []*x509.Certificate{leaf.Certificate}, first, now, true},
		{"cached", []*x509.Certificate{leaf.Certificate}, first, hour(2), true},
		{"other authorities", []*x509.Certificate{leaf.Certificate}, other, now, false},
		{"no authorities", []*x509.Certificate{leaf.Certificate}, newPool(), now, false},
		{"the first authorities again", []*x509.Certificate{leaf.Certificate}, first, now, true},
		{"expired", []*x509.Certificate{leaf.Certificate}, first, hour(4), false},
		{"not yet valid", []*x509.Certificate{leaf.Certificate}, first, hour(-4), false},
		{"an authority that expires soon", []*x509.Certificate{soon.Certificate}, first, now, true},
		{"an expired authority", []*x509.Certificate{soon.Certificate}, first, hour(2), false},
		{"an authority that is not yet valid", []*x509.Certificate{soon.Certificate}, first, hour(-2), false},
		{"with an intermediate authority", []*x509.Certificate{below.Certificate, between.Certificate}, first, now, true},
		{"without the intermediate", []*x509.Certificate{below.Certificate}, first, now, false},
		{"self-signed", []*x509.Certificate{sign(t, nil, false, hour(-1), hour(1)).Certificate}, first, now, false},
	} {
		if got := a.verify(c.chain, c.by, c.at); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !a.verifications.contains(leaf.Certificate, first, now) || a.verifications.contains(below.Certificate, first, now) || len(a.verifications.entries) != 2 {
		t.Errorf("got %d cached certificates, want 2", len(a.verifications.entries))
	}
	for range 2 * maxVerifications {
		a.verifications.add([]*x509.Certificate{{}, long.Certificate}, first)
	}
	if n := len(a.verifications.entries); n > maxVerifications {
		t.Errorf("got %d cached certificates, want at most %d", n, maxVerifications)
	}
}

func BenchmarkCertificate(b *testing.B) {
	ca := sign(b, nil, true, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	leaf, pool := sign(b, ca, false, ca.NotBefore, ca.NotAfter), newPool(ca)
	a := &Authenticator{CAs: func() *x509.CertPool { return pool }}
	for b.Loop() {
		if _, ok := a.certificateUser([]*x509.Certificate{leaf.Certificate}); !ok {
			b.Fatal("certificateUser of a valid certificate: got false, want true")
		}
	}
}
