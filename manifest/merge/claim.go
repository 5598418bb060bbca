package merge

import (
	"cmp"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/order"
	"podd/manifest/refs"
)

// dropSharedClaims drops a claim of a file source if an earlier file source has the same claim. A
// claim has one directory, which all file sources share, but only pods of one source may use its
// data. Claims of other kinds of sources are not dropped here: podd records their source with their
// data, and refuses to use the data for a claim of another source.
func (m *merger) dropSharedClaims(batches []manifest.Batch) {
	firstOrigins := map[manifest.ObjectRef]manifest.Origin{}
	seenSources := map[string]bool{}
	incompleteSource := ""
	for _, b := range batches {
		if b.Kind != manifest.KindFile || seenSources[b.Source] {
			continue
		}
		seenSources[b.Source] = true
		o := m.set.ObjectsBySource[b.Source]
		o.PendingSource = incompleteSource
		m.set.ObjectsBySource[b.Source] = o
		if !m.set.CompleteSources[b.Source] {
			incompleteSource = cmp.Or(incompleteSource, b.Source)
		}
		for _, key := range order.Collect(maps.Keys(o.Claims), manifest.CompareKeys) {
			ref := manifest.ObjectRef{Kind: manifest.ClaimKind, NamespacedName: key}
			origin := o.Origins[ref]
			if earlierOrigin, isDuplicate := firstOrigins[ref]; isDuplicate {
				m.set.Problems = append(m.set.Problems, manifest.Problem{
					Severity: manifest.Error, Path: origin.Path, Position: origin.Position(""), CausesRefusal: true,
					Message: ref.String() + " is already defined at " + earlierOrigin.String() + ", whose pods use its data; rename one",
				})
				delete(o.Claims, key)
				delete(o.Origins, ref)
				continue
			}
			firstOrigins[ref] = origin
		}
	}
}

// groupChange is a pod that changes the group of a claim's files (fsGroup).
type groupChange struct {
	pod   *manifest.Pod
	group int64
}

// warnSharedGroups warns about pods that change the group of the files of one claim to different
// groups. When one of these pods starts, the pods with another group lose access to the files.
func (m *merger) warnSharedGroups() {
	type sourceClaim struct {
		source string
		key    types.NamespacedName
	}
	firstChanges := map[sourceClaim]groupChange{}
	for _, key := range order.Collect(maps.Keys(m.set.Pods), manifest.CompareKeys) {
		p := m.set.Pods[key]
		if p.Traits.HasRefsFromServer {
			continue // give no warning, because the cluster decides which pods may use its claims
		}
		s := p.Object.Spec.SecurityContext
		if s == nil || s.FSGroup == nil {
			continue
		}
		for i := range p.Object.Spec.Volumes {
			claimSource := p.Object.Spec.Volumes[i].PersistentVolumeClaim
			if claimSource == nil || claimSource.ReadOnly {
				continue
			}
			claim := sourceClaim{p.Origin.Source, types.NamespacedName{Namespace: key.Namespace, Name: claimSource.ClaimName}}
			if !m.changesGroup(claim.source, claim.key) {
				continue
			}
			if firstChange, isRecorded := firstChanges[claim]; !isRecorded {
				firstChanges[claim] = groupChange{p, *s.FSGroup}
			} else if firstChange.group != *s.FSGroup {
				m.set.Problems = append(m.set.Problems, firstChange.newProblem(p, *s.FSGroup, claimSource.ClaimName))
			}
		}
	}
}

// newProblem returns a warning about the fsGroup of p. The pod p changes the group of the claim's
// files to the parameter group, and the pod g.pod changes it to g.group.
func (g groupChange) newProblem(p *manifest.Pod, group int64, claim string) manifest.Problem {
	const field = "spec.securityContext.fsGroup"
	return manifest.Problem{
		Severity: manifest.Warning, Path: p.Origin.Path, Position: p.Origin.Position(field), Pod: p.Key, FieldPath: field,
		Message: fmt.Sprintf("changes the group of the files of claim %q to %d, but %s (%s) changes it to %d; use the same group in both",
			claim, group, g.pod.Key, g.pod.Origin.ShortLocation(field), g.group),
	}
}

// changesGroup reports whether podd changes the group of the claim's files to the fsGroup of a
// pod that uses the claim.
func (m *merger) changesGroup(source string, key types.NamespacedName) bool {
	o := m.set.ObjectsBySource[source]
	c := o.Claims[key]
	if c == nil || cmp.Or(*c.Spec.VolumeMode, v1.PersistentVolumeFilesystem) == v1.PersistentVolumeBlock {
		return false
	}
	claims := m.claimsBySource[source]
	if claims == nil {
		claims = refs.NewClaims(&o)
		m.claimsBySource[source] = claims
	}
	boundClaim, reason := claims.Bind(c)
	return reason == "" && (boundClaim.Volume == nil || boundClaim.Volume.Spec.Local != nil)
}
