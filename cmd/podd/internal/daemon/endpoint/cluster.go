package endpoint

import (
	"context"
	"crypto/tls"
	"time"

	"podd/server/auth"
)

// Cluster contains the functions of the node's cluster that the endpoints use.
type Cluster struct {
	// TokenReview authenticates bearer tokens. It is nil if token reviews are disabled.
	TokenReview func(ctx context.Context, token string) (auth.User, bool)
	// AccessReview replaces podd's own authorization; may be nil.
	AccessReview auth.Authorizer
	// ServingCertificate returns the serving certificate that the cluster has signed, or
	// nil if it has signed none yet. The function is nil if podd does not request a serving
	// certificate.
	ServingCertificate func() *tls.Certificate
	// ClientCertificate returns when the client certificate of the node expires. Mirrors
	// returns the number of mirror pods.
	ClientCertificate func() (time.Time, error)
	Mirrors           func() int
}
