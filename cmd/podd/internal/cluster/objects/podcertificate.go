package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/podcert"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
)

// refreshJitter is the maximum random delay of a refresh. It keeps pods that started at the same time
// from requesting certificates at the same time. The kubelet has the same maximum.
const refreshJitter = 5 * time.Minute

// certificateCheckInterval is the interval between checks of whether a certificate must be
// refreshed, is overdue or has expired. The interval is short, because the monotonic clock stops
// while the host is suspended.
const certificateCheckInterval = time.Minute

// maxRequestWait is the longest wait before the next request if the signer did not decide on the
// previous request, for example because the request was deleted.
const maxRequestWait = 5 * time.Minute

// A podCertificate is the private key and certificate that a lookup has obtained.
type podCertificate struct {
	files  *manifest.PodCertificate
	issued *podcert.Certificate
}

// A podCertificateLookup requests the certificate for one source of a pod's volume. It requests the
// next certificate before the current one expires.
type podCertificateLookup struct {
	*lookup
	o      *Options
	states *podCertificateStates
	pod    *v1.Pod
	source *v1.PodCertificateProjection
	// state is the current state. hasReportedOverdue and hasReportedExpired are set when the
	// corresponding events about state.Certificate have been recorded.
	state                                  podcert.State
	hasReportedOverdue, hasReportedExpired bool
	requestedAt                            time.Time // start of the current request
}

// newPodCertificateLookup returns the lookup of a certificate. last is the certificate that an
// earlier connection has obtained, or nil.
func newPodCertificateLookup(l *lookup, r *Resolver, pod *v1.Pod, source *v1.PodCertificateProjection, last *podCertificate) *podCertificateLookup {
	p := &podCertificateLookup{lookup: l, o: r.o, states: &r.podCertificates, pod: pod, source: source, state: podcert.State{Signer: source.SignerName}}
	if last != nil {
		p.state.Certificate, l.hasObject = last.issued, true
	}
	return p
}

// run obtains certificates and sends them until ctx is done. As in the kubelet, a refused request is
// final: run then sends the reason and requests nothing more.
func (l *podCertificateLookup) run(ctx context.Context) {
	defer l.states.remove(l.lookup)
	l.states.set(l.lookup, l.state)
	for ctx.Err() == nil {
		if l.state.Certificate != nil && !l.waitForRefresh(ctx) {
			return
		}
		if err := l.obtain(ctx); err != nil {
			l.refuse(ctx, err)
			<-ctx.Done()
		}
	}
}

// waitForRefresh waits until the next certificate should be requested. It returns false if ctx is
// done.
func (l *podCertificateLookup) waitForRefresh(ctx context.Context) bool {
	for wait := l.state.Certificate.RefreshIn(time.Now()); wait > 0; wait = l.state.Certificate.RefreshIn(time.Now()) {
		if !backoff.Sleep(ctx, min(wait, certificateCheckInterval)) {
			return false
		}
	}
	return true
}

// A refusal is the error of a PodCertificateRequest that was denied or has failed.
type refusal struct {
	request string // namespace and name
	*podcert.RefusedError
}

func (r *refusal) Error() string {
	return apiserver.Sanitize("PodCertificateRequest " + r.request + " " + r.RefusedError.Error())
}

// obtain requests a certificate, waits for it and sends it. If the signer refuses the request,
// obtain returns the refusal. After all other errors it retries. It returns nil after a success,
// and when ctx is done.
func (l *podCertificateLookup) obtain(ctx context.Context) *refusal {
	b, key := backoff.Backoff{InitialWait: firstLookupWait}, (*podcert.Key)(nil)
	l.requestedAt = time.Now()
	for ctx.Err() == nil {
		name, err := l.request(ctx, &key)
		limit := l.maxWait()
		if err == nil {
			if err = l.receive(ctx, name, key); err == nil {
				return nil
			}
			if refused, ok := errors.AsType[*podcert.RefusedError](err); ok {
				return &refusal{l.pod.Namespace + "/" + name, refused}
			}
			key, limit = nil, maxRequestWait // generate another key for the next request
		}
		l.reportProblem(ctx, err)
		backoff.Sleep(ctx, backoff.WithJitter(b.NextUpTo(limit)))
	}
	return nil
}

// reportProblem reports an error as the reason why there is no certificate yet. It ignores 403
// responses within bindingLag. It also ignores connection errors, because other goroutines report an
// outage.
func (l *podCertificateLookup) reportProblem(ctx context.Context, err error) {
	l.reportAge()
	_, isRequestErr := err.(apiserver.HostError)
	if l.state.Certificate != nil || isRequestErr && !apiserver.IsAPIError(err) || apierrors.IsForbidden(err) && time.Since(l.requestedAt) < bindingLag {
		return
	}
	l.reportPending(ctx, l.requestedAt, fmt.Errorf("requesting a certificate of signer %q: %w", l.source.SignerName, apiserver.WithoutHost(err)), "")
}

// request creates a PodCertificateRequest and returns its name. It generates a key unless *key is
// set.
func (l *podCertificateLookup) request(ctx context.Context, key **podcert.Key) (string, error) {
	node, _ := l.o.Nodes.Find(types.NamespacedName{Name: l.o.NodeName})
	if node == nil {
		return "", fmt.Errorf("the Node %q does not exist in the cluster", l.o.NodeName)
	}
	account := &v1.ServiceAccount{}
	if err := l.client.Do(ctx, l.client.Core.Get().Namespace(l.pod.Namespace).Resource("serviceaccounts").Name(l.pod.Spec.ServiceAccountName), account); err != nil {
		return "", err
	}
	if *key == nil {
		newKey, err := podcert.NewKey(l.source.KeyType)
		if err != nil {
			return "", err
		}
		*key = newKey
	}
	body := &certificates.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: l.pod.Name, UID: l.pod.UID}},
		},
		Spec: certificates.PodCertificateRequestSpec{
			SignerName: l.source.SignerName, PodName: l.pod.Name, PodUID: l.pod.UID,
			ServiceAccountName: l.pod.Spec.ServiceAccountName, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			MaxExpirationSeconds: l.source.MaxExpirationSeconds, StubPKCS10Request: (*key).Request, UnverifiedUserAnnotations: l.source.UserAnnotations,
		},
	}
	created := &certificates.PodCertificateRequest{}
	err := l.client.Do(ctx, l.client.Certificates.Post().Namespace(l.pod.Namespace).Resource("podcertificaterequests").Body(body), created)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w; the API server must serve PodCertificateRequests in certificates.k8s.io/v1, which Kubernetes 1.37 does unless the feature gate PodCertificateRequest is disabled", apiserver.WithoutHost(err))
	}
	return created.Name, err
}

// receive waits until the signer has issued the certificate of the request with this name, and sends
// the certificate.
func (l *podCertificateLookup) receive(ctx context.Context, name string, key *podcert.Key) error {
	issued, err := l.await(ctx, name)
	if err != nil {
		return err
	}
	l.state.Certificate, l.hasReportedOverdue, l.hasReportedExpired = issued, false, false
	l.states.set(l.lookup, l.state)
	l.send(ctx, lookupResult{object: &podCertificate{&manifest.PodCertificate{Key: key.PEM(), Chain: issued.Chain}, issued}})
	return nil
}

// await watches the request with this name until it has a certificate.
func (l *podCertificateLookup) await(ctx context.Context, name string) (*podcert.Certificate, error) {
	ctx, cancel := context.WithCancel(ctx)
	requests := &certificateRequestStore{}
	f := apiserver.Reflector[*certificates.PodCertificateRequest]{Client: l.client, Query: l.requestQuery(name), EmptyList: &certificates.PodCertificateRequestList{}, Publish: requests.Set, Report: requests.report, InitialWait: firstLookupWait}
	var g sync.WaitGroup
	g.Go(func() { f.Run(ctx) })
	defer g.Wait()
	defer cancel()
	for ctx.Err() == nil {
		s, changed := requests.Get()
		if r := s.Items[types.NamespacedName{Namespace: l.pod.Namespace, Name: name}]; r != nil {
			if issued, err := podcert.Evaluate(r, time.Now(), rand.N(refreshJitter)); issued != nil || err != nil {
				return issued, err
			}
		} else if s.ListCount > 0 {
			return nil, fmt.Errorf("PodCertificateRequest %s/%s was deleted", l.pod.Namespace, name)
		}
		l.reportAge()
		if l.state.Certificate == nil {
			l.reportPending(ctx, l.requestedAt, requests.watchError(), "signer %q has not issued the certificate of PodCertificateRequest %s/%s yet", l.source.SignerName, l.pod.Namespace, name)
		}
		select {
		case <-changed:
		case <-time.After(certificateCheckInterval):
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// requestQuery returns a function that creates a list request for one PodCertificateRequest. The node
// authorizer permits only lists and watches for this node.
func (l *podCertificateLookup) requestQuery(name string) func() *rest.Request {
	selector := "spec.nodeName=" + l.o.NodeName + ",metadata.name=" + name
	return func() *rest.Request {
		return l.client.Certificates.Get().Namespace(l.pod.Namespace).Resource("podcertificaterequests").Param("fieldSelector", selector)
	}
}

// A certificateRequestStore contains the snapshot and the error of the reflector that watches one
// PodCertificateRequest.
type certificateRequestStore struct {
	apiserver.Store[*certificates.PodCertificateRequest]
	err watchable.Value[error]
}

// report is the function Report of the reflector. It stores an error only if the API server has
// responded, because other goroutines report an outage.
func (s *certificateRequestStore) report(_ context.Context, err error) {
	if err == nil || apiserver.IsAPIError(err) {
		s.err.Set(err)
	}
}

// watchError returns the last error of the list or watch, or nil.
func (s *certificateRequestStore) watchError() error {
	err, _ := s.err.Get()
	if err == nil {
		return nil
	}
	return fmt.Errorf("watching a PodCertificateRequest: %w", apiserver.WithoutHost(err))
}

// refuse sends the reason why the signer has refused a certificate, and records an event.
func (l *podCertificateLookup) refuse(ctx context.Context, r *refusal) {
	l.state.Refused = r.RefusedError
	l.states.set(l.lookup, l.state)
	l.recordEvent(r.Condition, r.Error())
	l.send(ctx, lookupResult{missing: manifest.MissingObject{Message: r.Error(), Remedy: "delete the pod to request another certificate"}})
}

// reportAge records an event when the refresh of the certificate is overdue, and when the certificate
// has expired.
func (l *podCertificateLookup) reportAge() {
	c, now := l.state.Certificate, time.Now()
	if c != nil && c.IsOverdue(now) && !l.hasReportedOverdue {
		l.hasReportedOverdue = true
		l.recordEvent("CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if c != nil && c.IsExpired(now) && !l.hasReportedExpired {
		l.hasReportedExpired = true
		l.recordEvent("CertificateExpired", "PodCertificate expired")
	}
}

func (l *podCertificateLookup) recordEvent(reason, message string) {
	if l.o.OnPodWarning != nil {
		l.o.OnPodWarning(l.pod, reason, message)
	}
}
