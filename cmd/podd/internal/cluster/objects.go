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

// A resolver provides the objects that pods refer to by name. It runs one lookup for each
// object, from the first pod that refers to it until the last. Results are kept when the
// connection changes, until the new connection has others. One goroutine owns it; lookups
// send their results to it.
type resolver struct {
	results map[manifest.ObjectRef]lookupResult
	uses    map[*v1.Pod][]refs.Ref // of the pods in the last snapshot
	// services contains the Services of the cluster. byName contains those that pods get
	// variables for, by namespace; nil before the first list.
	services watchable[snapshot[*v1.Service]]
	indexed  snapshot[*v1.Service]
	byName   map[string]*manifest.Services
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
	by     *lookup
	object any // *v1.ConfigMap, *v1.Secret, *boundClaim, *nodes.RuntimeClass, attachment or token
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
func (r *resolver) run(ctx context.Context, api *client, c *Cluster, say *problemReporter) {
	r.cluster, r.client, r.lookups, r.ch = c, api, map[manifest.ObjectRef]*lookup{}, make(chan lookupResult)
	if r.results == nil {
		r.results, r.isChanged = map[manifest.ObjectRef]lookupResult{}, true
	}
	defer r.ended.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := reflector[*v1.Service]{client: api, query: api.services, list: &v1.ServiceList{}, store: &r.services, reporter: say, part: ofServices, watchTime: objectWatchTime}
	r.ended.Go(func() { all.run(ctx) })
	drivers := reflector[*storage.CSIDriver]{client: api, query: api.drivers, list: &storage.CSIDriverList{}, store: &r.drivers, reporter: say, part: ofDrivers, watchTime: objectWatchTime}
	r.ended.Go(func() { drivers.run(ctx) })
	for {
		bound, otherPods := c.pods.get()
		services, otherServices := r.services.get()
		drivers, otherDrivers := r.drivers.get()
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
			continue // unused results were removed
		}
		select {
		case <-otherPods:
		case <-otherServices:
		case <-otherDrivers:
		case f := <-r.ch:
			r.take(f)
		case <-ctx.Done():
			return
		}
	}
}

// take applies a result and all others that are available, so that they are published
// together.
func (r *resolver) take(f lookupResult) {
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

// A desiredObject is an object with one of the pods that use it.
type desiredObject struct {
	pod *v1.Pod
	use refs.Ref
}

// syncLookups starts lookups of the objects that pods use and ends all others.
func (r *resolver) syncLookups(ctx context.Context, pods map[types.NamespacedName]*v1.Pod) {
	wanted, uses := map[manifest.ObjectRef]desiredObject{}, map[*v1.Pod][]refs.Ref{}
	volumes := desiredVolumes{names: map[v1.UniqueVolumeName]bool{}, unattached: r.unattached(), isComplete: r.specs != nil}
	for _, pod := range pods {
		if !usesObjects(pod) {
			continue
		}
		used, known := r.uses[pod]
		if !known {
			used = refs.ListCluster(pod)
		}
		uses[pod] = used
		for _, u := range append(slices.Clip(used), refs.ListDrivers(&r.last, pod)...) {
			wanted[u.Object] = desiredObject{pod, u}
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
	for ref, a := range wanted {
		if r.lookups[ref] == nil {
			r.begin(ctx, a.pod, a.use)
		}
	}
	for ref, l := range r.lookups {
		if _, is := wanted[ref]; !is {
			l.end()
			delete(r.lookups, ref)
		}
	}
	for ref := range r.results {
		if _, is := wanted[ref]; !is {
			delete(r.results, ref)
			r.isChanged = true
		}
	}
}

// usesObjects reports whether a pod runs or will run here because of the cluster. Pods
// that have ended and mirror pods do not use objects of the cluster.
func usesObjects(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return !mirror && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

func (r *resolver) begin(ctx context.Context, pod *v1.Pod, u refs.Ref) {
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
			follow[*v1.ConfigMap](ctx, l, &v1.ConfigMapList{})
		case u.Object.Kind == "Secret":
			follow[*v1.Secret](ctx, l, &v1.SecretList{})
		case u.Object.Kind == "RuntimeClass":
			follow[*nodes.RuntimeClass](ctx, l, &nodes.RuntimeClassList{})
		}
	})
}

// updateServices stores the parts of Services that become variables. Unchanged namespaces
// keep their pointer.
func (r *resolver) updateServices(s snapshot[*v1.Service]) {
	if s.lists == 0 || r.byName != nil && maps.Equal(s.items, r.indexed.items) {
		return
	}
	r.indexed, r.isChanged = s, true
	next := map[string]*manifest.Services{}
	for key, item := range s.items {
		one := manifest.NewService(item)
		if one == nil {
			continue
		}
		if next[key.Namespace] == nil {
			next[key.Namespace] = &manifest.Services{ByName: map[string]manifest.Service{}}
		}
		next[key.Namespace].ByName[key.Name] = *one
	}
	for namespace, services := range next {
		if was := r.byName[namespace]; was != nil && services.Equal(was) {
			next[namespace] = was
		}
	}
	r.byName = next
}

// updateDrivers stores the specs of CSIDrivers. Unchanged specs keep their pointer.
func (r *resolver) updateDrivers(s snapshot[*storage.CSIDriver]) {
	next := map[string]*storage.CSIDriverSpec{}
	for key, item := range s.items {
		next[key.Name] = &item.Spec
		if was := r.specs[key.Name]; was != nil && equality.Semantic.DeepEqual(was, &item.Spec) {
			next[key.Name] = was
		}
	}
	if s.lists > 0 && (r.specs == nil || !maps.Equal(next, r.specs)) {
		r.specs, r.isChanged = next, true
	}
}

// unattached returns the drivers that need no attach, or nil if that is unknown.
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
