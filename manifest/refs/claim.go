package refs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// A Claim is a PersistentVolumeClaim with the PersistentVolume to which it is bound.
type Claim struct {
	*v1.PersistentVolumeClaim
	// Volume is nil for a claim with data in a directory that podd manages.
	Volume *v1.PersistentVolume
	// Owner is manifest.KindFile for a claim in files, and the name of the source for a claim of
	// another source. Only pods of the same owner may use the data of the claim. "" means the
	// cluster, which has bound the claim and manages its data.
	Owner string
}

// allowsOnePod reports whether only one pod at a time may use the claim.
func (c *Claim) allowsOnePod() bool {
	return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
}

// A ClaimRef identifies a claim that a pod uses. A claim of a cluster and a claim in a manifest
// are different claims, even if they have the same key.
type ClaimRef struct {
	types.NamespacedName
	IsFromCluster bool
}

// SinglePodClaims returns the ReadWriteOncePod claims of a set, which only one pod at a time may
// use. It returns nil if there are none or if s is nil.
func SinglePodClaims(s *manifest.Set) map[ClaimRef]bool {
	if s == nil {
		return nil
	}
	var claims map[ClaimRef]bool
	for _, o := range s.ObjectsBySource {
		for key, c := range o.Claims {
			if (&Claim{PersistentVolumeClaim: c}).allowsOnePod() {
				if claims == nil {
					claims = map[ClaimRef]bool{}
				}
				claims[ClaimRef{key, o.IsFromServer()}] = true
			}
		}
	}
	return claims
}

// HasClaims reports whether a set contains PersistentVolumeClaims.
func HasClaims(s *manifest.Set) bool {
	for _, o := range s.ObjectsBySource {
		if len(o.Claims) > 0 {
			return true
		}
	}
	return false
}

// ListClaims returns the claims to which the volumes of a pod refer. p may be nil.
func ListClaims(p *manifest.Pod) []ClaimRef {
	if p == nil {
		return nil
	}
	var claimRefs []ClaimRef
	for i := range p.Object.Spec.Volumes {
		if s := p.Object.Spec.Volumes[i].PersistentVolumeClaim; s != nil {
			key := types.NamespacedName{Namespace: p.Key.Namespace, Name: s.ClaimName}
			claimRefs = append(claimRefs, ClaimRef{key, p.Traits.HasRefsFromServer})
		}
	}
	return claimRefs
}

// encode returns an encoding of the claim and its volume. Different claims and bindings have
// different encodings.
func (c *Claim) encode() []byte {
	text, err := json.Marshal(c.Spec)
	if err == nil && c.Volume != nil {
		var volumeSpec []byte
		volumeSpec, err = json.Marshal(c.Volume.Spec)
		text = append(append(text, c.Volume.Name...), volumeSpec...)
	}
	if err != nil {
		panic("refs: encoding a claim: " + err.Error())
	}
	return text
}

// Claims binds the claims of one source to the PersistentVolumes of the source. It caches an
// index of all claims and volumes, so the caller should use the same Claims for all claims of a
// source.
type Claims struct{ lookup *lookup }

// NewClaims returns the Claims for objects, which must not be modified afterwards.
func NewClaims(o *manifest.Objects) *Claims { return &Claims{newLookup(o)} }

// Bind returns the claim c with its volume. reason is the reason why the claim cannot be bound;
// "" if it can. A claim is bound to
//   - the volume that the claim names,
//   - the volume that names the claim, or
//   - the only volume that fits the claim, if this volume fits no other claim.
//
// If no volume fits, the claim gets a directory (a Claim without a Volume), unless the claim
// excludes dynamic provisioning.
//
// Bind never chooses between several volumes, because the choice, and so the data, could change
// when a volume is added. For the same reason a claim with data in a directory keeps the directory,
// unless the claim names a volume. In Kubernetes a bound claim also keeps its volume.
func (cs *Claims) Bind(c *v1.PersistentVolumeClaim) (bound Claim, reason string) {
	return cs.lookup.bind(c)
}

func (o *lookup) bind(c *v1.PersistentVolumeClaim) (bound Claim, reason string) {
	if o.IsFromServer() {
		pv := o.Volumes[types.NamespacedName{Name: c.Spec.VolumeName}]
		return Claim{PersistentVolumeClaim: c, Volume: pv}, UnboundReason(c, pv)
	}
	bound = Claim{PersistentVolumeClaim: c, Owner: o.ownerOf(c)}
	if name := c.Spec.VolumeName; name != "" {
		pv := o.Volumes[types.NamespacedName{Name: name}]
		if pv == nil {
			return bound, fmt.Sprintf("refers to the PersistentVolume %q, which the same source does not define", name)
		}
		bound.Volume = pv
		if text := cmp.Or(findMismatch(pv, c), o.findAffinityMismatch(pv)); text != "" {
			return bound, text
		}
		return bound, o.findNameConflict(c, pv)
	}
	if o.hasDirectory(c) {
		return bound, ""
	}
	index := o.claimIndex()
	var matchingVolumes, volumesOnOtherNodes []*v1.PersistentVolume
	for _, key := range index.volumes {
		pv := o.Volumes[key]
		if refersTo(pv, c) {
			bound.Volume = pv
			return bound, cmp.Or(findMismatch(pv, c), o.findAffinityMismatch(pv))
		}
		switch {
		case !index.isFree(pv) || findMismatch(pv, c) != "" || !selectorMatches(c, pv):
		case o.findAffinityMismatch(pv) != "":
			volumesOnOtherNodes = append(volumesOnOtherNodes, pv)
		default:
			matchingVolumes = append(matchingVolumes, pv)
		}
	}
	switch {
	case len(matchingVolumes) > 1:
		return bound, fmt.Sprintf("matches several PersistentVolumes (%s); set its spec.volumeName to one of them", quoteAll(matchingVolumes))
	case len(matchingVolumes) == 1:
		bound.Volume = matchingVolumes[0]
		return bound, o.findFitConflict(index, c, matchingVolumes[0])
	case len(volumesOnOtherNodes) > 0: // return an error, because otherwise the claim would get an empty directory in place of its data
		return bound, o.findAffinityMismatch(volumesOnOtherNodes[0])
	case *c.Spec.VolumeMode == v1.PersistentVolumeBlock:
		return bound, "has volumeMode Block, but podd provides directories only; define a PersistentVolume with volumeMode Block, for example with the device as local.path"
	case c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == "" || c.Spec.Selector != nil:
		return bound, "requires a PersistentVolume, but none matches; remove storageClassName and selector to use a directory that podd manages"
	}
	return bound, ""
}

func (o *lookup) ownerOf(c *v1.PersistentVolumeClaim) string {
	origin := o.Origins[manifest.ObjectRef{Kind: manifest.ClaimKind, NamespacedName: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}}]
	if origin.Kind == manifest.KindFile {
		return manifest.KindFile
	}
	return origin.Source
}

// hasDirectory reports whether the data of the claim is in a directory that podd manages.
func (o *lookup) hasDirectory(c *v1.PersistentVolumeClaim) bool {
	isBlock := *c.Spec.VolumeMode == v1.PersistentVolumeBlock
	return !isBlock && o.StoredClaims[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}]
}

// isFree reports whether a volume names no claim and no claim names the volume.
func (i *claimIndex) isFree(pv *v1.PersistentVolume) bool {
	return pv.Spec.ClaimRef == nil && !i.namedVolumes[pv.Name]
}

// findNameConflict returns a message if another claim also names the volume and the volume fits that
// claim; otherwise "". Two claims, which may be in different namespaces, must not share the
// data of a volume.
func (o *lookup) findNameConflict(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) string {
	for _, key := range o.claimIndex().claims {
		if otherClaim := o.Claims[key]; otherClaim != c && otherClaim.Spec.VolumeName == pv.Name && findMismatch(pv, otherClaim) == "" {
			return fmt.Sprintf("refers to the PersistentVolume %q, as does %s; set spec.claimRef of the volume to one of the claims", pv.Name, key)
		}
	}
	return ""
}

// findFitConflict returns a message if the volume also fits another claim that could be bound to it;
// otherwise "".
func (o *lookup) findFitConflict(index *claimIndex, c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) string {
	for _, key := range index.claims {
		otherClaim := o.Claims[key]
		if otherClaim == c || otherClaim.Spec.VolumeName != "" || index.referredClaims[key] || findMismatch(pv, otherClaim) != "" || !selectorMatches(otherClaim, pv) {
			continue
		}
		return fmt.Sprintf("matches the PersistentVolume %q, as does %s; set spec.volumeName of one of the claims", pv.Name, key)
	}
	return ""
}

func refersTo(pv *v1.PersistentVolume, c *v1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && manifest.NewKey(ref.Namespace, ref.Name) == manifest.NewKey(c.Namespace, c.Name)
}

// findMismatch returns the reason why a volume does not fit a claim; "" if it fits.
func findMismatch(pv *v1.PersistentVolume, c *v1.PersistentVolumeClaim) string {
	capacity, request := pv.Spec.Capacity[v1.ResourceStorage], c.Spec.Resources.Requests[v1.ResourceStorage]
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	prefix := func() string { return fmt.Sprintf("cannot use the PersistentVolume %q: ", pv.Name) }
	switch {
	case pv.Spec.ClaimRef != nil && !refersTo(pv, c):
		return prefix() + "its claimRef is " + manifest.NewKey(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name).String()
	case capacity.Cmp(request) < 0:
		return prefix() + "its capacity is " + capacity.String() + ", but the claim requests " + request.String()
	case *pv.Spec.VolumeMode != *c.Spec.VolumeMode:
		return prefix() + "its volumeMode is " + string(*pv.Spec.VolumeMode)
	case pv.Spec.StorageClassName != class:
		return prefix() + fmt.Sprintf("its storageClassName is %q", pv.Spec.StorageClassName)
	}
	for _, mode := range c.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, mode) {
			return prefix() + "it does not allow the access mode " + string(mode)
		}
	}
	return ""
}

// findAffinityMismatch returns a message if the node affinity of a volume excludes this node,
// otherwise "".
func (o *lookup) findAffinityMismatch(pv *v1.PersistentVolume) string {
	if !o.VolumesOnOtherNodes[types.NamespacedName{Name: pv.Name}] {
		return ""
	}
	return fmt.Sprintf("cannot use the PersistentVolume %q: its nodeAffinity does not match the labels of this node (--node-labels)", pv.Name)
}

func selectorMatches(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) bool {
	if c.Spec.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	return err == nil && s.Matches(labels.Set(pv.Labels))
}

func quoteAll(list []*v1.PersistentVolume) string {
	var names []string
	for _, pv := range list {
		names = append(names, fmt.Sprintf("%q", pv.Name))
	}
	return strings.Join(names, ", ")
}

// missingForClaim returns the reason why a pod cannot use an existing claim, as a missingRef. It
// returns nil if the pod can use the claim.
//
// If the data of the claim is in a directory that podd manages, the claim keeps this directory, so
// the pod does not wait for sources. Otherwise the pod waits until all sources with a higher
// precedence have been read completely (PendingSource), because these may also define the claim. If
// no volume matches the claim, the pod also waits until its own source has been read completely. This
// source may still define a matching volume.
func (o *lookup) missingForClaim(p *manifest.Pod, u Ref, object string) []missingRef {
	if o.PendingSource != "" && !o.hasDirectory(o.Claims[u.Object.NamespacedName]) {
		return []missingRef{{Ref: u, object: object, reason: "may also be defined in " + o.PendingSource + ", which takes precedence and has not been read completely yet"}}
	}
	bound, reason := o.bind(o.Claims[u.Object.NamespacedName])
	if reason == "" {
		reason = findVolumeModeMisuse(p, &bound)
	}
	switch {
	case reason != "":
		return []missingRef{{Ref: u, object: object, reason: reason}}
	case bound.Volume == nil && !o.hasDirectory(bound.PersistentVolumeClaim):
		u.Optional = true
		return []missingRef{{Ref: u, object: object, reason: "may match a PersistentVolume in a file that has not been read yet"}}
	}
	return nil
}

// findVolumeModeMisuse returns a message if a container mounts a block volume, or uses a file
// system as a block device; otherwise "".
func findVolumeModeMisuse(p *manifest.Pod, c *Claim) (text string) {
	isBlock := c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == v1.PersistentVolumeBlock
	usesClaim := func(name string) bool {
		for i := range p.Object.Spec.Volumes {
			if v := &p.Object.Spec.Volumes[i]; v.Name == name {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == c.Name ||
					v.Ephemeral != nil && EphemeralClaimName(p.Object, name) == c.Name
			}
		}
		return false
	}
	for _, list := range [][]v1.Container{p.Object.Spec.InitContainers, p.Object.Spec.Containers} {
		for i := range list {
			switch container := &list[i]; {
			case isBlock && slices.ContainsFunc(container.VolumeMounts, func(m v1.VolumeMount) bool { return usesClaim(m.Name) }):
				return fmt.Sprintf("has volumeMode Block, but container %s has it in volumeMounts; move it to volumeDevices", container.Name)
			case !isBlock && slices.ContainsFunc(container.VolumeDevices, func(d v1.VolumeDevice) bool { return usesClaim(d.Name) }):
				return fmt.Sprintf("has volumeMode Filesystem, but container %s has it in volumeDevices; move it to volumeMounts", container.Name)
			}
		}
	}
	return ""
}
