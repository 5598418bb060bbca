// Package auth decides who may ask the kubelet's and the Kubernetes API for what: an Authenticator
// tells who asks, Attributes what for, in the terms of Kubernetes' RBAC, and an
// Authorizer whether they may.
package auth

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"
	"time"
)

// User is who asks.
type User struct {
	Name   string
	Groups []string
	// UID and Extra are what a cluster tells of its users beside that, for its own
	// Authorizer; "" and nil of others. Nobody writes to Extra.
	UID   string
	Extra map[string][]string
}

// Names that Kubernetes gives.
const (
	// Masters may do everything.
	Masters         = "system:masters"
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	anonymous       = "system:anonymous"
)

// Root is the user at the other end of podd's own socket.
func Root() User { return User{Name: "root", Groups: []string{Masters, authenticated}} }

// Authenticator tells who asks. The zero value knows nobody. Its functions are
// called for each request and must be safe for concurrent use.
type Authenticator struct {
	// CAs vouch for clients: the user is the common name of a certificate and
	// its organizations are the groups. Nil: no certificate counts.
	CAs func() *x509.CertPool
	// Tokens are known bearer tokens; nil: none is.
	Tokens func() Tokens
	// Review tells whose a token is that Tokens do not have, asking somebody else
	// perhaps; false: nobody's that is known, or nobody could tell. Nil: no other
	// counts.
	Review func(ctx context.Context, token string) (User, bool)
	// Anonymous lets who shows nothing in as system:anonymous.
	Anonymous bool

	verified verified
}

// User tells who sent r; false says that nobody known did. Who shows a
// credential that does not count is not anonymous.
func (a *Authenticator) User(r *http.Request) (User, bool) {
	certificate := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	if certificate {
		if u, ok := a.ofCertificate(r.TLS.PeerCertificates); ok {
			return u, true
		}
	}
	token, shown := bearer(r)
	if shown && a.Tokens != nil {
		if u, ok := a.Tokens().user(token); ok {
			return u, true
		}
	}
	if token != "" && a.Review != nil {
		if u, ok := a.Review(r.Context(), token); ok && u.Name != "" {
			u.Groups = known(u.Name, u.Groups)
			return u, true
		}
	}
	if a.Anonymous && !shown && !certificate {
		return User{Name: anonymous, Groups: []string{unauthenticated}}, true
	}
	return User{}, false
}

func (a *Authenticator) ofCertificate(chain []*x509.Certificate) (User, bool) {
	subject := chain[0].Subject
	if a.CAs == nil || !a.vouch(chain, a.CAs(), time.Now()) || subject.CommonName == "" {
		return User{}, false
	}
	return User{Name: subject.CommonName, Groups: append(subject.Organization[:len(subject.Organization):len(subject.Organization)], authenticated)}, true
}

// vouch says that by vouches for the client that showed chain. That is remembered
// of a certificate alone, for which nothing else that was shown matters.
func (a *Authenticator) vouch(chain []*x509.Certificate, by *x509.CertPool, at time.Time) bool {
	alone := len(chain) == 1
	if alone && a.verified.knows(chain[0], by, at) {
		return true
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	all, err := chain[0].Verify(x509.VerifyOptions{
		Roots: by, Intermediates: between, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return false
	}
	if alone {
		a.verified.learn(all[0], by)
	}
	return true
}

// bearer is the token in the Authorization header.
func bearer(r *http.Request) (token string, shown bool) {
	kind, token, found := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !found || !strings.EqualFold(kind, "bearer") {
		return "", r.Header.Get("Authorization") != ""
	}
	return strings.TrimSpace(token), true
}

// String tells of u without anything secret.
func (u User) String() string {
	if len(u.Groups) == 0 {
		return u.Name
	}
	return u.Name + " (" + strings.Join(u.Groups, ", ") + ")"
}
