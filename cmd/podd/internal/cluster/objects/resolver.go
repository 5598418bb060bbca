package objects

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	nodes "k8s.io/api/node/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/inuse"
	"podd/cmd/podd/internal/cluster/mirror"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/manifest/refs"
)

// A Resolver provides the objects that bound pods refer to. It runs one lookup for each object as
// long as a pod refers to the object. When the connection changes, the Resolver keeps results
// until lookups of the new connection replace them. The goroutine that calls Run owns the Resolver and
// receives the results of the lookups.
type Resolver struct {
	results map[manifest.ObjectRef]lookupResult
	podRefs map[*v1.Pod][]refs.Ref // the references of each pod in the last snapshot
	// services contains the Services of the cluster. servicesByNamespace maps each namespace to the
	// Services for which the pods in the namespace get environment variables. servicesByNamespace
	// is nil before the first list. lastServices is the snapshot from which servicesByNamespace was
	// computed.
	services            apiserver.Store[*v1.Service]
	lastServices        apiserver.Snapshot[*v1.Service]
	servicesByNamespace map[string]*manifest.Services
	// drivers contains the CSIDrivers of the cluster, and driverSpecs contains their specs by name.
	// driverSpecs is nil before the first list.
	drivers     apiserver.Store[*storage.CSIDriver]
	driverSpecs map[string]*storage.CSIDriverSpec
	published   manifest.Objects // the last published objects
	mustPublish bool             // the objects must be computed and published again

	o               *Options
	objects         watchable.Value[manifest.Objects] // the published objects; for readers in other goroutines
	podCertificates podCertificateStates

	// The following fields belong to one connection.
	client     *apiserver.Client
	lookups    map[manifest.ObjectRef]*lookup
	resultCh   chan lookupResult
	goroutines sync.WaitGroup // waits for the lookups and reflectors
}

// A lookupResult contains an object that a lookup has found, or the reason why the object is
// missing.
type lookupResult struct {
	sender  *lookup
	object  any                    // such as *v1.ConfigMap, *boundClaim or token; publishedObjects lists all types
	missing manifest.MissingObject // set if object is nil
}

// The types of lookup results that are not API objects.
type (
	token      manifest.Token    // a service account token
	attachment map[string]string // metadata of an attached volume
	boundClaim struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume // nil if the claim is not bound or the volume does not exist
	}
)

// Options configures a Resolver. The fields EnableControllerAttachDetach and OnPodWarning are
// optional.
type Options struct {
	NodeName                     string // name of the Node
	EnableControllerAttachDetach bool   // the attach-detach controller attaches the volumes of this node
	// Pods contains the pods bound to the node, including mirror pods. Nodes contains the Node if it
	// exists.
	Pods           *apiserver.Store[*v1.Pod]
	Nodes          *apiserver.Store[*v1.Node]
	VolumesInUse   *inuse.Volumes // the Resolver sets the volumes of the bound pods
	AttachFailures LimitRecorder
	// ClaimUpdates maps each PersistentVolumeClaim to the number of times that podd has updated the
	// status of the claim after an expansion. The count begins again with each connection.
	ClaimUpdates *watchable.Value[map[types.NamespacedName]int]
	// OnPodWarning is called for each event of type Warning about a certificate of a bound pod. Calls
	// may be concurrent. It may be nil.
	OnPodWarning func(pod *v1.Pod, reason, message string)
}

// A LimitRecorder counts, for each CSI driver, the attempts to attach a volume that failed because the
// node has reached a limit of attached volumes. It must be safe for concurrent use.
type LimitRecorder interface {
	// Record records an attempt and returns the new number of recorded attempts.
	Record(driver string) int
	// Handled returns the number of attempts that were recorded before the last completed update of the
	// limit began. It returns 0 if the driver requires no periodic updates.
	Handled(driver string) int
}

// NewResolver returns a Resolver. It sends no requests before Run is called.
func NewResolver(o Options) *Resolver { return &Resolver{o: &o} }

// Objects returns the objects that bound pods refer to, and a channel that is closed when the objects
// change. Until then, Objects returns the same channel. It may be called concurrently.
func (r *Resolver) Objects() (objects manifest.Objects, changed <-chan struct{}) {
	return r.objects.Get()
}

// Drivers returns the CSIDrivers of the cluster, and a channel that is closed when they change. It may be
// called concurrently.
func (r *Resolver) Drivers() (drivers apiserver.Snapshot[*storage.CSIDriver], changed <-chan struct{}) {
	return r.drivers.Get()
}

// Run looks up the objects for the bound pods with the client api, and publishes them, until ctx is done.
// It must not be called concurrently. It calls reportServices and reportDrivers after each attempt to list
// or watch Services and CSIDrivers; the error is nil after a success.
func (r *Resolver) Run(ctx context.Context, api *apiserver.Client, reportServices, reportDrivers func(context.Context, error)) {
	r.client, r.lookups, r.resultCh = api, map[manifest.ObjectRef]*lookup{}, make(chan lookupResult)
	if r.results == nil {
		r.results, r.mustPublish = map[manifest.ObjectRef]lookupResult{}, true
	}
	defer r.goroutines.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lastServices, _ := r.services.Get()
	lastDrivers, _ := r.drivers.Get()
	all := apiserver.Reflector[*v1.Service]{Client: api, Query: api.ServicesQuery, EmptyList: &v1.ServiceList{}, Last: lastServices, Publish: r.services.Set, Report: reportServices, WatchTimeout: apiserver.ObjectWatchTimeout}
	r.goroutines.Go(func() { all.Run(ctx) })
	drivers := apiserver.Reflector[*storage.CSIDriver]{Client: api, Query: api.DriversQuery, EmptyList: &storage.CSIDriverList{}, Last: lastDrivers, Publish: r.drivers.Set, Report: reportDrivers, WatchTimeout: apiserver.ObjectWatchTimeout}
	r.goroutines.Go(func() { drivers.Run(ctx) })
	for {
		bound, podsChanged := r.o.Pods.Get()
		services, servicesChanged := r.services.Get()
		drivers, driversChanged := r.drivers.Get()
		r.updateServices(services)
		r.updateDrivers(drivers)
		if r.mustPublish {
			r.published, r.mustPublish = r.publishedObjects(), false
			r.objects.Set(r.published)
		}
		if bound.ListCount > 0 {
			r.syncLookups(ctx, bound.Items)
		}
		if r.mustPublish {
			continue // publish before waiting, because syncLookups has removed results
		}
		select {
		case <-podsChanged:
		case <-servicesChanged:
		case <-driversChanged:
		case f := <-r.resultCh:
			r.handleResult(f)
		case <-ctx.Done():
			return
		}
	}
}

// handleResult applies a result and all further results that are available, so that they are
// published together. It ignores results of cancelled lookups.
func (r *Resolver) handleResult(f lookupResult) {
	for {
		if r.lookups[f.sender.ref] == f.sender {
			r.results[f.sender.ref], r.mustPublish = f, true
		}
		select {
		case f = <-r.resultCh:
		default:
			return
		}
	}
}

// An objectUse is a reference to an object, with a pod that contains the reference.
type objectUse struct {
	pod *v1.Pod
	ref refs.Ref
}

// syncLookups starts lookups of the objects that pods use, and cancels all other lookups.
func (r *Resolver) syncLookups(ctx context.Context, pods map[types.NamespacedName]*v1.Pod) {
	desired, uses := map[manifest.ObjectRef]objectUse{}, map[*v1.Pod][]refs.Ref{}
	volumes := inuse.Desired{Names: map[v1.UniqueVolumeName]bool{}, DriversWithoutAttachment: r.driversWithoutAttachment(), IsComplete: r.driverSpecs != nil}
	for _, pod := range pods {
		if !usesObjects(pod) {
			continue
		}
		podRefs, isCached := r.podRefs[pod]
		if !isCached {
			podRefs = refs.ListClusterPod(pod)
		}
		uses[pod] = podRefs
		for _, u := range append(slices.Clip(podRefs), refs.ListDriverRefs(&r.published, pod)...) {
			desired[u.Object] = objectUse{pod, u}
			if _, hasResult := r.results[u.Object]; !hasResult && u.Object.Kind == "PersistentVolumeClaim" {
				volumes.IsComplete = false
			}
			if u.Volume != "" {
				volumes.Names[u.Volume] = true
			}
		}
	}
	r.podRefs = uses
	r.o.VolumesInUse.SetDesired(volumes) // must be called before the lookups of attachments start, because these lookups read volumesInUse
	for ref, d := range desired {
		if r.lookups[ref] == nil {
			r.startLookup(ctx, d.pod, d.ref)
		}
	}
	for ref, l := range r.lookups {
		if _, ok := desired[ref]; !ok {
			l.cancel()
			delete(r.lookups, ref)
		}
	}
	for ref := range r.results {
		if _, ok := desired[ref]; !ok {
			delete(r.results, ref)
			r.mustPublish = true
		}
	}
}

// usesObjects reports whether a pod may use objects of the cluster. It returns false for mirror
// pods and terminated pods.
func usesObjects(pod *v1.Pod) bool {
	return !mirror.IsMirror(pod) && !manifest.IsTerminal(pod.Status.Phase)
}

// startLookup starts the lookup of an object that pod refers to.
func (r *Resolver) startLookup(ctx context.Context, pod *v1.Pod, u refs.Ref) {
	l := &lookup{client: r.client, ref: u.Object, resultCh: r.resultCh}
	lastCertificate, _ := r.results[u.Object].object.(*podCertificate)
	ctx, l.cancel = context.WithCancel(ctx)
	r.lookups[u.Object] = l
	r.goroutines.Go(func() {
		switch {
		case u.Token != nil:
			l.renewToken(ctx, pod, u.Token)
		case u.Volume != "" && !refs.IsCSIVolume(u.Volume) && !r.o.EnableControllerAttachDetach:
			l.send(ctx, lookupResult{object: attachment(nil)}) // no controller attaches volumes, and podd itself attaches disks
		case u.Volume != "":
			l.followAttachment(ctx, u.Volume, r.o)
		case u.Object.Kind == "PersistentVolumeClaim":
			l.pollClaim(ctx, r.o.ClaimUpdates)
		case u.Object.Kind == "ConfigMap":
			watchObject[*v1.ConfigMap](ctx, l, &v1.ConfigMapList{})
		case u.Object.Kind == "Secret":
			watchObject[*v1.Secret](ctx, l, &v1.SecretList{})
		case u.PodCertificate != nil:
			newPodCertificateLookup(l, r, pod, u.PodCertificate, lastCertificate).run(ctx)
		case u.TrustBundle != nil:
			l.watchTrustBundles(ctx)
		case u.Object.Kind == "RuntimeClass":
			watchObject[*nodes.RuntimeClass](ctx, l, &nodes.RuntimeClassList{})
		}
	})
}

// updateServices sets servicesByNamespace from s. A namespace without a change keeps its pointer,
// so that consumers can compare pointers.
func (r *Resolver) updateServices(s apiserver.Snapshot[*v1.Service]) {
	if s.ListCount == 0 || r.servicesByNamespace != nil && maps.Equal(s.Items, r.lastServices.Items) {
		return
	}
	r.lastServices, r.mustPublish = s, true
	next := map[string]*manifest.Services{}
	for key, item := range s.Items {
		service := manifest.NewService(item)
		if service == nil {
			continue
		}
		if next[key.Namespace] == nil {
			next[key.Namespace] = &manifest.Services{ByName: map[string]manifest.Service{}}
		}
		next[key.Namespace].ByName[key.Name] = *service
	}
	for namespace, services := range next {
		if previous := r.servicesByNamespace[namespace]; previous != nil && services.Equal(previous) {
			next[namespace] = previous
		}
	}
	r.servicesByNamespace = next
}

// updateDrivers sets driverSpecs from s. An unchanged spec keeps its pointer, so that consumers can
// compare pointers.
func (r *Resolver) updateDrivers(s apiserver.Snapshot[*storage.CSIDriver]) {
	next := map[string]*storage.CSIDriverSpec{}
	for key, item := range s.Items {
		next[key.Name] = &item.Spec
		if previous := r.driverSpecs[key.Name]; previous != nil && equality.Semantic.DeepEqual(previous, &item.Spec) {
			next[key.Name] = previous
		}
	}
	if s.ListCount > 0 && (r.driverSpecs == nil || !maps.Equal(next, r.driverSpecs)) {
		r.driverSpecs, r.mustPublish = next, true
	}
}

// driversWithoutAttachment returns the names of the drivers with volumes that need no attachment, or
// nil before the CSIDrivers were listed.
func (r *Resolver) driversWithoutAttachment() map[string]bool {
	if r.driverSpecs == nil {
		return nil
	}
	all := map[string]bool{}
	for name, spec := range r.driverSpecs {
		if spec.AttachRequired != nil && !*spec.AttachRequired {
			all[name] = true
		}
	}
	return all
}
