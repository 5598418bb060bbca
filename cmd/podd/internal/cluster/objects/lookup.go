package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/manifest"
)

// firstLookupWait is the wait after the first failure. It is short, because a pod is waiting for
// the object and because the API server may reject lookups within bindingLag.
const firstLookupWait = 20 * time.Millisecond

// bindingLag is the time within which the authorizer of the API server processes the binding of a
// pod to this node. Until the binding is processed, the authorizer forbids lookups for the pod.
const bindingLag = time.Second

// A lookup reads one object and sends a result when the object changes. It runs in one goroutine
// until the resolver calls cancel.
type lookup struct {
	client            *apiserver.Client
	ref               manifest.ObjectRef
	resultCh          chan<- lookupResult
	hasSentResult     bool                   // send has sent a result other than an error
	hasObject         bool                   // the last result was an object
	lastPendingReason manifest.MissingObject // the last reason that reportPending has sent
	cancel            context.CancelFunc
}

// send sends a result to the resolver. It blocks until the resolver receives the result or ctx is
// done.
func (l *lookup) send(ctx context.Context, f lookupResult) {
	f.sender = l
	select {
	case l.resultCh <- f:
		l.hasSentResult, l.hasObject = true, f.object != nil
	case <-ctx.Done():
	}
}

// maxWait returns the longest wait after a failure.
func (l *lookup) maxWait() time.Duration {
	if l.hasObject {
		return apiserver.MaxCachedWait
	}
	return apiserver.MaxUncachedWait
}

// reportError sends an error response of the API server as the reason why the object is missing. It
// ignores all other errors. It also ignores 403 responses within bindingLag after lookupStart, the
// start of the lookup. reportError sends nothing if the lookup has already sent a result that is
// not an error, such as the object. A cached object stays in use until the API server reports its
// deletion.
func (l *lookup) reportError(ctx context.Context, err error, lookupStart time.Time) {
	if l.hasSentResult || !apiserver.IsAPIError(err) || apierrors.IsForbidden(err) && time.Since(lookupStart) < bindingLag {
		return
	}
	l.send(ctx, lookupResult{missing: manifest.MissingObject{Message: fmt.Sprintf("requesting %s from the API server: %v", l.name(), apiserver.WithoutHost(err))}})
	l.hasSentResult = false // send later errors, too, because they may be more specific
}

// name returns the kind and name of the object, as in the "not found" errors of the API server.
func (l *lookup) name() string {
	kind := l.ref.Kind
	switch kind {
	case "RuntimeClass":
	case manifest.TrustBundleKind:
		kind = "clustertrustbundle.certificates.k8s.io"
	case manifest.TrustBundlesKind:
		kind = "the ClusterTrustBundles of signer"
	default:
		kind = strings.ToLower(kind)
	}
	return fmt.Sprintf("%s %q", kind, l.ref.Name)
}

// notFound returns the result for an object that does not exist.
func (l *lookup) notFound() lookupResult {
	return lookupResult{missing: manifest.MissingObject{DoesNotExist: true, Message: l.name() + " not found"}}
}

// watchObject lists and watches the ConfigMap, Secret or RuntimeClass of l until ctx is done or
// the object is immutable.
func watchObject[T apiserver.Object](ctx context.Context, l *lookup, list runtime.Object) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &objectStore[T]{ctx: ctx, lookup: l, stop: cancel, startedAt: time.Now()}
	f := apiserver.Reflector[T]{Client: l.client, Query: l.client.ObjectQuery(l.ref), EmptyList: list, Publish: store.publish, Report: store.report, InitialWait: firstLookupWait, MaxWait: l.maxWait, WatchTimeout: apiserver.ObjectWatchTimeout}
	f.Run(ctx)
}

// An objectStore receives the snapshots of a reflector for one object. It sends
// the snapshots and errors of the reflector as results of a lookup.
type objectStore[T apiserver.Object] struct {
	ctx context.Context
	*lookup
	stop      func()    // stops the reflector
	startedAt time.Time // start of the lookup
}

// publish is the function Publish of the reflector. It sends the object, or a result which states that
// the object does not exist. It stops the reflector if the object is immutable.
func (o *objectStore[T]) publish(s apiserver.Snapshot[T]) {
	item, exists := s.Items[o.ref.NamespacedName]
	if !exists {
		o.send(o.ctx, o.notFound())
		return
	}
	o.send(o.ctx, lookupResult{object: item})
	if isImmutable(item) {
		o.stop()
	}
}

// report is the function Report of the reflector.
func (o *objectStore[T]) report(ctx context.Context, err error) {
	if err != nil {
		o.reportError(ctx, err, o.startedAt)
	}
}

// isImmutable reports whether an object is immutable. An immutable object is not watched. If the
// object is deleted and created again, a pod gets the new object only after all pods that use the
// old object have terminated.
func isImmutable(o any) bool {
	switch o := o.(type) {
	case *v1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	case *v1.Secret:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}
