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

// FileName is the path of the authority's file, relative to podd's root directory. The file
// contains the certificate and the private key and has mode 0600. If the file is removed
// while podd is not running, all issued credentials are revoked, as by Replace.
const FileName = "pki/ca.pem"

// servingLifetime is the validity of a serving certificate. backdate is how long before its
// creation a certificate begins to be valid. It is necessary because the clock may be behind while
// the host boots. The authority's own certificate is valid between validFrom and validUntil.
const (
	servingLifetime = 90 * 24 * time.Hour
	backdate        = 24 * time.Hour
)

var (
	validFrom  = time.Unix(0, 0)
	validUntil = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) // means "no expiration date"; RFC 5280, section 4.1.2.5
)

// An Authority signs certificates. Replace revokes all certificates that it has signed. An
// Authority is safe for concurrent use.
type Authority struct {
	path          string // path of the file
	currentIssuer atomic.Pointer[issuer]
	// replaceMu is locked during Replace.
	replaceMu sync.Mutex
}

// An issuer is the certificate and private key with which an authority signs. It is
// immutable.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Open reads the authority's file below podd's root directory. If the file does not exist,
// Open creates an authority and writes the file.
func Open(root string) (*Authority, error) {
	path := filepath.Join(root, FileName)
	text, err := readAuthorityFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority: %w", err)
	}
	i, err := parseIssuer(text)
	if err != nil {
		return nil, fmt.Errorf("reading podd's certificate authority %s: %w; remove this file to let podd create a new authority, which revokes all issued credentials", path, err)
	}
	return newAuthority(path, i), nil
}

// createAuthority returns a new authority and writes its file.
func createAuthority(path string) (*Authority, error) {
	i, err := newIssuer()
	if err != nil {
		return nil, err
	}
	if err := i.write(path); err != nil {
		return nil, err
	}
	return newAuthority(path, i), nil
}

// newAuthority returns an authority that signs with i. path is the path of its file.
func newAuthority(path string, i *issuer) *Authority {
	a := &Authority{path: path}
	a.currentIssuer.Store(i)
	return a
}

// Replace creates a new certificate and key for the authority, so that all certificates that it
// signed before are no longer trusted. wasIssued reports whether a certificate was signed with the
// replaced key. Replace writes the file first, so that the revocation survives a restart. If
// Replace returns an error, the earlier certificates are still trusted until podd is restarted, and
// possibly after that.
func (a *Authority) Replace() (wasIssued func(*x509.Certificate) bool, err error) {
	a.replaceMu.Lock()
	defer a.replaceMu.Unlock()
	i, err := newIssuer()
	if err != nil {
		return nil, err
	}
	if err := i.write(a.path); err != nil {
		return nil, err
	}
	oldIssuer := a.currentIssuer.Swap(i)
	return func(c *x509.Certificate) bool { return c.CheckSignatureFrom(oldIssuer.cert) == nil }, nil
}

// write replaces the file at path with the certificate and key of i.
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

func newIssuer() (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: fmt.Sprintf("podd-%d", time.Now().Unix())},
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := sign(template, template, &key.PublicKey, key, validFrom, validUntil)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &issuer{cert, key}, err
}

// PEM returns the authority's certificate. Clients use it to verify podd's serving
// certificate.
func (a *Authority) PEM() []byte { return encodePEM("CERTIFICATE", a.currentIssuer.Load().cert.Raw) }

// sign returns a certificate for key in DER. It is signed with the certificate parent and
// its key parentKey. sign sets the serial number and the validity in template.
func sign(template, parent *x509.Certificate, key *ecdsa.PublicKey, parentKey *ecdsa.PrivateKey, from, until time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, from, until
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, parentKey)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return der, nil
}

// parseIssuer parses the content of an authority's file.
func parseIssuer(text []byte) (*issuer, error) {
	cert, keyText := pem.Decode(text)
	if cert == nil || cert.Type != "CERTIFICATE" {
		return nil, errors.New("the first PEM block is not a certificate")
	}
	key, _ := pem.Decode(keyText)
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

// readAuthorityFile returns the content of an authority's file. It returns an error if the file is
// not regular or if other users can read it.
func readAuthorityFile(path string) ([]byte, error) {
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
		return nil, fmt.Errorf("%s has mode %04o, so other users may have read the key; remove this file to let podd create a new authority", path, info.Mode().Perm())
	}
	text := make([]byte, info.Size())
	_, err = f.ReadAt(text, 0)
	return text, err
}
