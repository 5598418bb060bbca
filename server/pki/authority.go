// Package pki implements podd's own certificate authority. If no certificates are
// configured, it signs podd's serving certificate and client certificates for
// administrators.
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
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// FileName is the path below the root directory of the file with the authority's
// certificate and key, mode 0600. Replace revokes every credential that was issued;
// removing the file while podd is not running has the same effect.
const FileName = "pki/ca.pem"

// servingLifetime is the validity of a serving certificate. Certificates are
// backdated, because the clock may be behind while a host boots. The authority's
// own certificate is valid at any time.
const (
	servingLifetime = 90 * 24 * time.Hour
	backdate        = 24 * time.Hour
)

var (
	always  = time.Unix(0, 0)
	forever = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) // RFC 5280, 4.1.2.5: no well-defined expiration
)

// An Authority signs certificates. Its pool verifies those that it has signed since
// it was last replaced. It is safe for concurrent use.
type Authority struct {
	path string // path of its file; "": in memory only
	now  atomic.Pointer[issuer]
	// replacing is held while the file and now are replaced.
	replacing sync.Mutex
}

// issuer is the certificate and key that an authority signs with. It is immutable.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority's file below a root directory. If there is none, it
// creates a new authority and writes the file.
func Open(root string) (*Authority, error) {
	path := filepath.Join(root, FileName)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority: %w", err)
	}
	i, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority %s: %w; remove it to let podd create a new one, which revokes all issued credentials", path, err)
	}
	return authority(path, i), nil
}

func create(path string) (*Authority, error) {
	i, err := newIssuer("podd")
	if err != nil {
		return nil, err
	}
	if err := i.write(path); err != nil {
		return nil, err
	}
	return authority(path, i), nil
}

func authority(path string, i *issuer) *Authority {
	a := &Authority{path: path}
	a.now.Store(i)
	return a
}

// New returns an authority that is not stored in a file.
func New(name string) (*Authority, error) {
	i, err := newIssuer(name)
	if err != nil {
		return nil, err
	}
	return authority("", i), nil
}

// Replace gives the authority another certificate and key, so that nothing it signed
// before is trusted any more. issued reports whether a certificate was signed with the
// replaced key. The file is replaced first, so that the revocation outlives a restart.
// After an error the credentials are valid as before, but may not be after a restart.
func (a *Authority) Replace() (issued func(*x509.Certificate) bool, err error) {
	a.replacing.Lock()
	defer a.replacing.Unlock()
	i, err := newIssuer("podd")
	if err != nil {
		return nil, err
	}
	if a.path != "" {
		if err := i.write(a.path); err != nil {
			return nil, err
		}
	}
	old := a.now.Swap(i)
	return func(c *x509.Certificate) bool { return c.CheckSignatureFrom(old.cert) == nil }, nil
}

// write replaces the file of an authority.
func (i *issuer) write(path string) error {
	key, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return fmt.Errorf("encoding the key of podd's certificate authority: %w", err)
	}
	if err := atomicfile.Write(path, append(encodePEM("CERTIFICATE", i.cert.Raw), encodePEM("PRIVATE KEY", key)...)); err != nil {
		return fmt.Errorf("writing podd's certificate authority: %w", err)
	}
	return nil
}

func newIssuer(name string) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
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
	return &issuer{cert, key}, err
}

// PEM returns the authority's certificate, which clients use to verify podd.
func (a *Authority) PEM() []byte { return encodePEM("CERTIFICATE", a.now.Load().cert.Raw) }

// sign returns the DER encoding of a certificate for key that is signed by by. It
// sets the serial number and the validity of template.
func sign(template, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey, from, until time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, from, until
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return der, nil
}

func parse(text []byte) (*issuer, error) {
	cert, rest := pem.Decode(text)
	if cert == nil || cert.Type != "CERTIFICATE" {
		return nil, errors.New("the first PEM block is not a certificate")
	}
	key, _ := pem.Decode(rest)
	if key == nil || key.Type != "PRIVATE KEY" {
		return nil, errors.New("the second PEM block is not a private key")
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
		return nil, errors.New("the key does not match the certificate")
	}
	return &issuer{c, private}, nil
}

func encodePEM(kind string, der []byte) []byte {
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
		return nil, fmt.Errorf("%s is not a regular file of at most 64 KiB", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %04o, so other users may have read the key; remove it to let podd create a new one", path, info.Mode().Perm())
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return text, err
}
