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
)

// resolver keeps what pods refer to by name: one lookup for each object, shared by
// all that refer to it, which begins when the first of them is there and ends with
// the last. What is known outlasts a life: it stays so until the next one knows
// better. One goroutine owns it; lookups tell it.
type resolver struct {
	found map[manifest.ObjectRef]finding
	uses  map[*v1.Pod][]manifest.Use // of those that were looked at
	// services are as the cluster has them; byName is what pods are told of those
	// that were indexed, nil until they were listed.
	services latest[sighting[*v1.Service]]
	indexed  sighting[*v1.Service]
	byName   map[string]*manifest.Services
	// drivers are the CSIDrivers as the cluster has them, specs those that pods are told
	// of, nil until they were listed.
	drivers latest[sighting[*storage.CSIDriver]]
	specs   map[string]*storage.CSIDriverSpec
	last    manifest.Objects // that pods were told of
	news    bool             // that last lacks

	// Of one life:
	of      *Cluster
	client  *client
	lookups map[manifest.ObjectRef]*lookup
	tell    chan finding
	ended   sync.WaitGroup // every goroutine
}

// finding is what came of a lookup: an object, or why there is none.
type finding struct {
	by     *lookup
	object any // *v1.ConfigMap, *v1.Secret, *boundClaim, *nodes.RuntimeClass, attachment or token
	lack   manifest.Lack
}

type (
	token      manifest.Token
	attachment map[string]string
	boundClaim struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume // nil: there is none
	}
)

// run does so until ctx is done, for the pods of a cluster.
func (r *resolver) run(ctx context.Context, api *client, c *Cluster, say *speaker) {
	r.of, r.client, r.lookups, r.tell = c, api, map[manifest.ObjectRef]*lookup{}, make(chan finding)
	if r.found == nil {
		r.found, r.news = map[manifest.ObjectRef]finding{}, true
	}
	defer r.ended.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := follower[*v1.Service]{client: api, query: api.services, list: &v1.ServiceList{}, seen: &r.services, say: say, of: ofServices, last: objectWatchTime}
	r.ended.Go(func() { all.run(ctx) })
	drivers := follower[*storage.CSIDriver]{client: api, query: api.drivers, list: &storage.CSIDriverList{}, seen: &r.drivers, say: say, of: ofDrivers, last: objectWatchTime}
	r.ended.Go(func() { drivers.run(ctx) })
	for {
		bound, otherPods := c.pods.get()
		services, otherServices := r.services.get()
		drivers, otherDrivers := r.drivers.get()
		r.index(services)
		r.spec(drivers)
		if r.news {
			r.last, r.news = r.known(), false
			c.objects.set(r.last)
		}
		if bound.anew > 0 {
			r.want(ctx, bound.items)
		}
		if r.news {
			continue // what nobody wants any more is gone
		}
		select {
		case <-otherPods:
		case <-otherServices:
		case <-otherDrivers:
		case f := <-r.tell:
			r.take(f)
		case <-ctx.Done():
			return
		}
	}
}

// take takes what was found, and what else is there to take: it is told at once.
func (r *resolver) take(f finding) {
	for {
		if r.lookups[f.by.ref] == f.by {
			r.found[f.by.ref], r.news = f, true
		}
		select {
		case f = <-r.tell:
		default:
			return
		}
	}
}

// asked is what a lookup is for: one of the pods that want it, and how that uses it.
type asked struct {
	pod *v1.Pod
	use manifest.Use
}

// want begins lookups of what pods refer to and ends all others.
func (r *resolver) want(ctx context.Context, pods map[types.NamespacedName]*v1.Pod) {
	wanted, uses := map[manifest.ObjectRef]asked{}, map[*v1.Pod][]manifest.Use{}
	volumes := wantedVolumes{names: map[v1.UniqueVolumeName]bool{}, unattached: r.unattached(), whole: r.specs != nil}
	for _, pod := range pods {
		if !reads(pod) {
			continue
		}
		used, known := r.uses[pod]
		if !known {
			used = manifest.ClusterUses(pod)
		}
		uses[pod] = used
		for _, u := range append(slices.Clip(used), r.last.DriverUses(pod)...) {
			wanted[u.Object] = asked{pod, u}
			if _, found := r.found[u.Object]; !found && u.Object.Kind == "PersistentVolumeClaim" {
				volumes.whole = false
			}
			if u.Volume != "" {
				volumes.names[u.Volume] = true
			}
		}
	}
	r.uses = uses
	r.of.inUse.want(volumes) // before anything of them is asked
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
	for ref := range r.found {
		if _, is := wanted[ref]; !is {
			delete(r.found, ref)
			r.news = true
		}
	}
}

// reads tells of a pod that runs or is to run here because the cluster says so: not
// one that has ended, nor the mirror of one that a manifest wants.
func reads(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return !mirror && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}

func (r *resolver) begin(ctx context.Context, pod *v1.Pod, u manifest.Use) {
	l := &lookup{client: r.client, ref: u.Object, tell: r.tell}
	ctx, l.end = context.WithCancel(ctx)
	r.lookups[u.Object] = l
	r.ended.Go(func() {
		switch {
		case u.Token != nil:
			l.token(ctx, pod, u.Token)
		case u.Volume != "":
			l.attachment(ctx, u.Volume, r.of)
		case u.Object.Kind == "PersistentVolumeClaim":
			l.claim(ctx, &r.of.grew)
		case u.Object.Kind == "ConfigMap":
			follow[*v1.ConfigMap](ctx, l, &v1.ConfigMapList{})
		case u.Object.Kind == "Secret":
			follow[*v1.Secret](ctx, l, &v1.SecretList{})
		case u.Object.Kind == "RuntimeClass":
			follow[*nodes.RuntimeClass](ctx, l, &nodes.RuntimeClassList{})
		}
	})
}

// index keeps of Services what variables are made of; what has not changed keeps its
// pointer.
func (r *resolver) index(s sighting[*v1.Service]) {
	if s.anew == 0 || r.byName != nil && maps.Equal(s.items, r.indexed.items) {
		return
	}
	r.indexed, r.news = s, true
	next := map[string]*manifest.Services{}
	for key, item := range s.items {
		one := manifest.ServiceOf(item)
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

// spec keeps of CSIDrivers what bears on their volumes; what has not changed keeps its
// pointer.
func (r *resolver) spec(s sighting[*storage.CSIDriver]) {
	next := map[string]*storage.CSIDriverSpec{}
	for key, item := range s.items {
		next[key.Name] = &item.Spec
		if was := r.specs[key.Name]; was != nil && equality.Semantic.DeepEqual(was, &item.Spec) {
			next[key.Name] = was
		}
	}
	if s.anew > 0 && (r.specs == nil || !maps.Equal(next, r.specs)) {
		r.specs, r.news = next, true
	}
}

// unattached are the drivers whose volumes nothing attaches; nil: not known yet.
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
