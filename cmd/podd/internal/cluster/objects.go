package cluster

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

	"podd/manifest"
	"podd/manifest/refs"
)

// A resolver provides the objects that pods refer to. It runs one lookup for each object as
// long as a pod refers to it. When the connection changes, results are kept until lookups of
// the new connection replace them. One goroutine owns a resolver; lookups send it their
// results.
type resolver struct {
	results map[manifest.ObjectRef]lookupResult
	uses    map[*v1.Pod][]refs.Ref // the references of the pods in the last snapshot
	// services contains the Services of the cluster, and lastServices the snapshot of which
	// byName is the result: the Services that pods get variables for, by namespace. byName is
	// nil before the first list.
	services     watchable[snapshot[*v1.Service]]
	lastServices snapshot[*v1.Service]
	byName       map[string]*manifest.Services
	// drivers contains the CSIDrivers of the cluster. specs contains their specs; nil before
	// the first list.
	drivers   watchable[snapshot[*storage.CSIDriver]]
	specs     map[string]*storage.CSIDriverSpec
	last      manifest.Objects // the last published objects
	isChanged bool             // last is out of date

	// Per connection:
	cluster *Cluster
	client  *client
	lookups map[manifest.ObjectRef]*lookup
	ch      chan lookupResult
	ended   sync.WaitGroup // waits for all goroutines
}

// A lookupResult is an object, or the reason for which there is none.
type lookupResult struct {
	by     *lookup // the sender
	object any     // *v1.ConfigMap, *v1.Secret, *boundClaim, *nodes.RuntimeClass, attachment or token
	lack   manifest.MissingObject
}

type (
	token      manifest.Token
	attachment map[string]string
	boundClaim struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume // may be nil
	}
)

// run looks up the objects for the pods of c until ctx is done.
func (r *resolver) run(ctx context.Context, api *client, c *Cluster, problems *problemReporter) {
	r.cluster, r.client, r.lookups, r.ch = c, api, map[manifest.ObjectRef]*lookup{}, make(chan lookupResult)
	if r.results == nil {
		r.results, r.isChanged = map[manifest.ObjectRef]lookupResult{}, true
	}
	defer r.ended.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := reflector[*v1.Service]{client: api, query: api.services, list: &v1.ServiceList{}, store: &r.services, reporter: problems, part: partServices, watchTimeout: objectWatchTimeout}
	r.ended.Go(func() { all.run(ctx) })
	drivers := reflector[*storage.CSIDriver]{client: api, query: api.drivers, list: &storage.CSIDriverList{}, store: &r.drivers, reporter: problems, part: partDrivers, watchTimeout: objectWatchTimeout}
	r.ended.Go(func() { drivers.run(ctx) })
	for {
		bound, podsChanged := c.pods.get()
		services, servicesChanged := r.services.get()
		drivers, driversChanged := r.drivers.get()
		r.updateServices(services)
		r.updateDrivers(drivers)
		if r.isChanged {
			r.last, r.isChanged = r.objects(), false
			c.objects.set(r.last)
		}
		if bound.lists > 0 {
			r.syncLookups(ctx, bound.items)
		}
		if r.isChanged {
			continue // publish that unused results were removed
		}
		select {
		case <-podsChanged:
		case <-servicesChanged:
		case <-driversChanged:
		case f := <-r.ch:
			r.handleResult(f)
		case <-ctx.Done():
			return
		}
	}
}

// handleResult applies a result and all others that are available, so that they are published
// together. Results of ended lookups are ignored.
func (r *resolver) handleResult(f lookupResult) {
	for {
		if r.lookups[f.by.ref] == f.by {
			r.results[f.by.ref], r.isChanged = f, true
		}
		select {
		case f = <-r.ch:
		default:
			return
		}
	}
}

// A desiredObject is a reference to an object, and a pod that contains it.
type desiredObject struct {
	pod *v1.Pod
	use refs.Ref
}

// syncLookups starts lookups of the objects that pods use and ends all others.
func (r *resolver) syncLookups(ctx context.Context, pods map[types.NamespacedName]*v1.Pod) {
	desired, uses := map[manifest.ObjectRef]desiredObject{}, map[*v1.Pod][]refs.Ref{}
	volumes := desiredVolumes{names: map[v1.UniqueVolumeName]bool{}, unattached: r.unattached(), isComplete: r.specs != nil}
	for _, pod := range pods {
		if !usesObjects(pod) {
			continue
		}
		used, isKnown := r.uses[pod]
		if !isKnown {
			used = refs.ListCluster(pod)
		}
		uses[pod] = used
		for _, u := range append(slices.Clip(used), refs.ListDrivers(&r.last, pod)...) {
			desired[u.Object] = desiredObject{pod, u}
			if _, found := r.results[u.Object]; !found && u.Object.Kind == "PersistentVolumeClaim" {
				volumes.isComplete = false
			}
			if u.Volume != "" {
				volumes.names[u.Volume] = true
			}
		}
	}
	r.uses = uses
	r.cluster.inUse.setDesired(volumes) // before any lookup of the volumes
	for ref, d := range desired {
		if r.lookups[ref] == nil {
			r.startLookup(ctx, d.pod, d.use)
		}
	}
	for ref, l := range r.lookups {
		if _, ok := desired[ref]; !ok {
			l.end()
			delete(r.lookups, ref)
		}
	}
	for ref := range r.results {
		if _, ok := desired[ref]; !ok {
			delete(r.results, ref)
			r.isChanged = true
		}
	}
}

// usesObjects reports whether a pod may use objects of the cluster. Mirror pods and pods that
// have ended do not.
func usesObjects(pod *v1.Pod) bool { return !isMirror(pod) && !isTerminal(pod.Status.Phase) }

// startLookup starts the lookup of an object that pod refers to.
func (r *resolver) startLookup(ctx context.Context, pod *v1.Pod, u refs.Ref) {
	l := &lookup{client: r.client, ref: u.Object, ch: r.ch}
	ctx, l.end = context.WithCancel(ctx)
	r.lookups[u.Object] = l
	r.ended.Go(func() {
		switch {
		case u.Token != nil:
			l.token(ctx, pod, u.Token)
		case u.Volume != "":
			l.attachment(ctx, u.Volume, r.cluster)
		case u.Object.Kind == "PersistentVolumeClaim":
			l.claim(ctx, &r.cluster.growths)
		case u.Object.Kind == "ConfigMap":
			watchObject[*v1.ConfigMap](ctx, l, &v1.ConfigMapList{})
		case u.Object.Kind == "Secret":
			watchObject[*v1.Secret](ctx, l, &v1.SecretList{})
		case u.Object.Kind == "RuntimeClass":
			watchObject[*nodes.RuntimeClass](ctx, l, &nodes.RuntimeClassList{})
		}
	})
}

// updateServices stores the parts of Services that pods get as variables. Namespaces without a
// change keep their pointer.
func (r *resolver) updateServices(s snapshot[*v1.Service]) {
	if s.lists == 0 || r.byName != nil && maps.Equal(s.items, r.lastServices.items) {
		return
	}
	r.lastServices, r.isChanged = s, true
	next := map[string]*manifest.Services{}
	for key, item := range s.items {
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
		if old := r.byName[namespace]; old != nil && services.Equal(old) {
			next[namespace] = old
		}
	}
	r.byName = next
}

// updateDrivers stores the specs of CSIDrivers. Unchanged specs keep their pointer.
func (r *resolver) updateDrivers(s snapshot[*storage.CSIDriver]) {
	next := map[string]*storage.CSIDriverSpec{}
	for key, item := range s.items {
		next[key.Name] = &item.Spec
		if old := r.specs[key.Name]; old != nil && equality.Semantic.DeepEqual(old, &item.Spec) {
			next[key.Name] = old
		}
	}
	if s.lists > 0 && (r.specs == nil || !maps.Equal(next, r.specs)) {
		r.specs, r.isChanged = next, true
	}
}

// unattached returns the drivers with volumes that need no attachment, or nil if the drivers are unknown.
func (r *resolver) unattached() map[string]bool {
	if r.specs == nil {
		return nil
	}
	all := map[string]bool{}
	for name, spec := range r.specs {
		if spec.AttachRequired != nil && !*spec.AttachRequired {
			all[name] = true
		}
	}
	return all
}
