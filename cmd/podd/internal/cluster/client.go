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

// client talks to one API server as one user. Safe for concurrent use.
type client struct {
	core *rest.RESTClient // limited in rate, as whatever is no sign of life
	// beats and leases are signs of life, which wait for nothing.
	beats, leases *rest.RESTClient
	events        *rest.RESTClient // have a limit of their own
	// tokens and access review clients of this node, each limited in rate by itself:
	// a flood of those holds up nothing else.
	tokens, access *rest.RESTClient
	classes        *rest.RESTClient
	requests       *rest.RESTClient // of certificates
	storage        *rest.RESTClient
	streams        runtime.ClientNegotiator // decodes watches of all of them
	host           string                   // of the API server, as users are shown it
	authority      string                   // whom it trusts to be the cluster, as a digest
	close          func()                   // every connection; they are made anew
	// identity is the pair by which podd is known, where that is renewed; nil: it is
	// what the kubeconfig says. renewed grows before that closes the connections.
	identity *identity
	renewed  atomic.Int32
}

// requestTime is how long a request may take. The kubelet gives its signs of life
// as much.
const requestTime = 10 * time.Second

// connect reads the kubeconfig and asks nobody yet. Every form is served that
// client-go knows: files of certificates and tokens are read again when they
// change.
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

// newClient is not open yet.
func newClient(config *rest.Config, o *Options) *client {
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: requestTime, KeepAlive: 30 * time.Second}).DialContext)
	config.Dial = dialer.DialContext
	if config.Proxy == nil {
		config.Proxy = http.ProxyFromEnvironment // the default, by which client-go keeps the transport of no client for ever
	}
	config.UserAgent = "podd/" + o.Version
	config.WarningHandler = rest.NoWarnings{}
	config.ContentType = o.ContentType
	config.AcceptContentTypes = o.ContentType + ",application/json"
	return &client{host: shownHost(config.Host), close: dialer.CloseAll}
}

// open shares connections among the clients.
func (c *client) open(config *rest.Config, o *Options) (err error) {
	shared, err := c.identity.httpClient(config)
	if err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(scheme()).WithoutConversion()
	c.streams = runtime.NewClientNegotiator(codecs, v1.SchemeGroupVersion) // nothing is converted to another
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
	c.beats = of("/api", v1.SchemeGroupVersion, -1, 0)
	c.events = of("/api", v1.SchemeGroupVersion, eventQPS(o.EventQPS), o.EventBurst)
	c.leases = of("/apis", coordination.SchemeGroupVersion, -1, 0)
	c.tokens = of("/apis", authentication.SchemeGroupVersion, o.QPS, o.Burst)
	c.classes = of("/apis", nodes.SchemeGroupVersion, o.QPS, o.Burst)
	c.access = of("/apis", authorization.SchemeGroupVersion, o.QPS, o.Burst)
	c.requests = of("/apis", certificates.SchemeGroupVersion, -1, 0)
	c.storage = of("/apis", storage.SchemeGroupVersion, o.QPS, o.Burst)
	return err
}

// eventQPS: the kubelet's configuration says 0 for no limit.
func eventQPS(qps int) int {
	if qps == 0 {
		return -1
	}
	return qps
}

// scheme knows what is asked for, and no more: whole groups would cost memory.
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

// node asks for a node alone: the API server allows a node no other.
func (c *client) node(name string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("nodes").Param("fieldSelector", "metadata.name="+name)
	}
}

// podsOf asks for the pods bound to a node, likewise.
func (c *client) podsOf(node string) func() *rest.Request {
	return func() *rest.Request {
		return c.core.Get().Resource("pods").Param("fieldSelector", "spec.nodeName="+node)
	}
}

// shownHost is a URL without what may be secret.
func shownHost(host string) string {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return "the kubeconfig's server"
	}
	return u.Scheme + "://" + u.Host
}

// into makes a request that ends within requestTime.
func (c *client) into(ctx context.Context, r *rest.Request, answer runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.answer(ctx, r, answer)
}

// answer makes one that ends with ctx; nil: its answer says nothing.
func (c *client) answer(ctx context.Context, r *rest.Request, into runtime.Object) error {
	result := c.try(ctx, r)
	if into == nil {
		return c.at(result.Error())
	}
	return c.at(result.Into(into))
}

// try makes a request, and again when a renewal of podd's certificate has cut it.
func (c *client) try(ctx context.Context, r *rest.Request) rest.Result {
	as := c.renewed.Load()
	result := r.Do(ctx)
	if err := result.Error(); err != nil && !answered(err) && c.renewed.Load() != as {
		return r.Do(ctx)
	}
	return result
}

// at is an error, if there is one, with where it comes from.
func (c *client) at(err error) error {
	if err == nil {
		return nil
	}
	return atError{c.host, err}
}
