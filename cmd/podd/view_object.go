package main

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server"
)

// objectViews makes the objects of sets for whoever asks. What is as it was when
// somebody asked before keeps its pointer, whichever set that was of.
type objectViews struct {
	binding func(*manifest.Objects, *v1.PersistentVolumeClaim) (manifest.Claim, string)

	// written is the source whose objects tell when they were made; "" for none.
	written string

	mu   sync.Mutex
	made map[manifest.ObjectRef]madeView // for who asked last
}

func newObjectViews() *objectViews { return &objectViews{binding: (*manifest.Objects).Binding} }

// madeView is a view and all that it was made of.
type madeView struct {
	of   server.Object // as decoded
	from objectOrigin
	with boundTo
	view *server.ObjectView
}

// objectOrigin is where an object is written, and since when as it is.
type objectOrigin struct {
	source, path string
	line         int
	version      time.Time
}

// boundTo is what a claim or a volume is bound to; nil for neither.
type boundTo struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
	lack   bool // keeps the claim from it
}

// of are the objects of all sources. They serve pods of their own source alone;
// of two with one name, the API's own is shown, or nobody could change it over the
// API any more, and else the file's and not the URL's.
func (v *objectViews) of(set *manifest.Set) *server.Objects {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &shownObjects{binding: v.binding, written: v.written, before: v.made, made: map[manifest.ObjectRef]madeView{}, versions: map[string]time.Time{}}
	for _, f := range set.Files {
		s.versions[f.Path] = f.Version
	}
	out := &server.Objects{}
	for _, source := range slices.SortedFunc(maps.Keys(set.Objects), func(a, b string) int {
		switch v.written {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Or(cmp.Compare(kindOf(set.Objects[a]), kindOf(set.Objects[b])), cmp.Compare(a, b)) // files before URLs
	}) {
		o := set.Objects[source]
		if o.Cluster != nil {
			continue // who may read them is the cluster's to say
		}
		claims, volumes := s.bindings(&o)
		add(s, &out.ConfigMaps, "ConfigMap", o.ConfigMaps, o, (*v1.ConfigMap).DeepCopy, nil, nil)
		add(s, &out.Secrets, "Secret", o.Secrets, o, (*v1.Secret).DeepCopy, nil, nil)
		add(s, &out.Claims, "PersistentVolumeClaim", o.Claims, o, (*v1.PersistentVolumeClaim).DeepCopy, claims, bound)
		add(s, &out.Volumes, "PersistentVolume", o.Volumes, o, (*v1.PersistentVolume).DeepCopy, volumes, taken)
	}
	for _, all := range [][]*server.ObjectView{out.ConfigMaps, out.Secrets, out.Claims, out.Volumes} {
		slices.SortFunc(all, func(a, b *server.ObjectView) int {
			return cmp.Or(cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
		})
	}
	v.made = s.made
	return out
}

func kindOf(o manifest.Objects) string {
	for _, origin := range o.Origins {
		return origin.Kind // all have the source's
	}
	return ""
}

// shownObjects is what was found so far.
type shownObjects struct {
	binding      func(*manifest.Objects, *v1.PersistentVolumeClaim) (manifest.Claim, string)
	before, made map[manifest.ObjectRef]madeView
	written      string               // see objectViews
	versions     map[string]time.Time // of the content that runs of a file
}

// bindings are those of the claims of one source, and of its volumes.
func (s *shownObjects) bindings(o *manifest.Objects) (claims, volumes map[types.NamespacedName]boundTo) {
	claims, volumes = map[types.NamespacedName]boundTo{}, map[types.NamespacedName]boundTo{}
	for key, c := range o.Claims {
		b, lack := s.binding(o, c)
		if lack != "" {
			claims[key] = boundTo{lack: true}
			continue
		}
		claims[key] = boundTo{volume: b.Volume}
		if b.Volume != nil {
			volumes[types.NamespacedName{Name: b.Volume.Name}] = boundTo{claim: c}
		}
	}
	return claims, volumes
}

// add shows those of one kind and source, each as a copy that finish completes.
func add[T server.Object](s *shownObjects, to *[]*server.ObjectView, kind string, all map[types.NamespacedName]T, of manifest.Objects, copied func(T) T, bindings map[types.NamespacedName]boundTo, finish func(T, boundTo)) {
	for key, o := range all {
		ref := manifest.ObjectRef{Kind: kind, NamespacedName: key}
		if _, shown := s.made[ref]; shown {
			continue
		}
		origin := of.Origins[ref]
		now := madeView{of: o, with: bindings[key], from: objectOrigin{origin.Source, origin.Path, origin.Line, s.versions[origin.Path]}}
		if was := s.before[ref]; was.of == now.of && was.from == now.from && was.with == now.with {
			now.view = was.view
		} else {
			shown := copied(o)
			shown.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(kind))
			if shown.GetUID() == "" {
				shown.SetUID(server.UIDOf(kind, origin.Source, key.Namespace, key.Name))
			}
			if shown.GetCreationTimestamp().Time.IsZero() || origin.Source != s.written {
				shown.SetCreationTimestamp(metav1.NewTime(now.from.version))
			}
			if finish != nil {
				finish(shown, now.with)
			}
			now.view = &server.ObjectView{Object: shown, Path: origin.Path, Line: origin.Line}
		}
		s.made[ref] = now
		*to = append(*to, now.view)
	}
}

// bound shows what a claim is bound to: a volume, or a directory of podd's with
// as much as it asked for.
func bound(c *v1.PersistentVolumeClaim, to boundTo) {
	if to.lack {
		c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
		return
	}
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests}
	if pv := to.volume; pv != nil {
		c.Spec.VolumeName = pv.Name
		c.Status.Capacity, c.Status.AccessModes = pv.Spec.Capacity, pv.Spec.AccessModes
	}
}

// taken shows whose a volume is.
func taken(pv *v1.PersistentVolume, by boundTo) {
	pv.Status = v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}
	if c := by.claim; c != nil {
		pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
		pv.Status.Phase = v1.VolumeBound
	}
}
