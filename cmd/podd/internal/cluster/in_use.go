package cluster

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/volume/csi"
)

// inUse are the volumes that the cluster's controller is not to take from this
// machine: those that pods want, from before a driver hears of them, and those that are
// here. The Node's status names them, and nothing is done with one that it does not
// name. Safe for concurrent use.
type inUse struct {
	mu     sync.Mutex // guards all following fields
	wanted wantedVolumes
	// named are those that the status was last to name, reported those of them that
	// the cluster has said that it does.
	named, reported map[v1.UniqueVolumeName]bool
	// otherWanted and otherReported are closed by the next change; nil: nobody asked.
	otherWanted, otherReported chan struct{}
}

// wantedVolumes are those that the pods bound to the node want.
type wantedVolumes struct {
	names map[v1.UniqueVolumeName]bool
	// unattached are the drivers whose volumes nothing attaches; nil: not known yet.
	unattached map[string]bool
	whole      bool // no pod wants any that is not known yet
}

func (w wantedVolumes) same(o wantedVolumes) bool {
	return w.whole == o.whole && maps.Equal(w.names, o.names) &&
		(w.unattached == nil) == (o.unattached == nil) && maps.Equal(w.unattached, o.unattached)
}

// want is told what pods want. From when it returns, whatever the status is to name
// has all of them.
func (u *inUse) want(w wantedVolumes) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.wanted.same(w) {
		u.wanted = w
		shut(&u.otherWanted)
	}
}

// name is what the Node's status, which names seen, is to name by now, and a channel
// that is closed when pods want others. here are the volumes on this machine. What it
// named before is kept until all is known that could speak for it.
func (u *inUse) name(seen []v1.UniqueVolumeName, here []csi.Use) ([]v1.UniqueVolumeName, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := maps.Clone(u.wanted.names)
	if all == nil {
		all = map[v1.UniqueVolumeName]bool{}
	}
	if u.wanted.unattached != nil {
		for _, use := range here {
			if !u.wanted.unattached[use.Driver] {
				all[manifest.UniqueVolume(use.Driver, use.Handle)] = true
			}
		}
	}
	if !u.wanted.whole {
		for _, name := range seen {
			all[name] = true
		}
	}
	u.named = all
	u.take(u.reported)
	return slices.Sorted(maps.Keys(all)), opened(&u.otherWanted)
}

// report is told what the cluster has said that the status names.
func (u *inUse) report(names []v1.UniqueVolumeName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	said := map[v1.UniqueVolumeName]bool{}
	for _, name := range names {
		said[name] = true
	}
	u.take(said)
}

// take has of what is said what is still to be named. The caller holds mu.
func (u *inUse) take(said map[v1.UniqueVolumeName]bool) {
	next := map[v1.UniqueVolumeName]bool{}
	for name := range said {
		if u.named[name] {
			next[name] = true
		}
	}
	if !maps.Equal(next, u.reported) {
		u.reported = next
		shut(&u.otherReported)
	}
}

// reports says whether the status names a volume and will, and a channel that is
// closed when that may be otherwise.
func (u *inUse) reports(name v1.UniqueVolumeName) (bool, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reported[name], opened(&u.otherReported)
}

func opened(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

func shut(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
