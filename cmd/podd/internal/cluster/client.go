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
	core *rest.RESTClient // rate-limited, for everything but heartbeats
	// heartbeats and leases keep the node alive and are not rate-limited.
	heartbeats, leases *rest.RESTClient
	events             *rest.RESTClient // with a separate rate limit
	// tokens and access review the clients of this node. Each has its own rate limit, so that
	// a flood of reviews does not delay other requests.
	tokens, access *rest.RESTClient
	classes        *rest.RESTClient
	requests       *rest.RESTClient // certificate signing requests
	storage        *rest.RESTClient
	streams        runtime.ClientNegotiator // decodes watches of all groups
	host           string                   // host of the API server for messages
	authority      string                   // digest of the trusted CA
	close          func()                   // closes all connections; later requests open new ones
	// identity is the client certificate that podd renews, or nil if the kubeconfig
	// determines the credential. renewed is incremented before a renewal closes the
	// connections.
	identity *identity
	renewed  atomic.Int32
}

// requestTime limits a request. It is the kubelet's limit for heartbeats.
const requestTime = 10 * time.Second

// connect reads the kubeconfig and returns a client, without a request. All credentials
// of client-go are supported; it reloads the files of certificates and tokens.
func connect(o *Options) (*client, error) {
	config, err := read(o.Kubeconfig)
	if err != nil {
		return nil, configError{fmt.Errorf("reading --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	c := newClient(config, o)
	if c.authority, err = authorityOf(config); err != nil {
		return nil, configError{fmt.Errorf("using --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	if c.identity, err = o.identity(config); err != nil {
		return nil, configError{fmt.Errorf("taking the certificate of --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	if err := c.open(config, o); err != nil {
		return nil, configError{fmt.Errorf("using --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	return c, nil
}

// newClient returns a client that has not been opened.
func newClient(config *rest.Config, o *Options) *client {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: requestTime, KeepAlive: 30 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // the default, set because client-go caches the transport of configurations without it forever
	}
	config.UserAgent = "podd/" + o.Version
	config.WarningHandler = rest.NoWarnings{}
	config.ContentType = o.ContentType
	config.AcceptContentTypes = o.ContentType + ",application/json"
	return &client{host: displayHost(config.Host), close: dialer.CloseAll}
}

// open creates the REST clients, which share connections.
func (c *client) open(config *rest.Config, o *Options) (err error) {
	shared, err := c.identity.httpClient(config)
	if err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(scheme()).WithoutConversion()
	c.streams = runtime.NewClientNegotiator(codecs, v1.SchemeGroupVersion) // no conversion between versions
	of := func(path string, group schema.GroupVersion, qps, burst int) (r *rest.RESTClient) {
		if err != nil {
			return nil
		}
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion, config.NegotiatedSerializer = path, &group, codecs
		config.QPS, config.Burst = float32(qps), burst
		r, err = rest.RESTClientForConfigAndClient(config, shared)
		return r
	}
	c.core = of("/api", v1.SchemeGroupVersion, o.QPS, o.Burst)
	c.heartbeats = of("/api", v1.SchemeGroupVersion, -1, 0)
	c.events = of("/api", v1.SchemeGroupVersion, eventQPS(o.EventQPS), o.EventBurst)
	c.leases = of("/apis", coordination.SchemeGroupVersion, -1, 0)
	c.tokens = of("/apis", authentication.SchemeGroupVersion, o.QPS, o.Burst)
	c.classes = of("/apis", nodes.SchemeGroupVersion, o.QPS, o.Burst)
	c.access = of("/apis", authorization.SchemeGroupVersion, o.QPS, o.Burst)
	c.requests = of("/apis", certificates.SchemeGroupVersion, -1, 0)
	c.storage = of("/apis", storage.SchemeGroupVersion, o.QPS, o.Burst)
	return err
}

// eventQPS returns qps as client-go expects it: the kubelet's configuration uses 0 for no
// limit.
func eventQPS(qps int) int {
	if qps == 0 {
		return -1
	}
	return qps
}

// scheme contains only the types that are used, because whole API groups would need
// memory.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1.SchemeGroupVersion, &v1.Node{}, &v1.NodeList{}, &v1.Pod{}, &v1.PodList{},
		&v1.ConfigMap{}, &v1.ConfigMapList{}, &v1.Secret{}, &v1.SecretList{}, &v1.Service{}, &v1.ServiceList{},
		&v1.PersistentVolumeClaim{}, &v1.PersistentVolume{}, &v1.Event{})
	s.AddKnownTypes(nodes.SchemeGroupVersion, &nodes.RuntimeClass{}, &nodes.RuntimeClassList{})
	s.AddKnownTypes(storage.SchemeGroupVersion, &storage.CSIDriver{}, &storage.CSIDriverList{}, &storage.CSINode{}, &storage.VolumeAttachment{})
	s.AddKnownTypes(coordination.SchemeGroupVersion, &coordination.Lease{})
	s.AddKnownTypes(authentication.SchemeGroupVersion, &authentication.TokenReview{}, &authentication.TokenRequest{})
	s.AddKnownTypes(authorization.SchemeGroupVersion, &authorization.SubjectAccessReview{})
	s.AddKnownTypes(certificates.SchemeGroupVersion, &certificates.CertificateSigningRequest{})
	metav1.AddToGroupVersion(s, v1.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, coordination.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, authentication.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, nodes.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, storage.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, authorization.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, certificates.SchemeGroupVersion)
	return s
}

// node selects one node, because the API server allows a node to watch only itself.
func (c *client) node(name string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+name)
	}
}

// podsOnNode selects the pods bound to a node, for the same reason.
func (c *client) podsOnNode(node string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+node)
	}
}

// displayHost returns a URL without parts that may be secret.
func displayHost(host string) string {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return "the kubeconfig's server"
	}
	return u.Scheme + "://" + u.Host
}

// do sends a request, which must succeed within requestTime.
func (c *client) do(ctx context.Context, r *rest.Request, answer runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.doUntil(ctx, r, answer)
}

// doUntil sends a request until ctx is done. If into is nil, the response body is
// ignored.
func (c *client) doUntil(ctx context.Context, r *rest.Request, into runtime.Object) error {
	result := c.doWithRetry(ctx, r)
	if into == nil {
		return c.withHost(result.Error())
	}
	return c.withHost(result.Into(into))
}

// doWithRetry repeats a request once if a renewal of podd's certificate has closed its
// connection.
func (c *client) doWithRetry(ctx context.Context, r *rest.Request) rest.Result {
	as := c.renewed.Load()
	result := r.Do(ctx)
	if err := result.Error(); err != nil && !isAPIError(err) && c.renewed.Load() != as {
		return r.Do(ctx)
	}
	return result
}

// withHost adds the host to an error. It returns nil for nil.
func (c *client) withHost(err error) error {
	if err == nil {
		return nil
	}
	return hostError{c.host, err}
}
