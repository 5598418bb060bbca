package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/cmd/podd/internal/cluster/boundpods"
	"podd/cmd/podd/internal/cluster/configsource"
	"podd/cmd/podd/internal/cluster/credential"
	"podd/cmd/podd/internal/cluster/csinode"
	"podd/cmd/podd/internal/cluster/eventsender"
	"podd/cmd/podd/internal/cluster/expansion"
	"podd/cmd/podd/internal/cluster/inuse"
	"podd/cmd/podd/internal/cluster/lease"
	"podd/cmd/podd/internal/cluster/nodesync"
	"podd/cmd/podd/internal/cluster/objects"
	"podd/cmd/podd/internal/cluster/podwriter"
	"podd/cmd/podd/internal/cluster/review"
	"podd/cmd/podd/internal/cluster/volumelimit"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/server"
)

// Options configures a Cluster. The bools and all fields whose comment allows nil or 0 are optional. All
// other fields are required.
type Options struct {
	Credential credential.Config // configures the kubeconfig and the certificates of podd
	// RequestServingCert is set if podd requests and renews the serving certificate of the kubelet
	// API.
	RequestServingCert bool
	// Reviews configures how the API server authenticates and authorizes clients of the kubelet API.
	// If nil, podd does not send clients' requests to the API server for review.
	Reviews    *review.Options
	OriginFile string            // path of the file that stores which cluster has bound the pods
	Client     apiserver.Options // configures the requests

	NodeName string // name of the Node
	// IsNewHost reports whether no agent on this host has synced the Node or allocated devices before. If
	// the Node exists, it describes an earlier host with the same name, and its extended resources are
	// set to 0.
	IsNewHost     bool
	Node          nodesync.Config // describes the Node
	LeaseDuration time.Duration   // duration of the node's Lease, in whole seconds

	// Events is the source of the events that are sent to the API server. If nil, no events are
	// sent.
	Events server.EventLog
	// CSI provides the CSI drivers of this node. If nil, the node has none.
	CSI Drivers
	// OnProblem is called when the most important problem of the connection changes. Its argument
	// is the message of this problem, or "" when the last problem is solved. Calls are sequential.
	OnProblem    func(ctx context.Context, message string)
	OnRejected   func(ctx context.Context, all []podwriter.Rejection) // as in podwriter.Options
	OnPodWarning func(pod *v1.Pod, reason, message string)            // as in objects.Options; may be nil
	// OnSchedulable is called when the Node becomes unschedulable or schedulable. Calls are sequential.
	// It may be nil.
	OnSchedulable func(schedulable bool)
	// OnConfigSource is called when the annotation podd/config-source of the Node, or the ConfigMap that it
	// names, has changed, as in configsource.Follower. A call that blocks also delays the use of a new
	// kubeconfig and the end of Run. If OnConfigSource is nil, podd sends no requests for the ConfigMap.
	OnConfigSource func(configsource.Source)
	OnStatusSynced func(took time.Duration) // as in podwriter.Options; may be nil
	Log            *slog.Logger
}

// A Cluster connects podd to an API server as a node of a Kubernetes cluster.
type Cluster struct {
	o           Options
	credentials *credential.Manager
	sharedState
	resolver           *objects.Resolver
	csiDriverPublisher csinode.Publisher // publishes the CSI drivers of this node
	// reviews sends TokenReviews and SubjectAccessReviews with the client of the current
	// connection. It is nil if reviews are disabled.
	reviews         *review.Reviews
	serviceAccounts objects.ServiceAccounts             // service accounts for credential providers
	hasSyncedNode   bool                                // a connection has synced the Node; only runConnection uses it
	servingIdentity *credential.Identity                // nil if podd does not request the serving certificate
	clientIdentity  atomic.Pointer[credential.Identity] // nil if podd does not renew the client certificate
	configSource    configsource.Follower
	problems        atomic.Pointer[problemReporter] // nil before the first connection
}

// sharedState contains the state that several parts of a Cluster use. It is safe for concurrent use.
type sharedState struct {
	// pods contains the pods bound to the node, including mirror pods.
	pods apiserver.Store[*v1.Pod]
	// watchCount is the number of watches of pods that have begun.
	watchCount watchable.Value[int]
	// nodes contains the Node if it exists. It is reset for each kubeconfig, because a new
	// kubeconfig may name another cluster.
	nodes apiserver.Store[*v1.Node]
	// deletions contains the UID of each pod that is being deleted. It maps the UID to the version of
	// the first batch from Source that contained the deletion.
	deletions      watchable.Value[map[types.UID]uint64]
	volumesInUse   inuse.Volumes              // the volumes that must not be detached
	attachFailures volumelimit.AttachFailures // attempts to attach volumes that have failed because of a limit
	// claimUpdates maps each PersistentVolumeClaim to the number of times that podd has updated the
	// status of the claim after an expansion. The count begins again with each connection.
	claimUpdates watchable.Value[map[types.NamespacedName]int]
	api          atomic.Pointer[apiserver.Client] // the client of the current connection; nil before the first connection
}

// New returns a Cluster. It sends no requests before Run is called.
func New(o Options) *Cluster {
	c := &Cluster{o: o, credentials: &credential.Manager{Config: o.Credential, NodeName: o.NodeName, Client: o.Client, Log: o.Log}}
	c.resolver = objects.NewResolver(objects.Options{
		NodeName: o.NodeName, EnableControllerAttachDetach: o.Node.EnableControllerAttachDetach, Pods: &c.pods, Nodes: &c.nodes,
		VolumesInUse: &c.volumesInUse, AttachFailures: &c.attachFailures, ClaimUpdates: &c.claimUpdates, OnPodWarning: o.OnPodWarning,
	})
	c.configSource = configsource.Follower{NodeName: o.NodeName, Nodes: &c.nodes, OnChange: o.OnConfigSource}
	if o.Reviews != nil {
		c.reviews = review.New(*o.Reviews, describeError, o.Log)
	}
	if o.RequestServingCert {
		c.servingIdentity = c.credentials.LoadServingIdentity()
	}
	return c
}

// Source returns the source of the pods bound to the node. Its method Run must run concurrently with
// Cluster.Run.
func (c *Cluster) Source() *boundpods.Source {
	return boundpods.New(boundpods.Options{
		NodeName: c.o.NodeName, OriginFile: c.o.OriginFile, Client: c.api.Load, Pods: &c.pods, Nodes: &c.nodes, Objects: c.resolver.Objects, Deletions: &c.deletions, Log: c.o.Log,
	})
}

// Reviews returns the Reviews that Options.Reviews configures, or nil if reviews are disabled. Reviews
// fail until Run has connected.
func (c *Cluster) Reviews() *review.Reviews { return c.reviews }

// ServiceAccounts returns the service accounts of the cluster. Requests fail until Run has connected.
func (c *Cluster) ServiceAccounts() *objects.ServiceAccounts { return &c.serviceAccounts }

// CountPodCertificates returns the number of volume sources with a pod certificate by state.
func (c *Cluster) CountPodCertificates() map[objects.PodCertificateState]int {
	return c.resolver.CountPodCertificates()
}

// Run writes the Node and the pods to the API server whenever they change, until ctx is done. state
// provides the pods of this node and, in View.NodeObject, the Node as it should be in the API server.
// Run retries after all errors and returns nil. It must be called once.
func (c *Cluster) Run(ctx context.Context, state server.Viewer) error {
	problems := newProblemReporter(&c.o)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { problems.run(ctx); return nil })
	group.Go(func() error { c.followSchedulable(ctx); return nil })
	group.Go(func() error { c.runConnections(ctx, state, problems); return nil })
	return group.Wait()
}

// runConnections connects with each valid version of the kubeconfig until ctx is done. It runs
// one connection at a time.
func (c *Cluster) runConnections(ctx context.Context, state server.Viewer, problems *problemReporter) {
	var b backoff.Backoff
	for ctx.Err() == nil {
		err := c.credentials.Bootstrap(ctx, problems.forPart(partIdentity))
		problems.report(ctx, partIdentity, err)
		if err != nil {
			backoff.Sleep(ctx, b.Next())
			continue
		}
		kubeconfig := c.credentials.KubeconfigVersion()
		api, clientIdentity, err := c.credentials.NewClient()
		problems.report(ctx, partKubeconfig, err)
		if err != nil {
			backoff.Sleep(ctx, b.Next())
			continue
		}
		b = backoff.Backoff{}
		c.runConnection(ctx, api, clientIdentity, state, problems, kubeconfig)
	}
}

// runConnection runs all parts of a connection with the client api. clientIdentity is the client
// certificate that podd renews, or nil if the kubeconfig determines the credential. kubeconfig is the
// version of the kubeconfig file that api uses. runConnection returns when ctx is done, or when the file
// has another version that is valid.
func (c *Cluster) runConnection(ctx context.Context, api *apiserver.Client, clientIdentity *credential.Identity, state server.Viewer, problems *problemReporter, kubeconfig credential.FileVersion) {
	defer api.CloseConnections()
	c.api.Store(api)
	c.problems.Store(problems)
	c.clientIdentity.Store(clientIdentity)
	c.serviceAccounts.SetClient(api)
	if c.reviews != nil {
		c.reviews.SetClient(api)
	}
	group, ctx := errgroup.WithContext(ctx)
	c.nodes.Set(apiserver.Snapshot[*v1.Node]{})
	lastPods, _ := c.pods.Get()
	ownNode := apiserver.Reflector[*v1.Node]{Client: api, Query: api.NodeQuery(c.o.NodeName), EmptyList: &v1.NodeList{}, Publish: c.nodes.Set, Report: problems.forPart(partNode)}
	ownPods := apiserver.Reflector[*v1.Pod]{Client: api, Query: api.PodsQuery(c.o.NodeName), EmptyList: &v1.PodList{}, Last: lastPods, Publish: c.pods.Set, Report: problems.forPart(partPods)}
	ownPods.WatchCount = &c.watchCount
	ownPods.Origin = func(ctx context.Context) (apiserver.Origin, error) { return api.FetchOrigin(ctx, c.o.NodeName) }
	w := podwriter.New(podwriter.Options{
		Client: api, State: state, NodeName: c.o.NodeName, IsAddressConfigured: c.o.Node.ProvidedIP != "", Pods: &c.pods, WatchCount: &c.watchCount, Nodes: &c.nodes, Deletions: &c.deletions,
		OnRejected: c.o.OnRejected, OnStatusSynced: c.o.OnStatusSynced, Log: c.o.Log,
	}) // before the first list of this connection, because the writer waits for this list
	c.volumesInUse.SetReported(nil)
	syncer := nodesync.New(nodesync.Options{
		Config: c.o.Node, NodeName: c.o.NodeName, Client: api, State: state, VolumesInUse: &c.volumesInUse, CSI: c.o.CSI,
		ResetsExtended: c.o.IsNewHost && !c.hasSyncedNode, Report: problems.forPart(partStatus), Log: c.o.Log,
	})
	group.Go(func() error { ownNode.Run(ctx); return nil })
	group.Go(func() error { ownPods.Run(ctx); return nil })
	group.Go(func() error { syncer.Run(ctx, &c.nodes); return nil })
	group.Go(func() error { w.Run(ctx); return nil })
	if c.o.Events != nil {
		group.Go(func() error { eventsender.New(api, c.o.Events, syncer.UID).Run(ctx); return nil })
	}
	group.Go(func() error {
		c.resolver.Run(ctx, api, problems.forPart(partServices), problems.forPart(partDrivers))
		return nil
	})
	group.Go(func() error {
		c.csiDriverPublisher.Run(ctx, csinode.Options{Client: api, NodeName: c.o.NodeName, CSI: c.o.CSI, Nodes: &c.nodes, Report: problems.forPart(partCSINode)})
		return nil
	})
	if c.o.OnConfigSource != nil {
		group.Go(func() error { c.configSource.Run(ctx, api, problems.forPart(partConfigSource)); return nil })
	}
	if c.o.CSI != nil {
		expansions := &expansion.Reporter{Client: api, Volumes: c.o.CSI, Objects: c.resolver.Objects, ClaimUpdates: &c.claimUpdates}
		group.Go(func() error { expansions.Run(ctx); return nil })
		limits := &volumelimit.Updater{Drivers: c.o.CSI, Specs: c.resolver.Drivers, Failures: &c.attachFailures, Log: c.o.Log}
		group.Go(func() error { limits.Run(ctx); return nil })
	}
	group.Go(func() error {
		(&lease.Renewer{Client: api, NodeName: c.o.NodeName, Duration: c.o.LeaseDuration, OwnerUID: syncer.UID, Report: problems.forPart(partLease)}).Run(ctx)
		return nil
	})
	if clientIdentity != nil {
		r := c.credentials.NewClientRenewer(api, clientIdentity, problems.forPart(partIdentity))
		group.Go(func() error { r.Run(ctx); return nil })
	}
	if c.servingIdentity != nil {
		r := c.credentials.NewServingRenewer(api, c.servingIdentity, c.servingAddresses(state), problems.forPart(partServing))
		group.Go(func() error { r.Run(ctx); return nil })
	}
	group.Go(func() error { return c.watchKubeconfig(ctx, kubeconfig, problems) })
	_ = group.Wait() // returns after a change of the kubeconfig or when ctx is done
	c.hasSyncedNode = c.hasSyncedNode || syncer.IsSynced()
}

// watchKubeconfig returns an error when the kubeconfig file has a valid version other than kubeconfig, or
// nil when ctx is done. It reports the errors of invalid versions.
func (c *Cluster) watchKubeconfig(ctx context.Context, kubeconfig credential.FileVersion, problems *problemReporter) error {
	for backoff.Sleep(ctx, credential.CheckInterval) {
		mustReconnect, err := c.credentials.MustReconnect(kubeconfig)
		if mustReconnect {
			return context.Canceled // cancels the other parts of the connection
		}
		problems.report(ctx, partKubeconfig, err)
	}
	return nil
}

// Reachable reports whether the API server responds on the current connection. Reachable returns false
// before the first connection, and after the start of each connection until the Node was listed. It also
// returns false while a part of the connection has a problem because the API server does not respond or
// has no trusted certificate. An error response is a response. Reachable may be called concurrently.
func (c *Cluster) Reachable() bool {
	nodes, _ := c.nodes.Get()
	problems := c.problems.Load()
	return nodes.ListCount > 0 && problems != nil && !problems.isUnreachable.Load()
}
