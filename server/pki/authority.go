// Package pki is podd's own certificate authority. Where no certificates are
// configured it vouches for podd to its clients and for root's clients to podd.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"podd/manifest/durable"
)

// FileName is the file below the root directory that holds the authority's
// certificate and key, mode 0600. Who removes it and starts podd again takes
// back every credential that was given out.
const FileName = "pki/ca.pem"

// Lives of what is made. A clock may be behind when a machine boots: what the
// authority makes is good from a day ago on, and itself at any time.
const (
	servingLife = 90 * 24 * time.Hour
	early       = 24 * time.Hour
)

var (
	always  = time.Unix(0, 0)
	forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) // RFC 5280, 4.1.2.5
)

// Authority signs certificates. Safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority below a root directory, or makes it.
func Open(root string) (*Authority, error) {
	path := filepath.Join(root, FileName)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority: %w", err)
	}
	a, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority %s: %w; remove it and podd makes another, credentials given out before then end", path, err)
	}
	return a, nil
}

func create(path string) (*Authority, error) {
	a, err := New("podd")
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key of podd's certificate authority: %w", err)
	}
	if err := durable.Write(path, append(a.PEM(), pemOf("PRIVATE KEY", key)...)); err != nil {
		return nil, fmt.Errorf("keeping podd's certificate authority: %w", err)
	}
	return a, nil
}

// New makes an authority that nothing keeps.
func New(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s-%d", name, time.Now().Unix())},
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := sign(template, template, &key.PublicKey, key, always, forever)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert, key}, err
}

// PEM is the certificate that clients trust.
func (a *Authority) PEM() []byte { return pemOf("CERTIFICATE", a.cert.Raw) }

// Trust are the roots by which the authority's own certificates are known and
// those that the CA certificates in text vouch for, which may be empty.
func (a *Authority) Trust(text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	if len(text) > 0 && !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("it has no certificate in PEM")
	}
	return pool, nil
}

// sign makes a certificate from template.
func sign(template, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey, from, until time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, from, until
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return der, nil
}

func parse(text []byte) (*Authority, error) {
	cert, rest := pem.Decode(text)
	if cert == nil || cert.Type != "CERTIFICATE" {
		return nil, errors.New("it does not begin with a certificate")
	}
	key, _ := pem.Decode(rest)
	if key == nil || key.Type != "PRIVATE KEY" {
		return nil, errors.New("it has no private key")
	}
	c, err := x509.ParseCertificate(cert.Bytes)
	if err != nil {
		return nil, err
	}
	k, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := k.(*ecdsa.PrivateKey)
	if !ok || !private.PublicKey.Equal(c.PublicKey) {
		return nil, errors.New("its key is not that of its certificate")
	}
	return &Authority{c, private}, nil
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > 64<<10:
		return nil, fmt.Errorf("%s is no file of podd's", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others, mode %04o: whoever read it has podd's key; remove it and podd makes another", path, info.Mode().Perm())
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return text, err
}
