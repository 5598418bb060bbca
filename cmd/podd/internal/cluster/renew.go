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
)

// A renewer keeps a certificate valid, with the names in template.
type renewer struct {
	o        *Options
	c        *client
	problems *problemReporter
	purpose  purpose
	identity *identity
	// template returns the requested certificate, or nil if it is not known yet.
	template  func() *x509.CertificateRequest
	onRenewed func() // called after a renewal
}

// The waits after a rejected request or an unusable certificate.
const (
	firstDenied = 10 * time.Second
	maxDenied   = 15 * time.Minute
)

// run renews the certificate until ctx is done.
func (r *renewer) run(ctx context.Context) {
	var b backoff
	again := firstDenied
	for ctx.Err() == nil {
		wish := r.template()
		if wish == nil {
			sleep(ctx, b.next())
			continue
		}
		if wait := r.wait(wish, time.Now()); wait > 0 {
			b = backoff{}
			sleep(ctx, min(wait, checkInterval)) // timers do not advance while the host is suspended
			continue
		}
		pair, err := r.attempt(ctx, wish)
		if pair == nil && errors.Is(err, context.Canceled) {
			continue // the template has changed
		}
		if err == nil && time.Now().After(pair.Leaf.NotAfter) {
			r.problems.report(ctx, r.purpose.of, clockError{pair.Leaf.NotAfter})
		} else {
			r.problems.report(ctx, r.purpose.of, err)
		}
		switch refused := (refusedError{}); {
		case err == nil && r.wait(wish, time.Now()) > 0:
			b, again = backoff{}, firstDenied
		case err == nil: // with other names than requested, or expired by the clock of this host
			life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
			r.pause(ctx, wish, min(again, max(checkInterval, life/2)))
			again = min(2*again, maxDenied)
		case errors.As(err, &refused):
			r.pause(ctx, wish, again)
			again = min(2*again, maxDenied)
		default:
			sleep(ctx, b.next())
		}
	}
}

// pause waits for d, or until the template changes or the certificate is sufficient.
func (r *renewer) pause(ctx context.Context, wish *x509.CertificateRequest, d time.Duration) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(wish, r.template()) && r.wait(wish, time.Now()) <= 0 })
	defer stop()
	sleep(ctx, d)
}

// wait returns the time until the next request.
func (r *renewer) wait(wish *x509.CertificateRequest, now time.Time) time.Duration {
	pair := r.identity.now.Load()
	if pair == nil || r.identity.given.Load() || !covers(pair.Leaf, wish) {
		return 0
	}
	return renewAt(pair.Leaf).Sub(now)
}

// attempt requests a certificate until the template changes.
func (r *renewer) attempt(ctx context.Context, wish *x509.CertificateRequest) (*tls.Certificate, error) {
	ctx, stop := cancelUnless(ctx, func() bool { return sameNames(wish, r.template()) })
	defer stop()
	var made time.Time
	if before := r.identity.now.Load(); before != nil {
		made = before.Leaf.NotBefore
	}
	pair, err := r.o.obtain(ctx, r.c, r.purpose, wish, r.problems)
	if r.o.OnRenewal != nil && (pair != nil || ctx.Err() == nil) { // otherwise the template has changed
		r.o.OnRenewal(r.purpose.of == ofServing, made, err)
	}
	if pair == nil {
		return nil, err
	}
	r.identity.now.Store(pair)
	r.identity.given.Store(false)
	r.onRenewed()
	r.o.Log.Info("another certificate", "file", r.o.pairs(r.purpose).current(), "until", pair.Leaf.NotAfter)
	return pair, err
}

// cancelUnless returns a context that is cancelled when so returns false, which is
// checked periodically. stop must be called.
func cancelUnless(ctx context.Context, so func() bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		for sleep(ctx, checkInterval) {
			if !so() {
				cancel()
			}
		}
	})
	return ctx, func() { cancel(); looks.Wait() }
}

// renew closes the connections, which use the previous certificate.
func (c *client) renew() {
	c.renewed.Add(1)
	c.close()
}

func (o *Options) clientTemplate() *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: o.subject()}
}

// servingTemplate returns a template with the addresses of the Node.
func (c *Cluster) servingTemplate(nodes *watchable[snapshot[*v1.Node]]) func() *x509.CertificateRequest {
	return func() *x509.CertificateRequest {
		machine := c.state.View().NodeObject
		if machine == nil {
			return nil
		}
		var known []v1.NodeAddress
		if seen, _ := nodes.get(); seen.items[types.NamespacedName{Name: c.o.Node}] != nil {
			known = seen.items[types.NamespacedName{Name: c.o.Node}].Status.Addresses
		}
		wish := &x509.CertificateRequest{Subject: c.o.subject()}
		for _, a := range c.o.addresses(known, machine.Status.Addresses) {
			if ip := net.ParseIP(a.Address); ip != nil {
				wish.IPAddresses = append(wish.IPAddresses, ip)
			} else if a.Address != "" && a.Type != v1.NodeInternalIP && a.Type != v1.NodeExternalIP {
				wish.DNSNames = append(wish.DNSNames, a.Address)
			}
		}
		if len(wish.DNSNames)+len(wish.IPAddresses) == 0 {
			return nil // signers reject it
		}
		slices.Sort(wish.DNSNames)
		wish.DNSNames = slices.Compact(wish.DNSNames)
		slices.SortFunc(wish.IPAddresses, func(a, b net.IP) int { return slices.Compare(a, b) })
		wish.IPAddresses = slices.CompactFunc(wish.IPAddresses, net.IP.Equal)
		return wish
	}
}

// covers reports whether a certificate has at least the names in a template.
func covers(leaf *x509.Certificate, wish *x509.CertificateRequest) bool {
	return leaf.Subject.CommonName == wish.Subject.CommonName &&
		containsAll(wish.Subject.Organization, leaf.Subject.Organization, func(a, b string) bool { return a == b }) &&
		containsAll(wish.DNSNames, leaf.DNSNames, func(a, b string) bool { return a == b }) &&
		containsAll(wish.IPAddresses, leaf.IPAddresses, net.IP.Equal)
}

func containsAll[T any](some, all []T, equal func(T, T) bool) bool {
	for _, s := range some {
		if !slices.ContainsFunc(all, func(a T) bool { return equal(s, a) }) {
			return false
		}
	}
	return true
}

func sameNames(a, b *x509.CertificateRequest) bool {
	return a != nil && b != nil && slices.Equal(a.DNSNames, b.DNSNames) && slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)
}
