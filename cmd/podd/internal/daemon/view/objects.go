package view

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/server"
)

// objectViews builds the views of the objects in a set. For an object that has not changed since
// the previous call of build, build returns the same pointer again.
type objectViews struct {
	findBinding func(*refs.Claims, *v1.PersistentVolumeClaim) (refs.Claim, string)

	// apiSource is the name of the source that the API writes, or "" if there is none. The objects
	// in this source contain their creation timestamps.
	apiSource string

	mu    sync.Mutex                        // guards views
	views map[manifest.ObjectRef]cachedView // views that the previous call of build returned
}

// newObjectViews returns objectViews without cached views.
func newObjectViews(apiSource string) *objectViews {
	return &objectViews{findBinding: (*refs.Claims).Bind, apiSource: apiSource}
}

// A cachedView is a view and all values that it was built from.
type cachedView struct {
	object  server.Object // the object as decoded from its manifest
	origin  objectOrigin
	binding objectBinding
	view    *server.ObjectView
}

// objectOrigin is the position of an object in a file, and the modification time of the
// file.
type objectOrigin struct {
	source, path string
	line         int
	modTime      time.Time
}

// An objectBinding is the volume that a claim is bound to, or the claim that a volume is
// bound to. Both fields are nil if the object is not bound.
type objectBinding struct {
	claim     *v1.PersistentVolumeClaim
	volume    *v1.PersistentVolume
	isPending bool // the object is a claim that cannot be bound
}

// build returns the objects of all sources except the cluster. Pods use only objects of their own
// source. If several sources have an object of the same kind and name, build returns only one of
// these objects. An object that the API has written takes precedence, because clients must be able
// to change this object. Objects of files take precedence over objects of URLs.
func (v *objectViews) build(set *manifest.Set) *server.Objects {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &objectBuilder{findBinding: v.findBinding, apiSource: v.apiSource, previous: v.views, views: map[manifest.ObjectRef]cachedView{}, modTimes: map[string]time.Time{}}
	for _, f := range set.FileStates {
		s.modTimes[f.Path] = f.ContentTime
	}
	out := &server.Objects{}
	for _, source := range slices.SortedFunc(maps.Keys(set.ObjectsBySource), func(a, b string) int {
		switch v.apiSource {
		case a:
			return -1
		case b:
			return 1
		}
		// By the order of the kinds, files precede URLs.
		return cmp.Or(cmp.Compare(sourceKind(set.ObjectsBySource[a]), sourceKind(set.ObjectsBySource[b])), cmp.Compare(a, b))
	}) {
		o := set.ObjectsBySource[source]
		if o.IsFromServer() {
			continue // omitted, because the API server of the cluster authorizes reads of these objects
		}
		claims, volumes := s.bindings(&o)
		core := v1.SchemeGroupVersion
		addObjects(s, &out.ConfigMaps, core.WithKind("ConfigMap"), o.ConfigMaps, o, (*v1.ConfigMap).DeepCopy, nil, nil)
		addObjects(s, &out.Secrets, core.WithKind("Secret"), o.Secrets, o, (*v1.Secret).DeepCopy, nil, nil)
		addObjects(s, &out.Claims, core.WithKind("PersistentVolumeClaim"), o.Claims, o, (*v1.PersistentVolumeClaim).DeepCopy, claims, setClaimStatus)
		addObjects(s, &out.Volumes, core.WithKind("PersistentVolume"), o.Volumes, o, (*v1.PersistentVolume).DeepCopy, volumes, setVolumeStatus)
		addObjects(s, &out.TrustBundles, certificates.SchemeGroupVersion.WithKind("ClusterTrustBundle"), o.TrustBundles, o, (*certificates.ClusterTrustBundle).DeepCopy, nil, nil)
		addObjects(s, &out.CSIDrivers, storage.SchemeGroupVersion.WithKind("CSIDriver"), o.CSIDrivers, o, (*storage.CSIDriver).DeepCopy, nil, nil)
	}
	for _, list := range [][]*server.ObjectView{out.ConfigMaps, out.Secrets, out.Claims, out.Volumes, out.TrustBundles, out.CSIDrivers} {
		slices.SortFunc(list, func(a, b *server.ObjectView) int {
			return cmp.Or(cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
		})
	}
	v.views = s.views
	return out
}

// sourceKind returns the kind of the source that contains the objects o, or "" if o is empty.
func sourceKind(o manifest.Objects) string {
	for _, origin := range o.Origins {
		return origin.Kind // all objects of a source have the same kind of source
	}
	return ""
}

// objectBuilder contains the state of one build.
type objectBuilder struct {
	findBinding     func(*refs.Claims, *v1.PersistentVolumeClaim) (refs.Claim, string)
	previous, views map[manifest.ObjectRef]cachedView
	apiSource       string               // see objectViews
	modTimes        map[string]time.Time // FileState.ContentTime of each file, by path
}

// bindings returns the bindings of the claims and volumes of one source.
func (s *objectBuilder) bindings(o *manifest.Objects) (claims, volumes map[types.NamespacedName]objectBinding) {
	claims, volumes = map[types.NamespacedName]objectBinding{}, map[types.NamespacedName]objectBinding{}
	index := refs.NewClaims(o)
	for key, c := range o.Claims {
		b, missing := s.findBinding(index, c)
		if missing != "" {
			claims[key] = objectBinding{isPending: true}
			continue
		}
		claims[key] = objectBinding{volume: b.Volume}
		if b.Volume != nil {
			volumes[types.NamespacedName{Name: b.Volume.Name}] = objectBinding{claim: c}
		}
	}
	return claims, volumes
}

// addObjects adds copies of the objects of one kind and source. finish completes a copy.
func addObjects[T server.Object](s *objectBuilder, to *[]*server.ObjectView, kind schema.GroupVersionKind, source map[types.NamespacedName]T, objects manifest.Objects, deepCopy func(T) T, bindings map[types.NamespacedName]objectBinding, finish func(T, objectBinding)) {
	for key, o := range source {
		ref := manifest.ObjectRef{Kind: kind.Kind, NamespacedName: key}
		if _, isShown := s.views[ref]; isShown {
			continue
		}
		origin := objects.Origins[ref]
		cached := cachedView{object: o, binding: bindings[key], origin: objectOrigin{origin.Source, origin.Path, origin.Line, s.modTimes[origin.Path]}}
		if previous := s.previous[ref]; previous.object == cached.object && previous.origin == cached.origin && previous.binding == cached.binding {
			cached.view = previous.view
		} else {
			object := deepCopy(o)
			object.GetObjectKind().SetGroupVersionKind(kind)
			if object.GetUID() == "" {
				object.SetUID(server.DeriveUID(kind.Kind, origin.Source, key.Namespace, key.Name))
			}
			if object.GetCreationTimestamp().Time.IsZero() || origin.Source != s.apiSource {
				object.SetCreationTimestamp(metav1.NewTime(cached.origin.modTime))
			}
			if finish != nil {
				finish(object, cached.binding)
			}
			cached.view = &server.ObjectView{Object: object, Path: origin.Path, Line: origin.Line}
		}
		s.views[ref] = cached
		*to = append(*to, cached.view)
	}
}

// setClaimStatus sets the status of a claim. Without a volume, the claim is bound to a
// directory of podd that has the requested capacity.
func setClaimStatus(c *v1.PersistentVolumeClaim, to objectBinding) {
	if to.isPending {
		c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
		return
	}
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests}
	if pv := to.volume; pv != nil {
		c.Spec.VolumeName = pv.Name
		c.Status.Capacity, c.Status.AccessModes = pv.Spec.Capacity, pv.Spec.AccessModes
	}
}

// setVolumeStatus sets the claim and phase of a volume.
func setVolumeStatus(pv *v1.PersistentVolume, by objectBinding) {
	pv.Status = v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}
	if c := by.claim; c != nil {
		pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
		pv.Status.Phase = v1.VolumeBound
	}
}
