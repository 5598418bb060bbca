package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	certificates "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/manifest"
)

// watchTrustBundles lists and watches the ClusterTrustBundle of l, or all ClusterTrustBundles of the
// signer of l, until ctx is done.
func (l *lookup) watchTrustBundles(ctx context.Context) {
	store := &trustBundleStore{objectStore: objectStore[*certificates.ClusterTrustBundle]{ctx: ctx, lookup: l, startedAt: time.Now()}}
	f := apiserver.Reflector[*certificates.ClusterTrustBundle]{Client: l.client, Query: store.query, EmptyList: &certificates.ClusterTrustBundleList{}, Publish: store.publish, Report: store.report, InitialWait: firstLookupWait, MaxWait: l.maxWait, WatchTimeout: apiserver.ObjectWatchTimeout}
	f.Run(ctx)
}

// A trustBundleStore is an objectStore for ClusterTrustBundles. It uses version v1 of the API, or
// v1beta1 if the API server does not serve v1, like the kubelet. The fields are the same.
type trustBundleStore struct {
	objectStore[*certificates.ClusterTrustBundle]
	usesBeta bool
}

// query returns a list request for the ClusterTrustBundles.
func (s *trustBundleStore) query() *rest.Request {
	api, field := s.client.Certificates, "metadata.name="
	if s.usesBeta {
		api = s.client.BetaCertificates
	}
	if s.ref.Kind == manifest.TrustBundlesKind {
		field = "spec.signerName="
	}
	return api.Get().Resource("clustertrustbundles").Param("fieldSelector", field+s.ref.Name)
}

// publish is the function Publish of the reflector.
func (s *trustBundleStore) publish(snap apiserver.Snapshot[*certificates.ClusterTrustBundle]) {
	if s.ref.Kind == manifest.TrustBundleKind {
		s.objectStore.publish(snap)
		return
	}
	bundles := slices.AppendSeq([]*certificates.ClusterTrustBundle{}, maps.Values(snap.Items))
	s.send(s.ctx, lookupResult{object: bundles})
}

// report is the function Report of the reflector. If the API server does not serve the current
// version, the next request uses the other version.
func (s *trustBundleStore) report(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) {
		s.usesBeta = !s.usesBeta
		if s.usesBeta {
			return
		}
		err = fmt.Errorf("ClusterTrustBundles are served neither in certificates.k8s.io/v1 nor in v1beta1: %w", apiserver.WithoutHost(err))
	}
	s.objectStore.report(ctx, err)
}
