package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// authority signs the certificates of one cluster. Its key also signs the tokens of service
// accounts.
type authority struct {
	identity
	dir         string
	certificate *x509.Certificate
	private     *ecdsa.PrivateKey
}

// identity contains the paths of a certificate and its key.
type identity struct{ cert, key string }

// lifetime is the validity of certificates. It is short, but longer than any test takes.
const lifetime = 24 * time.Hour

func newAuthority(dir string) (*authority, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, private: private}
	if a.certificate, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	a.identity, err = a.write("ca", raw, private)
	return a, err
}

// issue issues a certificate for a user with groups or, if there are addresses, for a server.
func (a *authority) issue(user string, groups []string, addresses ...net.IP) (identity, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return identity{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: groups}, IPAddresses: addresses,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, private.Public(), a.private)
	if err != nil {
		return identity{}, err
	}
	return a.write(strings.ReplaceAll(user, ":", "-"), raw, private)
}

func (a *authority) write(name string, raw []byte, private *ecdsa.PrivateKey) (identity, error) {
	id := identity{filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return id, err
	}
	if err := os.WriteFile(id.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		return id, err
	}
	return id, os.WriteFile(id.key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}), 0o600)
}
