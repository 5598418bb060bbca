package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest/order"
	"podd/server"
)

// A certRenewer requests a certificate and renews it. When the names in the template change, it
// requests another certificate.
type certRenewer struct {
	o        *Options
	c        *apiserver.Client
	problems *problemReporter
	purpose  certPurpose
	identity *identity
	// template returns a template of the certificate to request, or nil if the names in the
	// certificate are not available yet.
	template  func() *x509.CertificateRequest
	onRenewed func() // called after each new certificate
}

// The wait after a rejected request or an unusable certificate doubles from firstRejectionWait to
// maxRejectionWait.
const (
	firstRejectionWait = 10 * time.Second
	maxRejectionWait   = 15 * time.Minute
)

// run renews the certificate until ctx is done.
func (r *certRenewer) run(ctx context.Context) {
	var b backoff.Backoff
	rejectedWait := firstRejectionWait
	for ctx.Err() == nil {
		template := r.template()
		if template == nil {
			backoff.Sleep(ctx, b.Next())
			continue
		}
		if wait := r.timeUntilRequest(template, time.Now()); wait > 0 {
			b = backoff.Backoff{}
			backoff.Sleep(ctx, min(wait, checkInterval)) // the sleep is short, because timers do not advance while the host is suspended
			continue
		}
		pair, err := r.request(ctx, template)
		if pair == nil && errors.Is(err, context.Canceled) {
			continue // the names in the template have changed
		}
		if err == nil && time.Now().After(pair.Leaf.NotAfter) {
			r.problems.report(ctx, r.purpose.part, clockError{pair.Leaf.NotAfter})
		} else {
			r.problems.report(ctx, r.purpose.part, err)
		}
		switch rejected := (csrRejectedError{}); {
		case err == nil && r.timeUntilRequest(template, time.Now()) > 0:
			b, rejectedWait = backoff.Backoff{}, firstRejectionWait
		case err == nil: // the issued certificate lacks requested names, or has expired according to the clock of this host
			lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
			r.pause(ctx, template, min(rejectedWait, max(checkInterval, lifetime/2)))
			rejectedWait = min(2*rejectedWait, maxRejectionWait)
		case errors.As(err, &rejected):
			r.pause(ctx, template, rejectedWait)
			rejectedWait = min(2*rejectedWait, maxRejectionWait)
		default:
			backoff.Sleep(ctx, b.Next())
		}
	}
}

// pause waits for d. It returns earlier if the names in the template change, if no new certificate
// is needed, or if ctx is done.
func (r *certRenewer) pause(ctx context.Context, template *x509.CertificateRequest, d time.Duration) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(template, r.template()) && r.timeUntilRequest(template, time.Now()) <= 0 })
	defer stop()
	backoff.Sleep(ctx, d)
}

// timeUntilRequest returns the time until a certificate must be requested. 0 or a negative time
// means now.
func (r *certRenewer) timeUntilRequest(template *x509.CertificateRequest, now time.Time) time.Duration {
	pair := r.identity.current.Load()
	if pair == nil || r.identity.isExternal.Load() || !coversNames(pair.Leaf, template) {
		return 0
	}
	return renewalTime(pair.Leaf).Sub(now)
}

// request requests a certificate and waits until it is issued. If the names in the template change
// first, request returns context.Canceled. It may return a certificate together with an error of
// the file system.
func (r *certRenewer) request(ctx context.Context, template *x509.CertificateRequest) (*tls.Certificate, error) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(template, r.template()) })
	defer stop()
	var previousNotBefore time.Time
	if before := r.identity.current.Load(); before != nil {
		previousNotBefore = before.Leaf.NotBefore
	}
	pair, err := r.o.obtainCertificate(ctx, r.c, r.purpose, template, r.problems)
	if r.o.OnRenewal != nil && (pair != nil || ctx.Err() == nil) { // without a certificate, the end of ctx means that the request was cancelled
		r.o.OnRenewal(r.purpose.part == partServing, previousNotBefore, err)
	}
	if pair == nil {
		return nil, err
	}
	r.identity.current.Store(pair)
	r.identity.isExternal.Store(false)
	r.onRenewed()
	r.o.Log.Info("certificate issued", "file", r.o.certFiles(r.purpose).currentPath(), "expires", pair.Leaf.NotAfter)
	return pair, err
}

// cancelUnless returns a context that is cancelled when isValid returns false. A goroutine calls
// isValid every checkInterval. The caller must call stop, which stops the goroutine and waits for
// it.
func cancelUnless(ctx context.Context, isValid func() bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var checks sync.WaitGroup
	checks.Go(func() {
		for backoff.Sleep(ctx, checkInterval) {
			if !isValid() {
				cancel()
			}
		}
	})
	return ctx, func() { cancel(); checks.Wait() }
}

// clientTemplate returns the template of the client certificate.
func (o *Options) clientTemplate() *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: o.certSubject()}
}

// servingTemplate returns a function that returns the template of the serving certificate. The
// template contains the addresses of the Node. The function returns nil if the Node has no usable
// addresses yet.
func (c *Cluster) servingTemplate(state server.Viewer, nodes *watchable.Value[apiserver.Snapshot[*v1.Node]]) func() *x509.CertificateRequest {
	return func() *x509.CertificateRequest {
		localNode := state.View().NodeObject
		if localNode == nil {
			return nil
		}
		var stored []v1.NodeAddress
		snap, _ := nodes.Get()
		if n := snap.Items[types.NamespacedName{Name: c.o.NodeName}]; n != nil {
			stored = n.Status.Addresses
		}
		template := &x509.CertificateRequest{Subject: c.o.certSubject()}
		for _, a := range c.o.nodeAddresses(stored, localNode.Status.Addresses) {
			if ip := net.ParseIP(a.Address); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else if a.Address != "" && a.Type != v1.NodeInternalIP && a.Type != v1.NodeExternalIP {
				template.DNSNames = append(template.DNSNames, a.Address)
			}
		}
		if len(template.DNSNames)+len(template.IPAddresses) == 0 {
			return nil // signers reject a certificate without names
		}
		slices.Sort(template.DNSNames)
		template.DNSNames = slices.Compact(template.DNSNames)
		order.Slice(template.IPAddresses, func(a, b net.IP) int { return slices.Compare(a, b) })
		template.IPAddresses = slices.CompactFunc(template.IPAddresses, net.IP.Equal)
		return template
	}
}

// coversNames reports whether a certificate contains all names in a template.
func coversNames(leaf *x509.Certificate, template *x509.CertificateRequest) bool {
	return leaf.Subject.CommonName == template.Subject.CommonName &&
		containsAll(template.Subject.Organization, leaf.Subject.Organization, func(a, b string) bool { return a == b }) &&
		containsAll(template.DNSNames, leaf.DNSNames, func(a, b string) bool { return a == b }) &&
		containsAll(template.IPAddresses, leaf.IPAddresses, net.IP.Equal)
}

// containsAll reports whether list contains all elements.
func containsAll[T any](elements, list []T, equal func(T, T) bool) bool {
	for _, s := range elements {
		if !slices.ContainsFunc(list, func(a T) bool { return equal(s, a) }) {
			return false
		}
	}
	return true
}

// sameNames reports whether two templates contain equal DNS names and IP addresses. It returns
// false if a template is nil.
func sameNames(a, b *x509.CertificateRequest) bool {
	return a != nil && b != nil && slices.Equal(a.DNSNames, b.DNSNames) && slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)
}
