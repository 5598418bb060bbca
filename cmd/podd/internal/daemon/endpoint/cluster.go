package endpoint

import (
	"context"
	"crypto/tls"
	"time"

	"podd/server/auth"
)

// Cluster contains the functions of the node's cluster that the endpoints use.
type Cluster struct {
	// TokenReview authenticates bearer tokens; nil if reviews of tokens are disabled.
	TokenReview func(ctx context.Context, token string) (auth.User, bool)
	// AccessReview replaces podd's own authorization; may be nil.
	AccessReview auth.Authorizer
	// ServingCertificate returns the serving certificate that the cluster has signed, or
	// nil if there is none yet. It is nil if the cluster signs none.
	ServingCertificate func() *tls.Certificate
	// ClientCertificate returns the expiry of the node's client certificate, and Mirrors
	// the number of mirror pods.
	ClientCertificate func() (time.Time, error)
	Mirrors           func() int
}
