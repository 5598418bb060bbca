package credential

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
)

// A purpose is the use of a certificate of the node: as client or as server.
type purpose struct {
	name      string // name in certFiles
	signer    string
	usages    []certificates.KeyUsage
	isServing bool // the certificate is the serving certificate
}

var (
	clientPurpose = purpose{
		"kubelet-client", certificates.KubeAPIServerClientKubeletSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}, false,
	}
	servingPurpose = purpose{
		"kubelet-server", certificates.KubeletServingSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth}, true,
	}
)

// certSubject returns the subject of the node's certificates.
func (m *Manager) certSubject() pkix.Name {
	return pkix.Name{CommonName: "system:node:" + m.NodeName, Organization: []string{"system:nodes"}}
}

// certFiles returns the location of the certificate files for a purpose.
func (m *Manager) certFiles(p purpose) certFiles { return certFiles{m.CertDir, p.name} }

// obtainCertificate requests a certificate, waits until the certificate is issued, and stores it.
// If ctx is done first, the next call with an equal template continues the same request. If only
// the removal of the pending key fails, obtainCertificate returns the certificate together with the
// error.
func (m *Manager) obtainCertificate(ctx context.Context, c *apiserver.Client, p purpose, template *x509.CertificateRequest, report ReportFunc) (*tls.Certificate, error) {
	files := m.certFiles(p)
	key, err := files.pendingKey()
	if err != nil {
		return nil, FileError{fmt.Errorf("creating the key of a certificate signing request in %s: %w", m.CertDir, err)}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	request := newSigningRequest(p, template, der, key.Public())
	chain, err := waitUntilSigned(ctx, c, request, func(r *certificates.CertificateSigningRequest) {
		report(ctx, PendingError{r.Name, isApproved(r)})
	})
	var text []byte
	if err == nil {
		text, err = encodeKey(key)
	}
	if err == nil {
		if _, mismatch := tls.X509KeyPair(chain, text); mismatch != nil { // another client may have created a request with this name and another key
			err = RejectedError{request.Name, "returned no valid certificate for podd's key", mismatch.Error()}
		}
	}
	if rejected := (RejectedError{}); errors.As(err, &rejected) {
		// Remove the pending key, because another request with this key would be rejected, too.
		return nil, errors.Join(err, files.removePendingKey())
	}
	if err != nil {
		return nil, err
	}
	pair, err := files.store(chain, text)
	if err != nil {
		return nil, FileError{fmt.Errorf("storing the issued certificate in %s: %w", m.CertDir, err)}
	}
	return pair, files.removePendingKey()
}

// newSigningRequest returns the CertificateSigningRequest for a template. The name of the request
// contains a digest of the content, so that a repeated request has the same name.
func newSigningRequest(p purpose, template *x509.CertificateRequest, der []byte, key crypto.PublicKey) *certificates.CertificateSigningRequest {
	public, _ := x509.MarshalPKIXPublicKey(key) // cannot fail for a valid ECDSA key
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q", public, p.signer, p.usages,
		template.Subject.CommonName, template.Subject.Organization, template.DNSNames, template.IPAddresses))
	return &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-csr-%x", sum[:20])},
		Spec: certificates.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: p.signer, Usages: p.usages,
		},
	}
}

// pendingNoticeDelay is the delay after which a pending request is reported. Most clusters approve a
// request within this time.
const pendingNoticeDelay = 3 * time.Second

// waitUntilSigned creates the request unless it exists, waits until it is signed and returns the
// certificate chain in PEM. It calls onPending repeatedly while the request is pending.
func waitUntilSigned(ctx context.Context, c *apiserver.Client, request *certificates.CertificateSigningRequest, onPending func(*certificates.CertificateSigningRequest)) ([]byte, error) {
	var b backoff.Backoff
	r, err := getOrCreateCSR(ctx, c, request)
	for notice := time.Now().Add(pendingNoticeDelay); err == nil; {
		if len(r.Status.Certificate) > 0 {
			return r.Status.Certificate, nil
		}
		if err := checkRejected(r); err != nil {
			return nil, err
		}
		wait := time.Until(notice)
		if wait <= 0 {
			onPending(r)
			wait = 2 * apiserver.WatchTimeout
		}
		if err = waitUntilCSRChanged(ctx, c, r, wait); err != nil || !backoff.Sleep(ctx, b.Next()) {
			break
		}
		r, err = getOrCreateCSR(ctx, c, request)
	}
	return nil, errors.Join(err, ctx.Err())
}

// getOrCreateCSR returns the current version of a request. It creates the request if it does not
// exist, because clusters delete pending requests after a day.
func getOrCreateCSR(ctx context.Context, c *apiserver.Client, request *certificates.CertificateSigningRequest) (*certificates.CertificateSigningRequest, error) {
	r := &certificates.CertificateSigningRequest{}
	err := c.Do(ctx, c.SigningRequests.Get().Resource("certificatesigningrequests").Name(request.Name), r)
	if apierrors.IsNotFound(err) {
		r = &certificates.CertificateSigningRequest{}
		err = c.Do(ctx, c.SigningRequests.Post().Resource("certificatesigningrequests").Body(request), r)
	}
	return r, err
}

// waitUntilCSRChanged waits until a request may have changed, but not longer than d.
func waitUntilCSRChanged(ctx context.Context, c *apiserver.Client, r *certificates.CertificateSigningRequest, d time.Duration) error {
	watchCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := c.Watch(watchCtx, cancel, c.SigningRequests.Get().Resource("certificatesigningrequests").Param("fieldSelector", "metadata.name="+r.Name), r.ResourceVersion, apiserver.WatchTimeout)
	if err != nil {
		return err
	}
	defer w.Close()
	timer := time.AfterFunc(d, func() { cancel(nil) })
	defer timer.Stop()
	_, _, _ = w.Next() // the result is ignored, because the caller reads the request again in any case
	return ctx.Err()
}

// isApproved reports whether a request has the condition Approved.
func isApproved(r *certificates.CertificateSigningRequest) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == certificates.CertificateApproved {
			return true
		}
	}
	return false
}

// checkRejected returns an error if a request was denied or has failed.
func checkRejected(r *certificates.CertificateSigningRequest) error {
	for _, c := range r.Status.Conditions {
		switch {
		case c.Status == v1.ConditionFalse:
		case c.Type == certificates.CertificateDenied:
			return RejectedError{r.Name, "was denied", c.Message}
		case c.Type == certificates.CertificateFailed:
			return RejectedError{r.Name, "failed", c.Message}
		}
	}
	return nil
}
