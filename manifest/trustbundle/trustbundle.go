// Package trustbundle reads the certificates of ClusterTrustBundles (KEP-3257).
package trustbundle

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
)

// MaxSize is the maximum size of a bundle in bytes, as in the API server.
const MaxSize = 1 << 20

// certificateType is the type of the PEM blocks in a bundle.
const certificateType = "CERTIFICATE"

// Normalize returns the certificates in texts as PEM. It removes duplicates, the headers of PEM
// blocks, text outside of blocks, and blocks of other types. It keeps the order of the certificates,
// so the result for the same texts is always the same. Unlike Normalize, the kubelet shuffles the
// certificates whenever it starts, so that programs do not depend on the order.
func Normalize(texts ...string) []byte {
	pemText, isIncluded := []byte{}, map[string]bool{}
	for _, text := range texts {
		for block := range blocks(text) {
			if block.Type != certificateType || isIncluded[string(block.Bytes)] {
				continue
			}
			isIncluded[string(block.Bytes)] = true
			pemText = append(pemText, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: block.Bytes})...)
		}
	}
	return pemText
}

// blocks returns the PEM blocks in text.
func blocks(text string) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for remaining := []byte(text); ; {
			var block *pem.Block
			if block, remaining = pem.Decode(remaining); block == nil || !yield(block) {
				return
			}
		}
	}
}

// Check returns an error if an API server would reject text as the certificates of a bundle: text
// must contain at least one certificate, and each PEM block must be the certificate of a different
// CA, without headers. The error does not contain the certificates.
func Check(text string) error {
	if len(text) > MaxSize {
		return fmt.Errorf("is too large: %d bytes (limit %d)", len(text), MaxSize)
	}
	blockCount, firstNumbers := 0, map[string]int{}
	for block := range blocks(text) {
		blockCount++
		if fault := findFault(block); fault != "" {
			return fmt.Errorf("PEM block %d %s", blockCount, fault)
		}
		if earlierNumber, isDuplicate := firstNumbers[string(block.Bytes)]; isDuplicate {
			return fmt.Errorf("PEM block %d is the same certificate as PEM block %d; remove one of the blocks", blockCount, earlierNumber)
		}
		firstNumbers[string(block.Bytes)] = blockCount
	}
	if blockCount == 0 {
		return fmt.Errorf("contains no PEM block of type %s", certificateType)
	}
	return nil
}

// findFault returns the reason why a PEM block is not the certificate of a CA, or "".
func findFault(block *pem.Block) string {
	switch {
	case block.Type != certificateType:
		return fmt.Sprintf("has the type %.40q; remove all blocks except those of type %s", block.Type, certificateType)
	case len(block.Headers) > 0:
		return "has headers; remove the headers"
	}
	switch c, err := x509.ParseCertificate(block.Bytes); {
	case err != nil:
		return "is not an X.509 certificate"
	case !c.IsCA || !c.BasicConstraintsValid:
		return "is not the certificate of a CA according to its basic constraints; remove this block"
	}
	return ""
}
