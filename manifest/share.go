package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// oneOwner drops the claims of files that files of another source have too: the
// data of a claim is one, and its pods are those of one source. Claims of other
// kinds of source have owners of their own, which the claim's record tells apart.
func (m *merger) oneOwner(ordered []Batch) {
	first := map[ObjectRef]Origin{}
	seen := map[string]bool{}
	incomplete := ""
	for _, b := range ordered {
		if b.Kind != KindFile || seen[b.Source] {
			continue
		}
		seen[b.Source] = true
		o := m.set.Objects[b.Source]
		o.Before = incomplete
		m.set.Objects[b.Source] = o
		if !m.set.Complete[b.Source] {
			incomplete = cmp.Or(incomplete, b.Source)
		}
		for _, key := range slices.SortedFunc(maps.Keys(o.Claims), byName) {
			ref := ObjectRef{kindClaim, key}
			origin := o.Origins[ref]
			if before, taken := first[ref]; taken {
				m.set.Problems = append(m.set.Problems, Problem{
					Severity: Error, Path: origin.Path, Position: origin.Position(""), Refused: true,
					Message: ref.String() + " is already at " + before.String() + ", whose pods have its data; give one another name",
				})
				delete(o.Claims, key)
				delete(o.Origins, ref)
				continue
			}
			first[ref] = origin
		}
	}
}

// groupOf is a pod that gives the files of a claim to a group.
type groupOf struct {
	pod   *Pod
	group int64
}

// oneGroup warns of pods that give the files of one claim to several groups:
// each that starts takes them from the others.
func (m *merger) oneGroup() {
	type claimOf struct {
		source string
		key    types.NamespacedName
	}
	first := map[claimOf]groupOf{}
	for _, key := range slices.SortedFunc(maps.Keys(m.set.Pods), byName) {
		p := m.set.Pods[key]
		if p.Origin.Kind == KindAPI {
			continue // whom a cluster's claims are for is the cluster's to say
		}
		s := p.Spec.Spec.SecurityContext
		if s == nil || s.FSGroup == nil {
			continue
		}
		for i := range p.Spec.Spec.Volumes {
			use := p.Spec.Spec.Volumes[i].PersistentVolumeClaim
			if use == nil || use.ReadOnly {
				continue
			}
			at := claimOf{p.Origin.Source, types.NamespacedName{Namespace: key.Namespace, Name: use.ClaimName}}
			if !m.grouped(at.source, at.key) {
				continue
			}
			if before, taken := first[at]; !taken {
				first[at] = groupOf{p, *s.FSGroup}
			} else if before.group != *s.FSGroup {
				m.set.Problems = append(m.set.Problems, before.other(p, *s.FSGroup, use.ClaimName))
			}
		}
	}
}

func (g groupOf) other(p *Pod, group int64, claim string) Problem {
	const field = "spec.securityContext.fsGroup"
	return Problem{
		Severity: Warning, Path: p.Origin.Path, Position: p.Origin.Position(field), Pod: p.Key, Field: field,
		Message: fmt.Sprintf("gives the files of the claim %q to group %d, and %s (%s) to %d: whichever starts takes them from the other; write one group in both",
			claim, group, g.pod.Key, placeOf(g.pod.Origin, field), g.group),
	}
}

// grouped says that the files of a claim are given to the group of a pod.
func (m *merger) grouped(source string, key types.NamespacedName) bool {
	o := m.set.Objects[source]
	c := o.Claims[key]
	if c == nil || cmp.Or(*c.Spec.VolumeMode, v1.PersistentVolumeFilesystem) == v1.PersistentVolumeBlock {
		return false
	}
	bound, lack := o.Binding(c)
	return lack == "" && (bound.Volume == nil || bound.Volume.Spec.Local != nil)
}
