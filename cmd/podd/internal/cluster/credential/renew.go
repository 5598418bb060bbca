package credential

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

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/manifest/order"
)

// A Renewer requests a certificate and renews it. When the names in the template change, it
// requests another certificate.
type Renewer struct {
	manager  *Manager
	c        *apiserver.Client
	report   ReportFunc
	purpose  purpose
	identity *Identity
	// template returns a template of the certificate to request, or nil if the names in the
	// certificate are not available yet.
	template  func() *x509.CertificateRequest
	onRenewed func() // called after each new certificate
}

// NewClientRenewer returns a Renewer of the client certificate i, which c uses. After a renewal it
// closes the connections of c. report receives the results of the requests.
func (m *Manager) NewClientRenewer(c *apiserver.Client, i *Identity, report ReportFunc) *Renewer {
	return &Renewer{manager: m, c: c, report: report, purpose: clientPurpose, identity: i, template: m.clientTemplate, onRenewed: c.CloseAfterRenewal}
}

// NewServingRenewer returns a Renewer of the serving certificate i, which is requested with c.
// addresses returns the addresses of the Node, or nil if they are not available yet. report receives the
// results of the requests.
func (m *Manager) NewServingRenewer(c *apiserver.Client, i *Identity, addresses func() []v1.NodeAddress, report ReportFunc) *Renewer {
	template := func() *x509.CertificateRequest { return m.servingTemplate(addresses()) }
	return &Renewer{manager: m, c: c, report: report, purpose: servingPurpose, identity: i, template: template, onRenewed: func() {}}
}

// CheckInterval is the interval between checks of files and addresses for changes.
const CheckInterval = 10 * time.Second

// The wait after a rejected request or an unusable certificate doubles from firstRejectionWait to
// maxRejectionWait.
const (
	firstRejectionWait = 10 * time.Second
	maxRejectionWait   = 15 * time.Minute
)

// Run renews the certificate until ctx is done.
func (r *Renewer) Run(ctx context.Context) {
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
			backoff.Sleep(ctx, min(wait, CheckInterval)) // the sleep is short, because timers do not advance while the host is suspended
			continue
		}
		pair, err := r.request(ctx, template)
		if pair == nil && errors.Is(err, context.Canceled) {
			continue // the names in the template have changed
		}
		if err == nil && time.Now().After(pair.Leaf.NotAfter) {
			r.report(ctx, ClockError{pair.Leaf.NotAfter})
		} else {
			r.report(ctx, err)
		}
		switch rejected := (RejectedError{}); {
		case err == nil && r.timeUntilRequest(template, time.Now()) > 0:
			b, rejectedWait = backoff.Backoff{}, firstRejectionWait
		case err == nil: // the issued certificate lacks requested names, or has expired according to the clock of this host
			lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
			r.pause(ctx, template, min(rejectedWait, max(CheckInterval, lifetime/2)))
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
func (r *Renewer) pause(ctx context.Context, template *x509.CertificateRequest, d time.Duration) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(template, r.template()) && r.timeUntilRequest(template, time.Now()) <= 0 })
	defer stop()
	backoff.Sleep(ctx, d)
}

// timeUntilRequest returns the time until a certificate must be requested. 0 or a negative time
// means now.
func (r *Renewer) timeUntilRequest(template *x509.CertificateRequest, now time.Time) time.Duration {
	pair := r.identity.current.Load()
	if pair == nil || r.identity.isExternal.Load() || !coversNames(pair.Leaf, template) {
		return 0
	}
	return renewalTime(pair.Leaf).Sub(now)
}

// request requests a certificate and waits until it is issued. If the names in the template change
// first, request returns context.Canceled. It may return a certificate together with an error of
// the file system.
func (r *Renewer) request(ctx context.Context, template *x509.CertificateRequest) (*tls.Certificate, error) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(template, r.template()) })
	defer stop()
	var previousNotBefore time.Time
	if before := r.identity.current.Load(); before != nil {
		previousNotBefore = before.Leaf.NotBefore
	}
	pair, err := r.manager.obtainCertificate(ctx, r.c, r.purpose, template, r.report)
	if r.manager.OnRenewal != nil && (pair != nil || ctx.Err() == nil) { // without a certificate, the end of ctx means that the request was cancelled
		r.manager.OnRenewal(r.purpose.isServing, previousNotBefore, err)
	}
	if pair == nil {
		return nil, err
	}
	r.identity.current.Store(pair)
	r.identity.isExternal.Store(false)
	r.onRenewed()
	r.manager.Log.Info("certificate issued", "file", r.manager.certFiles(r.purpose).currentPath(), "expires", pair.Leaf.NotAfter)
	return pair, err
}

// cancelUnless returns a context that is cancelled when isValid returns false. A goroutine calls
// isValid every CheckInterval. The caller must call stop, which stops the goroutine and waits for
// it.
func cancelUnless(ctx context.Context, isValid func() bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var checks sync.WaitGroup
	checks.Go(func() {
		for backoff.Sleep(ctx, CheckInterval) {
			if !isValid() {
				cancel()
			}
		}
	})
	return ctx, func() { cancel(); checks.Wait() }
}

// clientTemplate returns the template of the client certificate.
func (m *Manager) clientTemplate() *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: m.certSubject()}
}

// servingTemplate returns the template of a serving certificate that contains addresses of the Node. It
// returns nil if there are no usable addresses yet.
func (m *Manager) servingTemplate(addresses []v1.NodeAddress) *x509.CertificateRequest {
	template := &x509.CertificateRequest{Subject: m.certSubject()}
	for _, a := range addresses {
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
