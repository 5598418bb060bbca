package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodes "k8s.io/api/node/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// A client sends requests to one API server as one user. It is safe for concurrent use.
type client struct {
	core *rest.RESTClient // for the core group, except heartbeats and events; rate-limited
	// heartbeats sends the status of the Node and leases sends Leases. Neither is rate-limited.
	heartbeats, leases *rest.RESTClient
	events             *rest.RESTClient // for events; with a separate rate limit
	// tokenReviews sends TokenReviews and accessReviews sends SubjectAccessReviews about clients of
	// this node. Each has its own rate limit, so that a flood of reviews does not delay other
	// requests.
	tokenReviews, accessReviews *rest.RESTClient
	runtimeClasses              *rest.RESTClient
	signingRequests             *rest.RESTClient // for certificate signing requests; not rate-limited
	// certificates is for ClusterTrustBundles and PodCertificateRequests. betaCertificates is for
	// version v1beta1 of ClusterTrustBundles.
	certificates, betaCertificates *rest.RESTClient
	storage                        *rest.RESTClient         // for CSIDrivers, CSINodes and VolumeAttachments
	watchNegotiator                runtime.ClientNegotiator // decodes the watch events of all API groups
	host                           string                   // URL of the API server, for messages
	caDigest                       string                   // digest of the trusted CA
	closeConnections               func()                   // closes all connections; later requests open new connections
	// identity is the client certificate that podd renews, or nil if the kubeconfig determines the
	// credential. renewalCount is incremented before a renewal closes the connections.
	identity     *identity
	renewalCount atomic.Int32
}

// requestTimeout is the timeout of a request. The kubelet has the same timeout for heartbeats.
const requestTimeout = 10 * time.Second

// newClientFromKubeconfig reads the kubeconfig and returns a client. It sends no request. client-go
// reloads the certificate and token files that the kubeconfig names.
func newClientFromKubeconfig(o *Options) (*client, error) {
	config, err := readKubeconfig(o.Kubeconfig)
	if err != nil {
		return nil, kubeconfigError{fmt.Errorf("reading --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	c := newClient(config, o)
	if c.caDigest, err = authorityDigest(config); err != nil {
		return nil, kubeconfigError{fmt.Errorf("using --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	if c.identity, err = o.chooseIdentity(config); err != nil {
		return nil, kubeconfigError{fmt.Errorf("loading the client certificate of --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	if err := c.initRESTClients(config, o); err != nil {
		return nil, kubeconfigError{fmt.Errorf("using --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	return c, nil
}

// newClient returns a client for config, and modifies config. The client cannot send requests until
// initRESTClients has created its REST clients.
func newClient(config *rest.Config, o *Options) *client {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: requestTimeout, KeepAlive: 30 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // client-go's default; if Proxy were nil, client-go would cache the transport forever
	}
	config.UserAgent = "podd/" + o.Version
	config.WarningHandler = rest.NoWarnings{}
	config.WrapTransport = o.wrapTransport(config.Host)
	config.ContentType = o.ContentType
	config.AcceptContentTypes = o.ContentType + ",application/json"
	return &client{host: displayHost(config.Host), closeConnections: dialer.CloseAll}
}

// wrapTransport returns a function that adds the counter and the tracer of requests to a transport. host
// is the URL of the API server.
func (o *Options) wrapTransport(host string) func(http.RoundTripper) http.RoundTripper {
	return func(t http.RoundTripper) http.RoundTripper {
		if o.OnRequest != nil {
			t = &countingTransport{t, o.OnRequest}
		}
		if o.Tracer != nil {
			t = &tracingTransport{t, o.Tracer, basePath(host)}
		}
		return t
	}
}

// initRESTClients creates the REST clients of c. They share connections.
func (c *client) initRESTClients(config *rest.Config, o *Options) (err error) {
	shared, err := c.identity.newHTTPClient(config)
	if err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(newScheme()).WithoutConversion()
	c.watchNegotiator = runtime.NewClientNegotiator(codecs, v1.SchemeGroupVersion) // the codecs do not convert objects to other API versions
	newREST := func(path string, group schema.GroupVersion, qps, burst int) (r *rest.RESTClient) {
		if err != nil {
			return nil
		}
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion, config.NegotiatedSerializer = path, &group, codecs
		config.QPS, config.Burst = float32(qps), burst
		r, err = rest.RESTClientForConfigAndClient(config, shared)
		return r
	}
	c.core = newREST("/api", v1.SchemeGroupVersion, o.QPS, o.Burst)
	c.heartbeats = newREST("/api", v1.SchemeGroupVersion, -1, 0)
	c.events = newREST("/api", v1.SchemeGroupVersion, eventQPS(o.EventQPS), o.EventBurst)
	c.leases = newREST("/apis", coordination.SchemeGroupVersion, -1, 0)
	c.tokenReviews = newREST("/apis", authentication.SchemeGroupVersion, o.QPS, o.Burst)
	c.runtimeClasses = newREST("/apis", nodes.SchemeGroupVersion, o.QPS, o.Burst)
	c.accessReviews = newREST("/apis", authorization.SchemeGroupVersion, o.QPS, o.Burst)
	c.signingRequests = newREST("/apis", certificates.SchemeGroupVersion, -1, 0)
	c.certificates = newREST("/apis", certificates.SchemeGroupVersion, o.QPS, o.Burst)
	c.betaCertificates = newREST("/apis", betaCertificates, o.QPS, o.Burst)
	c.storage = newREST("/apis", storage.SchemeGroupVersion, o.QPS, o.Burst)
	return err
}

// eventQPS returns the rate limit for client-go. qps is the limit in the configuration, where 0
// means no limit. In client-go, -1 means no limit.
func eventQPS(qps int) int {
	if qps == 0 {
		return -1
	}
	return qps
}

// betaCertificates is the version v1beta1 of the API group certificates.k8s.io. ClusterTrustBundles
// have the same fields in v1beta1 and v1, so the types of v1 serve both versions. The package with
// the types of v1beta1 would add 200 KB to the binary.
var betaCertificates = schema.GroupVersion{Group: certificates.GroupName, Version: "v1beta1"}

// newScheme returns a scheme that contains only the types that this package uses, because entire
// API groups would need more memory.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1.SchemeGroupVersion, &v1.Node{}, &v1.NodeList{}, &v1.Pod{}, &v1.PodList{},
		&v1.ConfigMap{}, &v1.ConfigMapList{}, &v1.Secret{}, &v1.SecretList{}, &v1.Service{}, &v1.ServiceList{},
		&v1.PersistentVolumeClaim{}, &v1.PersistentVolume{}, &v1.ServiceAccount{}, &v1.Event{})
	s.AddKnownTypes(nodes.SchemeGroupVersion, &nodes.RuntimeClass{}, &nodes.RuntimeClassList{})
	s.AddKnownTypes(storage.SchemeGroupVersion, &storage.CSIDriver{}, &storage.CSIDriverList{}, &storage.CSINode{}, &storage.VolumeAttachment{})
	s.AddKnownTypes(coordination.SchemeGroupVersion, &coordination.Lease{})
	s.AddKnownTypes(authentication.SchemeGroupVersion, &authentication.TokenReview{}, &authentication.TokenRequest{})
	s.AddKnownTypes(authorization.SchemeGroupVersion, &authorization.SubjectAccessReview{})
	s.AddKnownTypes(certificates.SchemeGroupVersion, &certificates.CertificateSigningRequest{}, &certificates.ClusterTrustBundle{}, &certificates.ClusterTrustBundleList{},
		&certificates.PodCertificateRequest{}, &certificates.PodCertificateRequestList{})
	s.AddKnownTypes(betaCertificates, &certificates.ClusterTrustBundle{}, &certificates.ClusterTrustBundleList{})
	metav1.AddToGroupVersion(s, v1.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, coordination.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, authentication.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, nodes.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, storage.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, authorization.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, certificates.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, betaCertificates)
	return s
}

// nodeQuery returns a function that creates a list request for one Node. The selector is necessary,
// because a node may list and watch only its own Node.
func (c *client) nodeQuery(name string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+name)
	}
}

// podsQuery returns a function that creates a list request for the pods bound to a node. A node
// may watch only these pods.
func (c *client) podsQuery(node string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+node)
	}
}

// displayHost returns the scheme and host of the server's URL for messages. The other parts of
// the URL may be secret.
func displayHost(host string) string {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return "the server of the kubeconfig"
	}
	return u.Scheme + "://" + u.Host
}

// do sends a request and decodes the response into an object. It returns an error if the response
// does not arrive within requestTimeout.
func (c *client) do(ctx context.Context, r *rest.Request, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.doWithoutTimeout(ctx, r, into)
}

// doWithoutTimeout is like do, but without requestTimeout: the request may last until ctx is done.
// If into is nil, the response body is ignored.
func (c *client) doWithoutTimeout(ctx context.Context, r *rest.Request, into runtime.Object) error {
	result := c.doWithRetry(ctx, r)
	if into == nil {
		return c.withHost(result.Error())
	}
	return c.withHost(result.Into(into))
}

// doWithRetry sends a request. If a renewal of podd's certificate closes the connection during the
// request, doWithRetry sends the request once more.
func (c *client) doWithRetry(ctx context.Context, r *rest.Request) rest.Result {
	renewals := c.renewalCount.Load()
	result := r.Do(ctx)
	if err := result.Error(); err != nil && !isAPIError(err) && c.renewalCount.Load() != renewals {
		return r.Do(ctx)
	}
	return result
}

// withHost returns err with the host of the API server, or nil if err is nil.
func (c *client) withHost(err error) error {
	if err == nil {
		return nil
	}
	return hostError{c.host, err}
}
