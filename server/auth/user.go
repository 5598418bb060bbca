// Package auth authenticates and authorizes requests for the kubelet's API and the Kubernetes API.
// An Authenticator returns the User of a request. Attributes describe the request as in Kubernetes
// RBAC. An Authorizer decides whether the User may make the request.
package auth

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/asn1"
)

// User is the identity of a client.
type User struct {
	Name   string
	Groups []string
	// UID is in a TokenReview of the cluster, or in the subject of a client certificate; otherwise it
	// is "". The cluster's Authorizer uses UID and Extra.
	UID string
	// Extra contains further attributes that a cluster returns in a TokenReview. It is empty for users
	// that are not authenticated by a TokenReview. Extra must not be modified.
	Extra map[string][]string
	// IsForwarded reports whether a cluster's API server forwards the request of another client, whose
	// permissions are unknown. A User with IsForwarded may not make the requests that WriteAuthorizer
	// reserves for root, and may not read the data of Secrets.
	IsForwarded bool
}

// Kubernetes' well-known users and groups.
const (
	// MastersGroup is the group with members that may make every request.
	MastersGroup         = "system:masters"
	authenticatedGroup   = "system:authenticated"
	unauthenticatedGroup = "system:unauthenticated"
	anonymousUser        = "system:anonymous"
)

// RootUser returns the user of connections to podd's own socket.
func RootUser() User { return User{Name: "root", Groups: []string{MastersGroup, authenticatedGroup}} }

// An Authenticator authenticates requests. The zero value rejects every request. The
// functions are called for each request and must be safe for concurrent use.
type Authenticator struct {
	// CAs returns the authorities for client certificates. A certificate's common name is the user,
	// its organizations are the groups, and it may contain a UID. If CAs is nil, no certificate is
	// accepted.
	CAs func() *x509.CertPool
	// Tokens returns the accepted bearer tokens. It may be nil.
	Tokens func() Tokens
	// ReviewToken authenticates tokens that are not in Tokens. It may call another server. ok is
	// false if the token is invalid or cannot be checked. If ReviewToken is nil, only Tokens are
	// accepted.
	ReviewToken func(ctx context.Context, token string) (u User, ok bool)
	// AllowsAnonymous reports whether a request without a credential is accepted, with the user
	// system:anonymous.
	AllowsAnonymous bool

	verifications certCache
}

// authenticate returns the user of r. ok is false if r cannot be authenticated. A request
// with an invalid credential is never anonymous. If neither Tokens nor ReviewToken is set, a bearer
// token is not a credential, as in a kubelet.
func (a *Authenticator) authenticate(r *http.Request) (u User, ok bool) {
	hasCertificate := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	if hasCertificate {
		if u, ok := a.certificateUser(r.TLS.PeerCertificates); ok {
			return u, true
		}
	}
	token, hasHeader := bearerToken(r)
	if hasHeader && a.Tokens != nil {
		if u, ok := a.Tokens().user(token); ok {
			return u, true
		}
	}
	if token != "" && a.ReviewToken != nil {
		if u, ok := a.ReviewToken(r.Context(), token); ok && u.Name != "" {
			u.Groups = withImplicitGroups(u.Name, u.Groups)
			return u, true
		}
	}
	checksTokens := a.Tokens != nil || a.ReviewToken != nil
	if a.AllowsAnonymous && !hasCertificate && !(hasHeader && checksTokens) {
		return User{Name: anonymousUser, Groups: []string{unauthenticatedGroup}}, true
	}
	return User{}, false
}

// certificateUser returns the user that a client certificate names. ok is false if the
// certificate is not signed by an authority in CAs, has no common name or has an invalid UID.
func (a *Authenticator) certificateUser(chain []*x509.Certificate) (u User, ok bool) {
	subject := chain[0].Subject
	if a.CAs == nil || !a.verify(chain, a.CAs(), time.Now()) || subject.CommonName == "" {
		return User{}, false
	}
	uid, ok := subjectUID(&subject)
	if !ok {
		return User{}, false
	}
	return User{Name: subject.CommonName, UID: uid, Groups: append(subject.Organization[:len(subject.Organization):len(subject.Organization)], authenticatedGroup)}, true
}

// subjectUID returns the UID in the subject of a client certificate, or "" if there is none. As in the API
// server, ok is false if the subject contains several UIDs or an empty one
// (pkg/authentication/request/x509 of k8s.io/apiserver).
func subjectUID(subject *pkix.Name) (uid string, ok bool) {
	hasUID := false
	for _, name := range subject.Names {
		if !name.Type.Equal(asn1.X509UID()) {
			continue
		}
		uid, ok = name.Value.(string)
		if !ok || uid == "" || hasUID {
			return "", false
		}
		hasUID = true
	}
	return uid, true
}

// verify reports whether chain leads to an authority in roots and is valid at the given time. It
// caches the result only if chain contains one certificate, because otherwise the result also
// depends on the intermediate certificates.
func (a *Authenticator) verify(chain []*x509.Certificate, roots *x509.CertPool, at time.Time) bool {
	isSingle := len(chain) == 1
	if isSingle && a.verifications.contains(chain[0], roots, at) {
		return true
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return false
	}
	if isSingle {
		a.verifications.add(chains[0], roots)
	}
	return true
}

// bearerToken returns the bearer token in the Authorization header, or "" if there is no bearer
// token. hasHeader reports whether the request has an Authorization header of any kind.
func bearerToken(r *http.Request) (token string, hasHeader bool) {
	kind, token, found := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !found || !strings.EqualFold(kind, "bearer") {
		return "", r.Header.Get("Authorization") != ""
	}
	return strings.TrimSpace(token), true
}

// String returns the name and groups, which are not secret.
func (u User) String() string {
	if len(u.Groups) == 0 {
		return u.Name
	}
	return u.Name + " (" + strings.Join(u.Groups, ", ") + ")"
}
