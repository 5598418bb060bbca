package cluster

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

	"podd/manifest/durable"
)

// pairs are the files of the certificates of one name and their keys, below the
// certificate directory, as the kubelet has them:
//
//	NAME-current.pem   a link to the newest of
//	NAME-DATE.pem      each a certificate, those that vouch for it, and its key
//	NAME.key.tmp       the key that a certificate is asked for
//
// Everything is 0600, and at any moment, of a power cut too, the link is to a whole
// pair. Others that other agents made are left.
type pairs struct{ dir, name string }

func (p pairs) current() string { return filepath.Join(p.dir, p.name+"-current.pem") }
func (p pairs) pending() string { return filepath.Join(p.dir, p.name+".key.tmp") }

// load is the newest pair; nil where there is none.
func (p pairs) load() (*tls.Certificate, error) {
	text, err := os.ReadFile(p.current())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s: %w", p.current(), err)
	}
	return &pair, nil
}

// keep has a certificate, perhaps with others that vouch for it, and its key be the
// newest pair. It is one, or an error.
func (p pairs) keep(chain, key []byte) (*tls.Certificate, error) {
	text := append([]byte(nil), chain...)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = append(text, key...)
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	dated := p.name + "-" + time.Now().Format("2006-01-02-15-04-05") + ".pem"
	if err := durable.Write(filepath.Join(p.dir, dated), text); err != nil {
		return nil, err
	}
	return &pair, p.link(dated)
}

// link makes a file of the directory the current one.
func (p pairs) link(name string) error {
	dir, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	next := p.name + "-updated.pem"
	if err := dir.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := dir.Symlink(name, next); err != nil {
		return err
	}
	if err := dir.Rename(next, filepath.Base(p.current())); err != nil {
		return err
	}
	return durable.Sync(dir)
}

// key is the one that a certificate is asked for, made where there is none: who is
// started again goes on with what was asked for.
func (p pairs) key() (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(p.pending())
	if err == nil {
		if key, err := parseKey(text); err == nil {
			return key, nil
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if text, err = pemOf(key); err != nil {
		return nil, err
	}
	return key, durable.Write(p.pending(), text)
}

// drop has the next be asked for with another key.
func (p pairs) drop() error {
	if err := os.Remove(p.pending()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it has no key in PEM")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func pemOf(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
