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

// purpose is what a certificate is for.
type purpose struct {
	name   string // of its files
	signer string
	usages []certificates.KeyUsage
	of     part // as which users are told of its trouble
}

var (
	toAsk = purpose{
		"kubelet-client", certificates.KubeAPIServerClientKubeletSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}, ofIdentity,
	}
	toServe = purpose{
		"kubelet-server", certificates.KubeletServingSignerName,
		[]certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth}, ofServing,
	}
)

// subject is who podd is to every cluster.
func (o *Options) subject() pkix.Name {
	return pkix.Name{CommonName: "system:node:" + o.Node, Organization: []string{"system:nodes"}}
}

func (o *Options) pairs(p purpose) pairs { return pairs{o.CertDir, p.name} }

// obtain asks the cluster for a certificate, waits until somebody approves and signs
// it, and keeps it. What was asked for before ctx was done is waited for the next
// time, if wish is the same.
func (o *Options) obtain(ctx context.Context, c *client, p purpose, wish *x509.CertificateRequest, s *speaker) (*tls.Certificate, error) {
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
	chain, err := c.signed(ctx, request, func(r *certificates.CertificateSigningRequest) {
		s.report(ctx, p.of, waitingError{r.Name, approved(r)})
	})
	var text []byte
	if err == nil {
		text, err = pemOf(key)
	}
	if err == nil {
		if _, wrong := tls.X509KeyPair(chain, text); wrong != nil { // somebody else asks by that name, perhaps
			err = refusedError{request.Name, "spoilt", wrong.Error()}
		}
	}
	if refused := (refusedError{}); errors.As(err, &refused) {
		return nil, errors.Join(err, files.drop()) // the same would come again
	}
	if err != nil {
		return nil, err
	}
	pair, err := files.keep(chain, text)
	if err != nil {
		return nil, fileError{fmt.Errorf("keeping a certificate in %s: %w", o.CertDir, err)}
	}
	return pair, files.drop()
}

// requestOf is what the cluster is asked. Its name is that of all that matters in it,
// so that to ask again is to ask for the same.
func requestOf(p purpose, wish *x509.CertificateRequest, der []byte, key crypto.PublicKey) *certificates.CertificateSigningRequest {
	public, _ := x509.MarshalPKIXPublicKey(key) // of a key that was made here
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

// tellAfter is how long a request may wait before users are told: most clusters
// approve them by themselves, at once.
const tellAfter = 3 * time.Second

// signed makes a request, or finds it made, and returns the certificate when there is
// one; meanwhile tell is told of it.
func (c *client) signed(ctx context.Context, wish *certificates.CertificateSigningRequest, tell func(*certificates.CertificateSigningRequest)) ([]byte, error) {
	var b backoff
	r, err := c.requested(ctx, wish)
	for late := time.Now().Add(tellAfter); err == nil; {
		if len(r.Status.Certificate) > 0 {
			return r.Status.Certificate, nil
		}
		if err := refused(r); err != nil {
			return nil, err
		}
		wait := time.Until(late)
		if wait <= 0 {
			tell(r)
			wait = 2 * watchTime
		}
		if err = c.changed(ctx, r, wait); err != nil || !sleep(ctx, b.next()) {
			break
		}
		r, err = c.requested(ctx, wish)
	}
	return nil, errors.Join(err, ctx.Err())
}

// requested is the request that is wished as the cluster has it now. It is made where
// there is none: a cluster forgets those that wait for a day.
func (c *client) requested(ctx context.Context, wish *certificates.CertificateSigningRequest) (*certificates.CertificateSigningRequest, error) {
	r := &certificates.CertificateSigningRequest{}
	err := c.into(ctx, c.requests.Get().Resource("certificatesigningrequests").Name(wish.Name), r)
	if apierrors.IsNotFound(err) {
		r = &certificates.CertificateSigningRequest{}
		err = c.into(ctx, c.requests.Post().Resource("certificatesigningrequests").Body(wish), r)
	}
	return r, err
}

// changed returns when a request has changed, or might have, or after a while.
func (c *client) changed(ctx context.Context, r *certificates.CertificateSigningRequest, while time.Duration) error {
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w, err := c.watch(during, cancel, c.requests.Get().Resource("certificatesigningrequests").Param("fieldSelector", "metadata.name="+r.Name), r.ResourceVersion, watchTime)
	if err != nil {
		return err
	}
	defer w.close()
	over := time.AfterFunc(while, func() { cancel(nil) })
	defer over.Stop()
	_, _, _ = w.next() // whatever it says: the request is asked for again
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

// refused is an error when a request is, for good.
func refused(r *certificates.CertificateSigningRequest) error {
	for _, c := range r.Status.Conditions {
		if c.Status != v1.ConditionFalse && (c.Type == certificates.CertificateDenied || c.Type == certificates.CertificateFailed) {
			return refusedError{r.Name, strings.ToLower(string(c.Type)), c.Message}
		}
	}
	return nil
}
