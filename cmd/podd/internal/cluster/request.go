package cluster

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
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A purpose is a use of certificates.
type purpose struct {
	name   string //
	signer string
	usages []certificates.KeyUsage
	of     part // the part that has the problem
}

var (
	clientPurpose = purpose{
		"kubelet-client", certificates.KubeAPIServerClientKubeletSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}, ofIdentity,
	}
	servingPurpose = purpose{
		"kubelet-server", certificates.KubeletServingSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth}, ofServing,
	}
)

// subject returns the subject of the node's certificates.
func (o *Options) subject() pkix.Name {
	return pkix.Name{CommonName: "system:node:" + o.Node, Organization: []string{"system:nodes"}}
}

func (o *Options) pairs(p purpose) certFiles { return certFiles{o.CertDir, p.name} }

// obtain requests a certificate, waits until it is approved and signed, and stores it. If
// ctx is done before that, the next call with the same template continues the request.
func (o *Options) obtain(ctx context.Context, c *client, p purpose, wish *x509.CertificateRequest, s *problemReporter) (*tls.Certificate, error) {
	files := o.pairs(p)
	key, err := files.key()
	if err != nil {
		return nil, fileError{fmt.Errorf("making a key in %s: %w", o.CertDir, err)}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, wish, key)
	if err != nil {
		return nil, err
	}
	request := requestOf(p, wish, der, key.Public())
	chain, err := c.waitSigned(ctx, request, func(r *certificates.CertificateSigningRequest) {
		s.report(ctx, p.of, waitingError{r.Name, approved(r)})
	})
	var text []byte
	if err == nil {
		text, err = pemOf(key)
	}
	if err == nil {
		if _, wrong := tls.X509KeyPair(chain, text); wrong != nil { // another client may have created it
			err = refusedError{request.Name, "spoilt", wrong.Error()}
		}
	}
	if refused := (refusedError{}); errors.As(err, &refused) {
		return nil, errors.Join(err, files.removeKey()) // the same request would be rejected again
	}
	if err != nil {
		return nil, err
	}
	pair, err := files.store(chain, text)
	if err != nil {
		return nil, fileError{fmt.Errorf("keeping a certificate in %s: %w", o.CertDir, err)}
	}
	return pair, files.removeKey()
}

// requestOf returns a request. Its name is a digest of its content, so that a repeated
// request has the same name.
func requestOf(p purpose, wish *x509.CertificateRequest, der []byte, key crypto.PublicKey) *certificates.CertificateSigningRequest {
	public, _ := x509.MarshalPKIXPublicKey(key) // cannot fail for a key that was created here
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q", public, p.signer, p.usages,
		wish.Subject.CommonName, wish.Subject.Organization, wish.DNSNames, wish.IPAddresses))
	return &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-csr-%x", sum[:20])},
		Spec: certificates.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: p.signer, Usages: p.usages,
		},
	}
}

// pendingNotice is the delay after which users are told of a pending request, because
// most clusters approve it at once.
const pendingNotice = 3 * time.Second

// waitSigned creates or finds a request and waits for its certificate. It calls tell
// while the request is pending.
func (c *client) waitSigned(ctx context.Context, wish *certificates.CertificateSigningRequest, tell func(*certificates.CertificateSigningRequest)) ([]byte, error) {
	var b backoff
	r, err := c.getOrCreate(ctx, wish)
	for late := time.Now().Add(pendingNotice); err == nil; {
		if len(r.Status.Certificate) > 0 {
			return r.Status.Certificate, nil
		}
		if err := rejection(r); err != nil {
			return nil, err
		}
		wait := time.Until(late)
		if wait <= 0 {
			tell(r)
			wait = 2 * watchTime
		}
		if err = c.waitChanged(ctx, r, wait); err != nil || !sleep(ctx, b.next()) {
			break
		}
		r, err = c.getOrCreate(ctx, wish)
	}
	return nil, errors.Join(err, ctx.Err())
}

// getOrCreate returns the current request. It creates it if it does not exist: a cluster
// deletes pending requests after a day.
func (c *client) getOrCreate(ctx context.Context, wish *certificates.CertificateSigningRequest) (*certificates.CertificateSigningRequest, error) {
	r := &certificates.CertificateSigningRequest{}
	err := c.do(ctx, c.requests.Get().Resource("certificatesigningrequests").Name(wish.Name), r)
	if apierrors.IsNotFound(err) {
		r = &certificates.CertificateSigningRequest{}
		err = c.do(ctx, c.requests.Post().Resource("certificatesigningrequests").Body(wish), r)
	}
	return r, err
}

// waitChanged returns when a request may have changed, or after while.
func (c *client) waitChanged(ctx context.Context, r *certificates.CertificateSigningRequest, while time.Duration) error {
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := c.watch(during, cancel, c.requests.Get().Resource("certificatesigningrequests").Param("fieldSelector", "metadata.name="+r.Name), r.ResourceVersion, watchTime)
	if err != nil {
		return err
	}
	defer w.close()
	over := time.AfterFunc(while, func() { cancel(nil) })
	defer over.Stop()
	_, _, _ = w.next() // the request is read again in any case
	return ctx.Err()
}

func approved(r *certificates.CertificateSigningRequest) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == certificates.CertificateApproved {
			return true
		}
	}
	return false
}

// rejection returns an error if a request was denied or has failed.
func rejection(r *certificates.CertificateSigningRequest) error {
	for _, c := range r.Status.Conditions {
		if c.Status != v1.ConditionFalse && (c.Type == certificates.CertificateDenied || c.Type == certificates.CertificateFailed) {
			return refusedError{r.Name, strings.ToLower(string(c.Type)), c.Message}
		}
	}
	return nil
}
