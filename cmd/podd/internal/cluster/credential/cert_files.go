package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/atomicfile"
)

// certFiles identifies the files that contain the certificates for one purpose. The files have the
// kubelet's layout:
//
//	NAME-current.pem   a symlink to the newest NAME-DATE.pem
//	NAME-DATE.pem      a certificate, its chain and its key
//	NAME.key.tmp       the key of a pending request
//
// All files have mode 0600. The symlink always refers to a complete file, even after a power
// failure. podd does not remove earlier NAME-DATE.pem files or any other file in the directory.
type certFiles struct{ dir, name string }

// currentPath returns the path of the symlink to the newest certificate.
func (p certFiles) currentPath() string { return filepath.Join(p.dir, p.name+"-current.pem") }

// pendingKeyPath returns the path of the key of the pending request.
func (p certFiles) pendingKeyPath() string { return filepath.Join(p.dir, p.name+".key.tmp") }

// load returns the newest certificate, even if it has expired. It returns nil if no certificate
// is stored.
func (p certFiles) load() (*tls.Certificate, error) {
	text, err := os.ReadFile(p.currentPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored certificate of this node: %w", err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("parsing the stored certificate of this node in %s: %w", p.currentPath(), err)
	}
	return &pair, nil
}

// store stores a certificate chain and its key as the newest certificate, and returns the
// certificate. It returns an error if the certificate and the key do not match.
func (p certFiles) store(chain, key []byte) (*tls.Certificate, error) {
	text := append([]byte(nil), chain...)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = append(text, key...)
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	fileName := p.name + "-" + time.Now().Format("2006-01-02-15-04-05") + ".pem"
	if err := atomicfile.Write(filepath.Join(p.dir, fileName), text); err != nil {
		return nil, err
	}
	return &pair, p.updateSymlink(fileName)
}

// updateSymlink replaces the symlink to the newest certificate by a symlink to the file with the
// given name.
func (p certFiles) updateSymlink(name string) error {
	dir, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	tempName := p.name + "-updated.pem"
	if err := dir.Remove(tempName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Symlink(name, tempName); err != nil {
		return err
	}
	if err := dir.Rename(tempName, filepath.Base(p.currentPath())); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// pendingKey returns the stored key of the pending request, so that podd continues the request
// after a restart. If there is no valid key, pendingKey creates and stores a key.
func (p certFiles) pendingKey() (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(p.pendingKeyPath())
	if err == nil {
		if key, err := decodeKey(text); err == nil {
			return key, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if text, err = encodeKey(key); err != nil {
		return nil, err
	}
	return key, atomicfile.Write(p.pendingKeyPath(), text)
}

// removePendingKey removes the key of the pending request, so that the next request has a new
// key.
func (p certFiles) removePendingKey() error {
	if err := os.Remove(p.pendingKeyPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// decodeKey parses a key in PEM.
func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the file contains no PEM block")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// encodeKey returns a key in PEM.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
