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

// renewer has a certificate of one purpose be good, and be for what is wished.
type renewer struct {
	o   *Options
	c   *client
	say *speaker
	to  purpose
	has *identity
	// wish is what the certificate is to be of; nil while nobody knows.
	wish func() *x509.CertificateRequest
	took func() // called when there is another
}

// The waits after a request that was refused, or a certificate that serves nobody.
const (
	firstDenied = 10 * time.Second
	mostDenied  = 15 * time.Minute
)

// run does so until ctx is done.
func (r *renewer) run(ctx context.Context) {
	var b backoff
	again := firstDenied
	for ctx.Err() == nil {
		wish := r.wish()
		if wish == nil {
			sleep(ctx, b.next())
			continue
		}
		if wait := r.wait(wish, time.Now()); wait > 0 {
			b = backoff{}
			sleep(ctx, min(wait, lookEvery)) // which a suspended machine does not count
			continue
		}
		pair, err := r.attempt(ctx, wish)
		if pair == nil && errors.Is(err, context.Canceled) {
			continue // something else is wished
		}
		if err == nil && time.Now().After(pair.Leaf.NotAfter) {
			r.say.report(ctx, r.to.of, clockError{pair.Leaf.NotAfter})
		} else {
			r.say.report(ctx, r.to.of, err)
		}
		switch refused := (refusedError{}); {
		case err == nil && r.wait(wish, time.Now()) > 0:
			b, again = backoff{}, firstDenied
		case err == nil: // of something else than was asked, or for a time that is over by this clock
			life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
			r.pause(ctx, wish, min(again, max(lookEvery, life/2)))
			again = min(2*again, mostDenied)
		case errors.As(err, &refused):
			r.pause(ctx, wish, again)
			again = min(2*again, mostDenied)
		default:
			sleep(ctx, b.next())
		}
	}
}

// pause waits for as long as the same is wished, and there is something to ask for.
func (r *renewer) pause(ctx context.Context, wish *x509.CertificateRequest, d time.Duration) {
	ctx, stop := while(ctx, func() bool { return same(wish, r.wish()) && r.wait(wish, time.Now()) <= 0 })
	defer stop()
	sleep(ctx, d)
}

// wait is how long there is nothing to ask for.
func (r *renewer) wait(wish *x509.CertificateRequest, now time.Time) time.Duration {
	pair := r.has.now.Load()
	if pair == nil || r.has.given.Load() || !covers(pair.Leaf, wish) {
		return 0
	}
	return renewAt(pair.Leaf).Sub(now)
}

// attempt asks, for as long as the same is wished.
func (r *renewer) attempt(ctx context.Context, wish *x509.CertificateRequest) (*tls.Certificate, error) {
	ctx, stop := while(ctx, func() bool { return same(wish, r.wish()) })
	defer stop()
	var made time.Time
	if before := r.has.now.Load(); before != nil {
		made = before.Leaf.NotBefore
	}
	pair, err := r.o.obtain(ctx, r.c, r.to, wish, r.say)
	if r.o.Renewed != nil && (pair != nil || ctx.Err() == nil) { // else something else is wished
		r.o.Renewed(r.to.of == ofServing, made, err)
	}
	if pair == nil {
		return nil, err
	}
	r.has.now.Store(pair)
	r.has.given.Store(false)
	r.took()
	r.o.Log.Info("another certificate", "file", r.o.pairs(r.to).current(), "until", pair.Leaf.NotAfter)
	return pair, err
}

// while is ctx until something is so no more, which is looked at now and then; stop
// is to be called.
func while(ctx context.Context, so func() bool) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		for sleep(ctx, lookEvery) {
			if !so() {
				cancel()
			}
		}
	})
	return ctx, func() { cancel(); looks.Wait() }
}

// renew has connections be made anew, with the certificate that podd has now: those
// that there are have shown the last.
func (c *client) renew() {
	c.renewed.Add(1)
	c.close()
}

func (o *Options) wishToAsk() *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: o.subject()}
}

// wishToServe is of the addresses that the cluster has of the node, or is to have.
func (c *Cluster) wishToServe(nodes *latest[sighting[*v1.Node]]) func() *x509.CertificateRequest {
	return func() *x509.CertificateRequest {
		machine := c.state.View().Machine
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
			return nil // no signer would sign it
		}
		slices.Sort(wish.DNSNames)
		wish.DNSNames = slices.Compact(wish.DNSNames)
		slices.SortFunc(wish.IPAddresses, func(a, b net.IP) int { return slices.Compare(a, b) })
		wish.IPAddresses = slices.CompactFunc(wish.IPAddresses, net.IP.Equal)
		return wish
	}
}

// covers says that a certificate is of what is wished, and perhaps of more.
func covers(leaf *x509.Certificate, wish *x509.CertificateRequest) bool {
	return leaf.Subject.CommonName == wish.Subject.CommonName &&
		within(wish.Subject.Organization, leaf.Subject.Organization, func(a, b string) bool { return a == b }) &&
		within(wish.DNSNames, leaf.DNSNames, func(a, b string) bool { return a == b }) &&
		within(wish.IPAddresses, leaf.IPAddresses, net.IP.Equal)
}

func within[T any](some, all []T, equal func(T, T) bool) bool {
	for _, s := range some {
		if !slices.ContainsFunc(all, func(a T) bool { return equal(s, a) }) {
			return false
		}
	}
	return true
}

func same(a, b *x509.CertificateRequest) bool {
	return a != nil && b != nil && slices.Equal(a.DNSNames, b.DNSNames) && slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)
}
