package endpoint

import (
	"context"
	"crypto/tls"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/server/auth"
	"podd/server/metrics"
)

// Cluster contains the functions of the node's cluster that the endpoints use.
type Cluster struct {
	// ReviewToken authenticates bearer tokens. It is nil if token reviews are disabled.
	ReviewToken func(ctx context.Context, token string) (auth.User, bool)
	// Authorizer replaces podd's own authorization. It is nil if access reviews are disabled.
	Authorizer auth.Authorizer
	// ServingCertificate returns the serving certificate that the cluster has signed, or nil
	// before the cluster has signed it. The function is nil if podd does not request a serving
	// certificate.
	ServingCertificate func() *tls.Certificate
	// ClientCertExpiry returns the expiration time of the node's client certificate. MirrorCount
	// returns the number of mirror pods. MirrorUID returns the UID of the mirror pod of a static pod,
	// or "" if there is none.
	ClientCertExpiry func() (time.Time, error)
	MirrorCount      func() int
	MirrorUID        func(types.NamespacedName) types.UID
	// CountPodCertificates returns the number of volume sources with a pod certificate by state.
	CountPodCertificates func() map[metrics.PodCertificateState]int
}
