// Package podcert creates the private keys of pod certificates (KEP-4317), and evaluates the status
// of PodCertificateRequests.
package podcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// A Key is the private key of a pod.
type Key struct {
	pem []byte
	// Request is an empty certificate signing request in DER. Its signature proves that the
	// requester has the private key.
	Request []byte
}

// generators contains a function that generates a key for each key type of a PodCertificateProjection.
var generators = map[string]func() (crypto.Signer, error){
	"RSA3072":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 3072) },
	"RSA4096":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
	"ECDSAP256": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	"ECDSAP384": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
	"ECDSAP521": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
	"ED25519": func() (crypto.Signer, error) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	},
}

// NewKey generates a key of a type such as "ED25519".
func NewKey(keyType string) (*Key, error) {
	generate := generators[keyType]
	if generate == nil {
		return nil, fmt.Errorf("key type %.40q is not supported; set keyType to RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519", keyType)
	}
	private, err := generate()
	if err != nil {
		return nil, fmt.Errorf("generating a key of type %s: %w", keyType, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encoding a key of type %s: %w", keyType, err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate signing request with a key of type %s: %w", keyType, err)
	}
	return &Key{pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), request}, nil
}

// PEM returns the private key in PKCS #8 as PEM. The text is secret.
func (k *Key) PEM() []byte { return k.pem }

// Format implements fmt.Formatter. It writes no part of the private key.
func (k Key) Format(s fmt.State, _ rune) { fmt.Fprint(s, "private key (not shown)") }
