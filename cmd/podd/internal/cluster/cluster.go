package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server"
)

// Options configures a Cluster. All fields but the booleans, Taints, ProviderID,
// ProvidedIP, BootstrapKubeconfig and those documented as optional are required.
type Options struct {
	Kubeconfig string // path
	// BootstrapKubeconfig is the path of a kubeconfig with which podd requests a client
	// certificate and writes Kubeconfig, if that has no valid credential; "" disables this.
	BootstrapKubeconfig string
	// CertDir contains the certificates that podd requests. RotateCertificates enables the
	// renewal of the client certificate.
	CertDir            string
	RotateCertificates bool
	Origin             string // path of the file that identifies the cluster of the pods
	Version            string // version of podd for the User-Agent
	// QPS and Burst limit requests other than heartbeats. QPS 0 means 5.
	QPS, Burst int
	// EventQPS and EventBurst limit requests for events. EventQPS 0 means no limit.
	EventQPS, EventBurst int
	ContentType          string

	Node       string // name of the node
	Register   bool   // create the Node if it does not exist
	Taints     []v1.Taint
	ProviderID string
	// ExternalCloud lets a cloud controller set the addresses and remove the initial taint.
	// ProvidedIP is passed to it: the addresses that the user has set, or "".
	ExternalCloud bool
	ProvidedIP    string
	AttachDetach  bool // the attach-detach controller attaches volumes

	// UpdateFrequency is the interval at which the status of the Node is compared with that of
	// this node. ReportFrequency is the interval after which an unchanged status is sent again.
	UpdateFrequency, ReportFrequency time.Duration
	Lease                            time.Duration // whole seconds

	// Events is the source of events; nil sends none.
	Events server.EventLog
	// OnRenewal is called after each attempt to obtain a certificate: the serving certificate,
	// or else the client certificate. issued is the NotBefore time of the previous one, zero if
	// there was none. It may be called concurrently and may be nil.
	OnRenewal func(serving bool, issued time.Time, err error)
	// CSI returns the CSI drivers of this node; may be nil.
	CSI Drivers
	// OnProblem is called with the message of the most important problem of the connection when
	// it changes, and with "" when there is none any more. Calls are sequential.
	OnProblem func(ctx context.Context, message string)
	// OnRejected is called with all pods that the API server rejects, sorted by name, when they
	// change. Calls are sequential.
	OnRejected func(ctx context.Context, all []Rejection)
	Log        *slog.Logger
}

// checkInterval is the interval between checks of the kubeconfig for changes.
const checkInterval = 10 * time.Second

// A Cluster makes podd a node of a cluster.
type Cluster struct {
	o Options
	// pods contains the pods bound to the node, including mirror pods.
	pods watchable[snapshot[*v1.Pod]]
	// watchCount is the number of watches of pods that have begun.
	watchCount watchable[int]
	// nodes contains the Node if it exists. It is reset for each kubeconfig, which may be
	// that of another cluster.
	nodes watchable[snapshot[*v1.Node]]
	// deletions maps the UID of each pod that the source has emitted as deleted to the version of
	// the first such batch.
	deletions watchable[map[types.UID]uint64]
	// objects contains the objects that pods refer to.
	objects  watchable[manifest.Objects]
	resolver resolver
	inUse    volumesInUse // the volumes that must not be detached
	drivers  registrar    // publishes the CSI drivers of this node
	// growths counts for each claim the updates of its status after an expansion.
	growths watchable[map[types.NamespacedName]int]
	// state contains the pods of this node and, in View.NodeObject, its Node.
	state server.Viewer
	// reviews uses the client of each connection; nil if reviews are disabled.
	reviews        *Reviews
	serving        *identity                // nil: the serving certificate is not requested
	clientIdentity atomic.Pointer[identity] // nil: the client certificate is not renewed
}

// New returns a Cluster. It sends no requests.
func New(o Options) *Cluster { return &Cluster{o: o} }

// Run keeps the node in the cluster up to date with state until ctx is done. It retries all
// errors. It must be called once.
func (c *Cluster) Run(ctx context.Context, state server.Viewer) error {
	c.state = state
	s := newProblemReporter(&c.o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.run(ctx); return nil })
	group.Go(func() error { c.runConnections(ctx, s); return nil })
	return group.Wait()
}

// runConnections runs one connection after the other, each with a valid kubeconfig.
func (c *Cluster) runConnections(ctx context.Context, s *problemReporter) {
	var b backoff
	for ctx.Err() == nil {
		err := c.o.bootstrap(ctx, s)
		s.report(ctx, partIdentity, err)
		if err != nil {
			sleep(ctx, b.next())
			continue
		}
		kubeconfig := statFile(c.o.Kubeconfig)
		api, err := connect(&c.o)
		s.report(ctx, partKubeconfig, err)
		if err != nil {
			sleep(ctx, b.next())
			continue
		}
		b = backoff{}
		c.runConnection(ctx, api, s, kubeconfig)
	}
}

// runConnection uses one client until the kubeconfig differs from the version kubeconfig and
// is valid, or ctx is done.
func (c *Cluster) runConnection(ctx context.Context, api *client, s *problemReporter, kubeconfig fileStamp) {
	defer api.close()
	c.clientIdentity.Store(api.identity)
	if c.reviews != nil {
		c.reviews.use(api)
	}
	group, ctx := errgroup.WithContext(ctx)
	c.nodes.set(snapshot[*v1.Node]{})
	ownNode := reflector[*v1.Node]{client: api, query: api.node(c.o.Node), list: &v1.NodeList{}, store: &c.nodes, reporter: s, part: partNode}
	ownPods := reflector[*v1.Pod]{client: api, query: api.podsOnNode(c.o.Node), list: &v1.PodList{}, store: &c.pods, reporter: s, part: partPods}
	ownPods.watches = &c.watchCount
	ownPods.origin = func(ctx context.Context) (origin, error) { return api.fetchOrigin(ctx, c.o.Node) }
	w := newWriter(c, api) // before the first list of this connection
	c.inUse.setReported(nil)
	syncer := &nodeSyncer{o: &c.o, state: c.state, c: api, problems: s, inUse: &c.inUse}
	group.Go(func() error { ownNode.run(ctx); return nil })
	group.Go(func() error { ownPods.run(ctx); return nil })
	group.Go(func() error { syncer.run(ctx, &c.nodes); return nil })
	group.Go(func() error { w.run(ctx); return nil })
	if c.o.Events != nil {
		group.Go(func() error { newEventSender(api, c.o.Events).run(ctx); return nil })
	}
	group.Go(func() error {
		c.resolver.run(ctx, api, c, s)
		return nil
	})
	group.Go(func() error { c.drivers.run(ctx, api, c, s); return nil })
	if c.o.CSI != nil {
		group.Go(func() error { c.reportGrowth(ctx, api); return nil })
	}
	group.Go(func() error { (&leaseRenewer{o: &c.o, c: api, problems: s, owner: &syncer.uid}).run(ctx); return nil })
	if api.identity != nil {
		r := &renewer{o: &c.o, c: api, problems: s, purpose: clientPurpose, identity: api.identity, template: c.o.clientTemplate, onRenewed: api.renew}
		group.Go(func() error { r.run(ctx); return nil })
	}
	if c.serving != nil {
		r := &renewer{o: &c.o, c: api, problems: s, purpose: servingPurpose, identity: c.serving, template: c.servingTemplate(&c.nodes), onRenewed: func() {}}
		group.Go(func() error { r.run(ctx); return nil })
	}
	group.Go(func() error {
		for sleep(ctx, checkInterval) {
			outdated, err := c.o.isOutdated(kubeconfig)
			if outdated {
				return context.Canceled // cancels the other goroutines
			}
			s.report(ctx, partKubeconfig, err)
		}
		return nil
	})
	_ = group.Wait() // ends after a change or with ctx
}
