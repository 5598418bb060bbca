package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server"
)

// objectViews are the objects of all sources. They serve pods of their own
// source alone; of two with one name, the file's is shown and not the URL's.
func objectViews(set *manifest.Set) *server.Objects {
	from := &shownObjects{set: set, seen: map[manifest.ObjectRef]bool{}, out: &server.Objects{}}
	for _, source := range slices.SortedFunc(maps.Keys(set.Objects), from.compare) {
		o := set.Objects[source]
		add(from, &from.out.ConfigMaps, "ConfigMap", o.ConfigMaps, o, (*v1.ConfigMap).DeepCopy, nil)
		add(from, &from.out.Secrets, "Secret", o.Secrets, o, (*v1.Secret).DeepCopy, nil)
		add(from, &from.out.Claims, "PersistentVolumeClaim", o.Claims, o, (*v1.PersistentVolumeClaim).DeepCopy, bound)
		add(from, &from.out.Volumes, "PersistentVolume", o.Volumes, o, (*v1.PersistentVolume).DeepCopy, taken)
	}
	for _, all := range [][]*server.ObjectView{from.out.ConfigMaps, from.out.Secrets, from.out.Claims, from.out.Volumes} {
		slices.SortFunc(all, func(a, b *server.ObjectView) int {
			return cmp.Or(cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
		})
	}
	return from.out
}

// shownObjects is what was found so far.
type shownObjects struct {
	set  *manifest.Set
	seen map[manifest.ObjectRef]bool
	out  *server.Objects
}

// compare has files before URLs.
func (s *shownObjects) compare(a, b string) int {
	return cmp.Or(cmp.Compare(kindOf(s.set.Objects[a]), kindOf(s.set.Objects[b])), cmp.Compare(a, b))
}

func kindOf(o manifest.Objects) string {
	for _, origin := range o.Origins {
		return origin.Kind // all have the source's
	}
	return ""
}

// add shows those of one kind and source, each as a copy that finish completes.
func add[T server.Object](s *shownObjects, to *[]*server.ObjectView, kind string, all map[types.NamespacedName]T, of manifest.Objects, copied func(T) T, finish func(*manifest.Objects, T)) {
	for key, o := range all {
		ref := manifest.ObjectRef{Kind: kind, NamespacedName: key}
		if s.seen[ref] {
			continue
		}
		s.seen[ref] = true
		origin, shown := of.Origins[ref], copied(o)
		shown.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(kind))
		if shown.GetUID() == "" {
			shown.SetUID(server.UIDOf(kind, origin.Source, key.Namespace, key.Name))
		}
		shown.SetCreationTimestamp(metav1.NewTime(s.version(origin.Path)))
		if finish != nil {
			finish(&of, shown)
		}
		*to = append(*to, &server.ObjectView{Object: shown, Path: origin.Path, Line: origin.Line})
	}
}

// version is the time of the content that runs of a file.
func (s *shownObjects) version(path string) time.Time {
	n := slices.IndexFunc(s.set.Files, func(f manifest.FileState) bool { return f.Path == path })
	if n < 0 {
		return time.Time{}
	}
	return s.set.Files[n].Version
}

// bound shows what a claim is bound to: a volume, or a directory of podd's with
// as much as it asked for.
func bound(o *manifest.Objects, c *v1.PersistentVolumeClaim) {
	b, lack := o.Binding(o.Claims[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}])
	if lack != "" {
		c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
		return
	}
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests}
	if b.Volume != nil {
		c.Spec.VolumeName = b.Volume.Name
		c.Status.Capacity, c.Status.AccessModes = b.Volume.Spec.Capacity, b.Volume.Spec.AccessModes
	}
}

// taken shows whose a volume is.
func taken(o *manifest.Objects, pv *v1.PersistentVolume) {
	pv.Status = v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}
	for _, c := range o.Claims {
		if b, lack := o.Binding(c); lack == "" && b.Volume != nil && b.Volume.Name == pv.Name {
			pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name}
			pv.Status.Phase = v1.VolumeBound
		}
	}
}
