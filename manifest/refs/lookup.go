package refs

import (
	storage "k8s.io/api/storage/v1"

	"podd/manifest"
)

// A lookup finds objects of one source, for the references of pods of the same source.
type lookup struct {
	*manifest.Objects
	cluster manifest.Cluster // a copy of Objects.Cluster; zero for objects of manifests
	// drivers contains the CSIDrivers by name; nil if the API server has not listed them yet.
	drivers map[string]*storage.CSIDriverSpec
	index   *claimIndex // nil until a claim needs it
}

func newLookup(o *manifest.Objects) *lookup {
	l := &lookup{Objects: o}
	if o.Cluster != nil {
		l.cluster, l.drivers = *o.Cluster, o.Cluster.CSIDrivers
		return l
	}
	l.drivers = make(map[string]*storage.CSIDriverSpec, len(o.CSIDrivers))
	for key, c := range o.CSIDrivers {
		l.drivers[key.Name] = &c.Spec
	}
	return l
}

// A resolver resolves references of pods to the objects of a set.
type resolver struct {
	set     *manifest.Set
	lookups map[string]*lookup // by source
}

func newResolver(s *manifest.Set) *resolver { return &resolver{s, map[string]*lookup{}} }

// lookupFor returns the lookup for the objects of a source.
func (r *resolver) lookupFor(name string) *lookup {
	l := r.lookups[name]
	if l == nil {
		o := r.set.ObjectsBySource[name]
		l = newLookup(&o)
		r.lookups[name] = l
	}
	return l
}
