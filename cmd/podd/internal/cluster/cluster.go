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

// Options say which node podd is of which cluster. All but the booleans, Taints,
// ProviderID, ProvidedIP and BootstrapKubeconfig are required.
type Options struct {
	Kubeconfig string // the file
	// BootstrapKubeconfig is the file by which podd asks for a certificate, and writes
	// Kubeconfig with it, when that gives podd no identity that is good; "": never.
	BootstrapKubeconfig string
	// CertDir has the certificates that podd asked for. RotateCertificates renews the
	// one by which podd is known.
	CertDir            string
	RotateCertificates bool
	Origin             string // the file that tells which cluster the pods here are from
	Version            string // podd's, for the API server's logs
	// QPS and Burst limit requests that are no signs of life; QPS 0 is 5.
	QPS, Burst int
	// EventQPS and EventBurst limit those about events; EventQPS 0: nothing does.
	EventQPS, EventBurst int
	ContentType          string

	Node       string // its name
	Register   bool   // make it where there is none
	Taints     []v1.Taint
	ProviderID string
	// ExternalCloud leaves the addresses and the first taint to a cloud controller,
	// which is told ProvidedIP, the addresses that the user gave, "" for none.
	ExternalCloud bool
	ProvidedIP    string
	AttachDetach  bool // the cluster's controller attaches volumes

	// UpdateFrequency is how often is looked whether the cluster's status is the
	// machine's, ReportFrequency how often it is sent though it is.
	UpdateFrequency, ReportFrequency time.Duration
	Lease                            time.Duration // whole seconds

	// Events has what happened; nil tells the cluster nothing of it.
	Events server.EventLog
	// Renewed is called by any goroutine with each attempt at another certificate, of the
	// node's own API or else of who podd is; nil: by none. made is when the one before
	// was, zero for none.
	Renewed func(serving bool, made time.Time, err error)
	// CSI is what this machine has of CSI drivers; nil: nothing.
	CSI Drivers
	// Told is called by one goroutine with what keeps the node from being one, for
	// users; "" when nothing does any more.
	Told func(ctx context.Context, trouble string)
	// Refused is called by one goroutine with what keeps the cluster from knowing
	// pods as they are, in order of their names, whenever that is another.
	Refused func(ctx context.Context, all []Refusal)
	Log     *slog.Logger
}

// lookEvery is how often the kubeconfig is looked at for changes.
const lookEvery = 10 * time.Second

// Cluster is the cluster that podd is a node of.
type Cluster struct {
	o Options
	// pods are those bound to the node, mirror pods among them.
	pods latest[sighting[*v1.Pod]]
	// watched counts the watches of them that began.
	watched latest[int]
	// nodes has the Node, if there is one. Each kubeconfig begins anew: it may be of
	// another cluster.
	nodes latest[sighting[*v1.Node]]
	// ending are the pods whose end the source told of, since which batch.
	ending latest[map[types.UID]uint64]
	// objects is what pods refer to by name, as far as it is known.
	objects  latest[manifest.Objects]
	resolver resolver
	inUse    inUse     // the volumes that are not to be detached
	drivers  registrar // has the cluster know the drivers of this machine
	// grew is how often podd has told of a claim that it grew.
	grew latest[map[types.NamespacedName]int]
	// state has what runs here, and in View.Machine the node as this machine is.
	state server.Viewer
	// reviews are told of each connection; nil: nobody asks for any.
	reviews *Reviews
	serving *identity                // of the node's own API; nil: it is not asked for
	known   atomic.Pointer[identity] // by which podd is; nil: by no certificate that is renewed
}

// New asks nobody anything yet.
func New(o Options) *Cluster { return &Cluster{o: o} }

// Run keeps the node until ctx is done, of what state tells. Nothing ends it earlier.
// It is called once.
func (c *Cluster) Run(ctx context.Context, state server.Viewer) error {
	c.state = state
	s := newSpeaker(&c.o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.run(ctx); return nil })
	group.Go(func() error { c.live(ctx, s); return nil })
	return group.Wait()
}

// live is one life after the other, each with a kubeconfig that can be read.
func (c *Cluster) live(ctx context.Context, s *speaker) {
	var b backoff
	for ctx.Err() == nil {
		err := c.o.bootstrap(ctx, s)
		s.report(ctx, ofIdentity, err)
		if err != nil {
			sleep(ctx, b.next())
			continue
		}
		seen := stamp(c.o.Kubeconfig)
		api, err := connect(&c.o)
		s.report(ctx, ofKubeconfig, err)
		if err != nil {
			sleep(ctx, b.next())
			continue
		}
		b = backoff{}
		c.liveWith(ctx, api, s, seen)
	}
}

// liveWith keeps the node until there is another kubeconfig than was seen.
func (c *Cluster) liveWith(ctx context.Context, api *client, s *speaker, seen fileStamp) {
	defer api.close()
	c.known.Store(api.identity)
	if c.reviews != nil {
		c.reviews.use(api)
	}
	group, ctx := errgroup.WithContext(ctx)
	c.nodes.set(sighting[*v1.Node]{})
	ownNode := follower[*v1.Node]{client: api, query: api.node(c.o.Node), list: &v1.NodeList{}, seen: &c.nodes, say: s, of: ofNode}
	ownPods := follower[*v1.Pod]{client: api, query: api.podsOf(c.o.Node), list: &v1.PodList{}, seen: &c.pods, say: s, of: ofPods}
	ownPods.watches = &c.watched
	ownPods.origin = func(ctx context.Context) (origin, error) { return api.origin(ctx, c.o.Node) }
	w := newWriter(c, api) // before anything is seen in this life
	c.inUse.report(nil)
	k := &keeper{o: &c.o, state: c.state, c: api, say: s, inUse: &c.inUse}
	group.Go(func() error { ownNode.run(ctx); return nil })
	group.Go(func() error { ownPods.run(ctx); return nil })
	group.Go(func() error { k.run(ctx, &c.nodes); return nil })
	group.Go(func() error { w.run(ctx); return nil })
	if c.o.Events != nil {
		group.Go(func() error { newTeller(api, c.o.Events).run(ctx); return nil })
	}
	group.Go(func() error {
		c.resolver.run(ctx, api, c, s)
		return nil
	})
	group.Go(func() error { c.drivers.run(ctx, api, c, s); return nil })
	if c.o.CSI != nil {
		group.Go(func() error { c.tellGrowth(ctx, api); return nil })
	}
	group.Go(func() error { (&lessee{o: &c.o, c: api, say: s, owner: &k.uid}).run(ctx); return nil })
	if api.identity != nil {
		r := &renewer{o: &c.o, c: api, say: s, to: toAsk, has: api.identity, wish: c.o.wishToAsk, took: api.renew}
		group.Go(func() error { r.run(ctx); return nil })
	}
	if c.serving != nil {
		r := &renewer{o: &c.o, c: api, say: s, to: toServe, has: c.serving, wish: c.wishToServe(&c.nodes), took: func() {}}
		group.Go(func() error { r.run(ctx); return nil })
	}
	group.Go(func() error {
		for sleep(ctx, lookEvery) {
			over, err := c.o.outdated(seen)
			if over {
				return context.Canceled // ends the others
			}
			s.report(ctx, ofKubeconfig, err)
		}
		return nil
	})
	_ = group.Wait() // of a change, or ctx
}
