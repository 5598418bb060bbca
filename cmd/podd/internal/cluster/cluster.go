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
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/server"
)

// Options configures a Cluster. The bools, Taints, ProviderID, ProvidedIP, BootstrapKubeconfig and
// all fields whose comment allows nil or 0 are optional. All other fields are required.
type Options struct {
	Kubeconfig string // path of the kubeconfig
	// BootstrapKubeconfig is the path of a kubeconfig. If Kubeconfig has no valid credential,
	// podd requests a client certificate with BootstrapKubeconfig and writes Kubeconfig. ""
	// disables this.
	BootstrapKubeconfig string
	// CertDir is the directory of the certificates that podd requests. If RotateCertificates is
	// set, podd renews the client certificate.
	CertDir            string
	RotateCertificates bool
	// RequestServingCert is set if podd requests and renews the serving certificate of the kubelet
	// API.
	RequestServingCert bool
	// Reviews configures how the API server authenticates and authorizes clients of the kubelet API.
	// If nil, podd does not send clients' requests to the API server for review.
	Reviews    *ReviewOptions
	OriginFile string            // path of the file that stores which cluster has bound the pods
	Client     apiserver.Options // configures the requests

	NodeName     string     // name of the Node
	RegisterNode bool       // create the Node if it does not exist
	Taints       []v1.Taint // taints of a Node that podd creates
	// Unschedulable is spec.unschedulable of a Node that podd creates.
	Unschedulable bool
	ProviderID    string // spec.providerID of a Node that podd creates; "" for none
	// HasExternalCloud is set if a cloud controller sets the addresses of the Node and removes its
	// initial taint. ProvidedIP contains the addresses that the user has configured, or "". podd
	// passes ProvidedIP to the cloud controller in an annotation of the Node.
	HasExternalCloud             bool
	ProvidedIP                   string
	EnableControllerAttachDetach bool // the attach-detach controller attaches the volumes of this node
	// IsNewHost reports whether no agent on this host has synced the Node or allocated devices before. If
	// the Node exists, it describes an earlier host with the same name, and its extended resources are
	// set to 0.
	IsNewHost bool
	// NodeSyncedFile is the path of an empty file that podd creates after it has synced the Node. If the
	// file exists, the host is not new.
	NodeSyncedFile string

	// UpdateFrequency is the interval at which podd compares the status of the Node in the API
	// server with the status of this node. ReportFrequency is the interval after which podd sends
	// an unchanged status again.
	UpdateFrequency, ReportFrequency time.Duration
	LeaseDuration                    time.Duration // duration of the node's Lease, in whole seconds

	// Events is the source of the events that are sent to the API server. If nil, no events are
	// sent.
	Events server.EventLog
	// OnRenewal is called after each attempt to obtain a certificate, with the error of the
	// attempt. serving is true for the serving certificate and false for the client certificate.
	// issued is the NotBefore time of the previous certificate, or zero. OnRenewal may be called
	// concurrently. It may be nil.
	OnRenewal func(serving bool, issued time.Time, err error)
	// CSI provides the CSI drivers of this node. If nil, the node has none.
	CSI Drivers
	// DisksInUse returns the names of the iSCSI and Fibre Channel volumes on this node. It may be nil. If
	// it returns an error, its result contains the names that it could read.
	DisksInUse func() ([]v1.UniqueVolumeName, error)
	// OnProblem is called when the most important problem of the connection changes. Its argument
	// is the message of this problem, or "" when the last problem is solved. Calls are sequential.
	OnProblem func(ctx context.Context, message string)
	// OnRejected is called when the set of pods that cannot be written to the API server changes.
	// Its argument contains all these pods, sorted by name. Calls are sequential.
	OnRejected func(ctx context.Context, all []Rejection)
	// OnPodWarning is called for each event of type Warning about a certificate of a bound pod. Calls
	// may be concurrent. It may be nil.
	OnPodWarning func(pod *v1.Pod, reason, message string)
	// OnSchedulable is called when the Node becomes unschedulable or schedulable. Calls are sequential.
	// It may be nil.
	OnSchedulable func(schedulable bool)
	// OnConfigSource is called when the annotation podd/config-source of the Node, or the ConfigMap that it
	// names, has changed since the last call. The first call is after the Node was read, also if the Node
	// has no annotation. An outage of the API server and the deletion of the Node cause no call. If changes
	// are fast, some of them may be skipped. Calls are sequential. A call that blocks delays later calls,
	// the use of a new kubeconfig and the end of Run. If OnConfigSource is nil, podd sends no requests for
	// the ConfigMap.
	OnConfigSource func(ConfigSource)
	// OnStatusSynced is called after the status of a pod was written to the API server. A status may
	// contain several changes of the pod; took is the time since the first of them. Calls are
	// sequential. It may be nil.
	OnStatusSynced func(took time.Duration)
	// OnRegistrationStep is called when a step of the registration of the node ends: before each attempt
	// to create the Node, after podd has created the Node, and after each status in which the Node is
	// ready. Calls are sequential. It may be nil.
	OnRegistrationStep func(step RegistrationStep, at time.Time)
	Log                *slog.Logger
}

// A RegistrationStep is a step of the registration of the node.
type RegistrationStep int

// The steps of the registration in their order.
const (
	RegistrationAttempted RegistrationStep = iota
	NodeRegistered
	NodeReady
)

func (o *Options) endRegistrationStep(step RegistrationStep, at time.Time) {
	if o.OnRegistrationStep != nil {
		o.OnRegistrationStep(step, at)
	}
}

// checkInterval is the interval between checks of the kubeconfig for changes.
const checkInterval = 10 * time.Second

// A Cluster connects podd to an API server as a node of a Kubernetes cluster.
type Cluster struct {
	o Options
	sharedState
	resolver           resolver
	csiDriverPublisher csiDriverPublisher // publishes the CSI drivers of this node
	// reviews sends TokenReviews and SubjectAccessReviews with the client of the current
	// connection. It is nil if reviews are disabled.
	reviews         *Reviews
	serviceAccounts ServiceAccounts          // service accounts for credential providers
	hasSyncedNode   bool                     // a connection has synced the Node; only runConnection uses it
	servingIdentity *identity                // nil if podd does not request the serving certificate
	clientIdentity  atomic.Pointer[identity] // nil if podd does not renew the client certificate
	// configSource is the argument of the last call of OnConfigSource, or nil before the first call. Only
	// followConfigSource of the current connection uses it.
	configSource *ConfigSource
	problems     atomic.Pointer[problemReporter] // nil before the first connection
}

// sharedState contains the state that several parts of a Cluster use. It is safe for concurrent use.
type sharedState struct {
	// pods contains the pods bound to the node, including mirror pods.
	pods watchable.Value[apiserver.Snapshot[*v1.Pod]]
	// watchCount is the number of watches of pods that have begun.
	watchCount watchable.Value[int]
	// nodes contains the Node if it exists. It is reset for each kubeconfig, because a new
	// kubeconfig may name another cluster.
	nodes watchable.Value[apiserver.Snapshot[*v1.Node]]
	// deletions contains the UID of each pod that is being deleted. It maps the UID to the version of
	// the first batch from Source that contained the deletion.
	deletions watchable.Value[map[types.UID]uint64]
	// objects contains the objects that pods refer to.
	objects         watchable.Value[manifest.Objects]
	volumesInUse    volumesInUse                            // the volumes that must not be detached
	limitErrors     watchable.Value[map[string]limitErrors] // by CSI driver
	podCertificates podCertificateStates
	// claimUpdates maps each PersistentVolumeClaim to the number of times that podd has updated the
	// status of the claim after an expansion.
	claimUpdates watchable.Value[map[types.NamespacedName]int]
	api          atomic.Pointer[apiserver.Client] // the client of the current connection; nil before the first connection
}

// New returns a Cluster. It sends no requests before Run is called.
func New(o Options) *Cluster {
	c := &Cluster{o: o}
	if o.Reviews != nil {
		c.reviews = newReviews(*o.Reviews, o.Log)
	}
	if o.RequestServingCert {
		c.servingIdentity = o.loadServingIdentity()
	}
	return c
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
		err := c.o.bootstrap(ctx, problems)
		problems.report(ctx, partIdentity, err)
		if err != nil {
			backoff.Sleep(ctx, b.Next())
			continue
		}
		kubeconfig := statFile(c.o.Kubeconfig)
		api, clientIdentity, err := newClientFromKubeconfig(&c.o)
		problems.report(ctx, partKubeconfig, err)
		if err != nil {
			backoff.Sleep(ctx, b.Next())
			continue
		}
		b = backoff.Backoff{}
		c.runConnection(ctx, api, clientIdentity, state, problems, kubeconfig)
	}
}

// runConnection runs all parts of a connection with the client api. clientIdentity is the
// client certificate that podd renews, or nil if the kubeconfig determines the credential. kubeconfig is
// the version of the kubeconfig file that api uses. runConnection returns when ctx is done, or when the file has
// another version that is valid.
func (c *Cluster) runConnection(ctx context.Context, api *apiserver.Client, clientIdentity *identity, state server.Viewer, problems *problemReporter, kubeconfig fileStamp) {
	defer api.CloseConnections()
	c.api.Store(api)
	c.problems.Store(problems)
	c.clientIdentity.Store(clientIdentity)
	c.serviceAccounts.client.Store(api)
	if c.reviews != nil {
		c.reviews.setClient(api)
	}
	group, ctx := errgroup.WithContext(ctx)
	c.nodes.Set(apiserver.Snapshot[*v1.Node]{})
	lastPods, _ := c.pods.Get()
	ownNode := apiserver.Reflector[*v1.Node]{Client: api, Query: api.NodeQuery(c.o.NodeName), EmptyList: &v1.NodeList{}, Publish: c.nodes.Set, Report: problems.forPart(partNode)}
	ownPods := apiserver.Reflector[*v1.Pod]{Client: api, Query: api.PodsQuery(c.o.NodeName), EmptyList: &v1.PodList{}, Last: lastPods, Publish: c.pods.Set, Report: problems.forPart(partPods)}
	ownPods.WatchCount = &c.watchCount
	ownPods.Origin = func(ctx context.Context) (apiserver.Origin, error) { return api.FetchOrigin(ctx, c.o.NodeName) }
	w := newPodWriter(&c.o, &c.sharedState, api, state) // before the first list of this connection, because the writer waits for this list
	c.volumesInUse.setReported(nil)
	syncer := &nodeSyncer{o: &c.o, state: state, c: api, problems: problems, volumesInUse: &c.volumesInUse, resetsExtended: c.o.IsNewHost && !c.hasSyncedNode}
	group.Go(func() error { ownNode.Run(ctx); return nil })
	group.Go(func() error { ownPods.Run(ctx); return nil })
	group.Go(func() error { syncer.run(ctx, &c.nodes); return nil })
	group.Go(func() error { w.run(ctx); return nil })
	if c.o.Events != nil {
		group.Go(func() error { newEventSender(api, c.o.Events).run(ctx); return nil })
	}
	group.Go(func() error {
		c.resolver.run(ctx, api, &c.o, &c.sharedState, problems)
		return nil
	})
	group.Go(func() error {
		c.csiDriverPublisher.run(ctx, api, &c.o, &c.nodes, problems.forPart(partCSINode))
		return nil
	})
	group.Go(func() error { c.followConfigSource(ctx, api, problems.forPart(partConfigSource)); return nil })
	if c.o.CSI != nil {
		group.Go(func() error { c.reportExpansions(ctx, api); return nil })
		limits := &volumeLimitUpdater{o: &c.o, drivers: &c.resolver.drivers, limitErrors: &c.limitErrors}
		group.Go(func() error { limits.run(ctx); return nil })
	}
	group.Go(func() error {
		(&leaseRenewer{o: &c.o, c: api, problems: problems, ownerUID: &syncer.uid}).run(ctx)
		return nil
	})
	if clientIdentity != nil {
		r := &certRenewer{o: &c.o, c: api, problems: problems, purpose: clientPurpose, identity: clientIdentity, template: c.o.clientTemplate, onRenewed: api.CloseAfterRenewal}
		group.Go(func() error { r.run(ctx); return nil })
	}
	if c.servingIdentity != nil {
		r := &certRenewer{o: &c.o, c: api, problems: problems, purpose: servingPurpose, identity: c.servingIdentity, template: c.servingTemplate(state, &c.nodes), onRenewed: func() {}}
		group.Go(func() error { r.run(ctx); return nil })
	}
	group.Go(func() error {
		for backoff.Sleep(ctx, checkInterval) {
			mustReconnect, err := c.o.mustReconnect(kubeconfig)
			if mustReconnect {
				return context.Canceled // cancels the other goroutines
			}
			problems.report(ctx, partKubeconfig, err)
		}
		return nil
	})
	_ = group.Wait() // returns after a change of the kubeconfig or when ctx is done
	c.hasSyncedNode = c.hasSyncedNode || syncer.isSynced
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
