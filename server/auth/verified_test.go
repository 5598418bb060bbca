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

// signer is a certificate with its key.
type signer struct {
	*x509.Certificate
	key crypto.Signer
}

// sign makes a certificate that is good from from to until, of its own for by nil.
func sign(t testing.TB, by *signer, ca bool, from, until time.Time) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bob", Organization: []string{"dev"}}, NotBefore: from, NotAfter: until,
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

func poolOf(all ...*signer) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, s := range all {
		pool.AddCert(s.Certificate)
	}
	return pool
}

// TestVerifiedOnce: what was vouched for once is so only by the same authorities,
// while all certificates up to theirs are in their time.
func TestVerifiedOnce(t *testing.T) {
	now := time.Now()
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	long, short := sign(t, nil, true, hour(-9), hour(9)), sign(t, nil, true, hour(-1), hour(1))
	first, other := poolOf(long, short), poolOf(sign(t, nil, true, hour(-9), hour(9)))
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
		{"at first", []*x509.Certificate{leaf.Certificate}, first, now, true},
		{"again", []*x509.Certificate{leaf.Certificate}, first, hour(2), true},
		{"other authorities", []*x509.Certificate{leaf.Certificate}, other, now, false},
		{"none", []*x509.Certificate{leaf.Certificate}, poolOf(), now, false},
		{"the first again", []*x509.Certificate{leaf.Certificate}, first, now, true},
		{"expired", []*x509.Certificate{leaf.Certificate}, first, hour(4), false},
		{"not yet good", []*x509.Certificate{leaf.Certificate}, first, hour(-4), false},
		{"of an authority that ends soon", []*x509.Certificate{soon.Certificate}, first, now, true},
		{"its end", []*x509.Certificate{soon.Certificate}, first, hour(2), false},
		{"before its beginning", []*x509.Certificate{soon.Certificate}, first, hour(-2), false},
		{"with an authority between", []*x509.Certificate{below.Certificate, between.Certificate}, first, now, true},
		{"without it", []*x509.Certificate{below.Certificate}, first, now, false},
		{"signed by itself", []*x509.Certificate{sign(t, nil, false, hour(-1), hour(1)).Certificate}, first, now, false},
	} {
		if got := a.vouch(c.chain, c.by, c.at); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if !a.verified.knows(leaf.Certificate, first, now) || a.verified.knows(below.Certificate, first, now) || len(a.verified.of) != 2 {
		t.Errorf("%d are remembered", len(a.verified.of))
	}
	for range 2 * mostVerified {
		a.verified.learn([]*x509.Certificate{{}, long.Certificate}, first)
	}
	if n := len(a.verified.of); n > mostVerified {
		t.Errorf("%d are remembered", n)
	}
}

func BenchmarkCertificate(b *testing.B) {
	ca := sign(b, nil, true, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	leaf, pool := sign(b, ca, false, ca.NotBefore, ca.NotAfter), poolOf(ca)
	a := &Authenticator{CAs: func() *x509.CertPool { return pool }}
	for b.Loop() {
		if _, ok := a.ofCertificate([]*x509.Certificate{leaf.Certificate}); !ok {
			b.Fatal("refused")
		}
	}
}
