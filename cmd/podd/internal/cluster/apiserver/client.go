package apiserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
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
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"

	"podd/manifest"
)

// Options configures a client. OnRequest, Tracer, EventQPS and EventBurst are optional.
type Options struct {
	Version string // version of podd, for the User-Agent header
	// QPS and Burst limit the rate of requests other than heartbeats and events. QPS 0 means 5
	// requests per second.
	QPS, Burst int
	// EventQPS and EventBurst limit the rate of requests that send events. EventQPS 0 means no
	// limit.
	EventQPS, EventBurst int
	ContentType          string // media type of requests and responses, such as application/json
	// OnRequest is called after each request to the API server. code is the status code of the
	// response, or "<error>" if there was no response. host is the host and port of the API server.
	// Calls may be concurrent. It may be nil.
	OnRequest func(code, method, host string)
	// Tracer creates the spans of requests to the API server; nil means that there are none.
	Tracer trace.Tracer
}

// A Client sends requests to one API server as one user. It is safe for concurrent use. Its fields
// must not be changed while requests are in flight.
type Client struct {
	Core *rest.RESTClient // for the core group, except heartbeats and events; rate-limited
	// Heartbeats sends the status of the Node and Leases sends Leases. Neither is rate-limited.
	Heartbeats, Leases *rest.RESTClient
	Events             *rest.RESTClient // for events; with a separate rate limit
	// TokenReviews sends TokenReviews and AccessReviews sends SubjectAccessReviews about clients of
	// this node. Each has its own rate limit, so that a flood of reviews does not delay other
	// requests.
	TokenReviews, AccessReviews *rest.RESTClient
	runtimeClasses              *rest.RESTClient
	SigningRequests             *rest.RESTClient // for certificate signing requests; not rate-limited
	// Certificates is for ClusterTrustBundles and PodCertificateRequests. BetaCertificates is for
	// version v1beta1 of ClusterTrustBundles.
	Certificates, BetaCertificates *rest.RESTClient
	Storage                        *rest.RESTClient         // for CSIDrivers, CSINodes and VolumeAttachments
	watchNegotiator                runtime.ClientNegotiator // decodes the watch events of all API groups
	Host                           string                   // URL of the API server, for messages
	CADigest                       string                   // digest of the trusted CA, for FetchOrigin
	CloseConnections               func()                   // closes all connections; later requests open new connections
	renewalCount                   atomic.Int32             // incremented before a renewal of the client certificate closes the connections
}

// RequestTimeout is the timeout of a request. The kubelet has the same timeout for heartbeats.
const RequestTimeout = 10 * time.Second

// WriteTimeout is the timeout of a request that writes a pod or an event. It is long, because
// webhooks may delay the response for 30 s. The renewal of the Lease closes hanging connections earlier.
const WriteTimeout = 40 * time.Second

// New returns a client for config, and modifies config. It sends no request. certificate returns
// the client certificate for new connections, or nil if there is none. If certificate is nil, config
// determines the credential. client-go reloads the certificate and token files that config names.
func New(config *rest.Config, o *Options, certificate func() *tls.Certificate) (*Client, error) {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: RequestTimeout, KeepAlive: 30 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // client-go's default; if Proxy were nil, client-go would cache the transport forever
	}
	config.UserAgent = "podd/" + o.Version
	config.WarningHandler = rest.NoWarnings{}
	config.WrapTransport = o.wrapTransport(config.Host)
	config.ContentType = o.ContentType
	config.AcceptContentTypes = o.ContentType + ",application/json"
	c := &Client{Host: displayHost(config.Host), CloseConnections: dialer.CloseAll}
	if err := c.initRESTClients(config, o, certificate); err != nil {
		return nil, err
	}
	return c, nil
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

// newHTTPClient returns an HTTP client that uses the certificate that the function certificate returns,
// or the credential in config if certificate is nil.
func newHTTPClient(config *rest.Config, certificate func() *tls.Certificate) (*http.Client, error) {
	if certificate == nil {
		return rest.HTTPClientFor(config)
	}
	t, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	t.TLS.CertFile, t.TLS.KeyFile, t.TLS.CertData, t.TLS.KeyData = "", "", nil, nil
	t.TLS.GetCertHolder = &transport.GetCertHolder{GetCert: func() (*tls.Certificate, error) { return certificate(), nil }}
	rt, err := transport.New(t)
	return &http.Client{Transport: rt, Timeout: config.Timeout}, err
}

// CloseAfterRenewal closes all connections after a renewal of the client certificate, because they use
// the previous certificate. Later requests open new connections.
func (c *Client) CloseAfterRenewal() {
	c.renewalCount.Add(1)
	c.CloseConnections()
}

// initRESTClients creates the REST clients of c. They share connections.
func (c *Client) initRESTClients(config *rest.Config, o *Options, certificate func() *tls.Certificate) (err error) {
	shared, err := newHTTPClient(config, certificate)
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
	c.Core = newREST("/api", v1.SchemeGroupVersion, o.QPS, o.Burst)
	c.Heartbeats = newREST("/api", v1.SchemeGroupVersion, -1, 0)
	c.Events = newREST("/api", v1.SchemeGroupVersion, eventQPS(o.EventQPS), o.EventBurst)
	c.Leases = newREST("/apis", coordination.SchemeGroupVersion, -1, 0)
	c.TokenReviews = newREST("/apis", authentication.SchemeGroupVersion, o.QPS, o.Burst)
	c.runtimeClasses = newREST("/apis", nodes.SchemeGroupVersion, o.QPS, o.Burst)
	c.AccessReviews = newREST("/apis", authorization.SchemeGroupVersion, o.QPS, o.Burst)
	c.SigningRequests = newREST("/apis", certificates.SchemeGroupVersion, -1, 0)
	c.Certificates = newREST("/apis", certificates.SchemeGroupVersion, o.QPS, o.Burst)
	c.BetaCertificates = newREST("/apis", betaCertificates, o.QPS, o.Burst)
	c.Storage = newREST("/apis", storage.SchemeGroupVersion, o.QPS, o.Burst)
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

// NodeQuery returns a function that creates a list request for one Node. The selector is necessary,
// because a node may list and watch only its own Node.
func (c *Client) NodeQuery(name string) func() *rest.Request {
	return func() *rest.Request {
		return c.Core.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+name)
	}
}

// PodsQuery returns a function that creates a list request for the pods bound to a node. A node
// may watch only these pods.
func (c *Client) PodsQuery(node string) func() *rest.Request {
	return func() *rest.Request {
		return c.Core.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+node)
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

// ObjectQuery returns a function that creates a list request for one object. The node authorizer
// permits no other lists and watches.
func (c *Client) ObjectQuery(ref manifest.ObjectRef) func() *rest.Request {
	return func() *rest.Request {
		field := "metadata.name=" + ref.Name
		if ref.Kind == "RuntimeClass" {
			return c.runtimeClasses.Get().Resource("runtimeclasses").Param("fieldSelector", field)
		}
		return c.Core.Get().Namespace(ref.Namespace).Resource(strings.ToLower(ref.Kind)+"s").Param("fieldSelector", field)
	}
}

// DriversQuery returns a list request for all CSIDrivers, because pods may use any of them.
func (c *Client) DriversQuery() *rest.Request { return c.Storage.Get().Resource("csidrivers") }

// ServicesQuery returns a list request for all Services, because pods of any namespace may run on
// this node.
func (c *Client) ServicesQuery() *rest.Request { return c.Core.Get().Resource("services") }

// Do sends a request and decodes the response into an object. It returns an error if the response
// does not arrive within RequestTimeout.
func (c *Client) Do(ctx context.Context, r *rest.Request, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return c.DoWithoutTimeout(ctx, r, into)
}

// DoWithoutTimeout is like Do, but without RequestTimeout: the request may last until ctx is done.
// If into is nil, the response body is ignored.
func (c *Client) DoWithoutTimeout(ctx context.Context, r *rest.Request, into runtime.Object) error {
	result := c.doWithRetry(ctx, r)
	if into == nil {
		return c.WithHost(result.Error())
	}
	return c.WithHost(result.Into(into))
}

// doWithRetry sends a request. If a renewal of podd's certificate closes the connection during the
// request, doWithRetry sends the request once more.
func (c *Client) doWithRetry(ctx context.Context, r *rest.Request) rest.Result {
	renewals := c.renewalCount.Load()
	result := r.Do(ctx)
	if err := result.Error(); err != nil && !IsAPIError(err) && c.renewalCount.Load() != renewals {
		return r.Do(ctx)
	}
	return result
}

// WithHost returns err with the host of the API server, or nil if err is nil.
func (c *Client) WithHost(err error) error {
	if err == nil {
		return nil
	}
	return HostError{c.Host, err}
}
