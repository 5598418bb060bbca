package manifest

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
)

const (
	kindClaim  = "PersistentVolumeClaim"
	kindVolume = "PersistentVolume"
)

// Claim is a PersistentVolumeClaim and what it is bound to.
type Claim struct {
	*v1.PersistentVolumeClaim
	// Volume is nil for a claim that gets a directory of podd's.
	Volume *v1.PersistentVolume
	// Owner is whose claim it is: "file", or the name of another source. A claim's
	// data is for pods of its owner alone. "" is a cluster, which has bound it: podd
	// keeps nothing of it.
	Owner string
}

// Single says that the claim is for one pod at a time.
func (c *Claim) Single() bool {
	return slices.Contains(c.Spec.AccessModes, v1.ReadWriteOncePod)
}

// ClaimRef names a claim that a pod uses. One of a cluster is another than one of that
// name on the machine.
type ClaimRef struct {
	types.NamespacedName
	Cluster bool
}

// SingleClaims are the claims of a set, which may be nil, that are for one pod at
// a time; nil for none.
func SingleClaims(s *Set) map[ClaimRef]bool {
	if s == nil {
		return nil
	}
	var single map[ClaimRef]bool
	for _, o := range s.Objects {
		for key, c := range o.Claims {
			if (&Claim{PersistentVolumeClaim: c}).Single() {
				put(&single, ClaimRef{key, o.Cluster != nil}, true)
			}
		}
	}
	return single
}

// HasClaims says that a set has claims at all.
func HasClaims(s *Set) bool {
	for _, o := range s.Objects {
		if len(o.Claims) > 0 {
			return true
		}
	}
	return false
}

// ClaimsOf are the claims that the volumes of a pod, which may be nil, name.
func ClaimsOf(p *Pod) []ClaimRef {
	if p == nil {
		return nil
	}
	var names []ClaimRef
	for i := range p.Spec.Spec.Volumes {
		if s := p.Spec.Spec.Volumes[i].PersistentVolumeClaim; s != nil {
			key := types.NamespacedName{Namespace: p.Key.Namespace, Name: s.ClaimName}
			names = append(names, ClaimRef{key, p.Origin.Kind == KindAPI})
		}
	}
	return names
}

// text tells one claim, and what it is bound to, from another.
func (c *Claim) text() []byte {
	text, err := json.Marshal(c.Spec)
	if err == nil && c.Volume != nil {
		var more []byte
		more, err = json.Marshal(c.Volume.Spec)
		text = append(append(text, c.Volume.Name...), more...)
	}
	if err != nil {
		panic("manifest: a decoded claim is no JSON: " + err.Error())
	}
	return text
}

// Binding finds the volume of a claim: the one it names, the one that names it, or
// the only one that fits it and no other claim. It never chooses, or the choice
// could be another once a volume is added, and the data with it. For the same
// reason a claim that has its directory stays there, as a bound one does in
// Kubernetes, unless it names a volume. lack says what keeps the claim from being
// bound; without a volume that fits it gets a directory, unless it asks for none
// made anew.
func (o *Objects) Binding(c *v1.PersistentVolumeClaim) (bound Claim, lack string) {
	if o.Cluster != nil {
		pv := o.Volumes[types.NamespacedName{Name: c.Spec.VolumeName}]
		return Claim{PersistentVolumeClaim: c, Volume: pv}, Unbound(c, pv)
	}
	bound = Claim{PersistentVolumeClaim: c, Owner: o.owner(c)}
	if name := c.Spec.VolumeName; name != "" {
		pv := o.Volumes[types.NamespacedName{Name: name}]
		if pv == nil {
			return bound, fmt.Sprintf("names the PersistentVolume %q, which is not beside it", name)
		}
		bound.Volume = pv
		if text := cmp.Or(misfit(pv, c), o.away(pv)); text != "" {
			return bound, text
		}
		return bound, o.namesake(c, pv)
	}
	if o.keeps(c) {
		return bound, ""
	}
	index := o.claimed()
	var fit, away []*v1.PersistentVolume
	for _, key := range index.volumes {
		pv := o.Volumes[key]
		if refersTo(pv, c) {
			bound.Volume = pv
			return bound, cmp.Or(misfit(pv, c), o.away(pv))
		}
		switch {
		case !index.free(pv) || misfit(pv, c) != "" || !selects(c, pv):
		case o.away(pv) != "":
			away = append(away, pv)
		default:
			fit = append(fit, pv)
		}
	}
	switch {
	case len(fit) > 1:
		return bound, fmt.Sprintf("fits the PersistentVolumes %s; name one of them in its spec.volumeName", quoteAll(fit))
	case len(fit) == 1:
		bound.Volume = fit[0]
		return bound, o.rival(index, c, fit[0])
	case len(away) > 0: // an empty directory would stand for its data
		return bound, o.away(away[0])
	case *c.Spec.VolumeMode == v1.PersistentVolumeBlock:
		return bound, "has the volumeMode Block, and podd makes directories, no devices; write a PersistentVolume of volumeMode Block with local.path, the device, beside it"
	case c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == "" || c.Spec.Selector != nil:
		return bound, "wants a PersistentVolume, and none beside it fits; leave out storageClassName and selector for a directory of podd's"
	}
	return bound, ""
}

func (o *Objects) owner(c *v1.PersistentVolumeClaim) string {
	origin := o.Origins[ObjectRef{kindClaim, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}}]
	if origin.Kind == KindFile {
		return KindFile
	}
	return origin.Source
}

// keeps says that a claim has its data in a directory of podd's.
func (o *Objects) keeps(c *v1.PersistentVolumeClaim) bool {
	block := *c.Spec.VolumeMode == v1.PersistentVolumeBlock
	return !block && o.Kept[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}]
}

// free says that a volume is neither for a certain claim nor named by one.
func (i *claimIndex) free(pv *v1.PersistentVolume) bool {
	return pv.Spec.ClaimRef == nil && !i.named[pv.Name]
}

// namesake speaks of another claim that names the volume and could have it: a
// volume is one claim's, or its data would be another namespace's as well.
func (o *Objects) namesake(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) string {
	for _, key := range o.claimed().claims {
		if other := o.Claims[key]; other != c && other.Spec.VolumeName == pv.Name && misfit(pv, other) == "" {
			return fmt.Sprintf("names the PersistentVolume %q, as %s does; name one of them in its spec.claimRef", pv.Name, key)
		}
	}
	return ""
}

// rival speaks of another claim that the volume fits as well.
func (o *Objects) rival(index *claimIndex, c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) string {
	for _, key := range index.claims {
		other := o.Claims[key]
		if other == c || other.Spec.VolumeName != "" || index.referred[key] || misfit(pv, other) != "" || !selects(other, pv) {
			continue
		}
		return fmt.Sprintf("fits the PersistentVolume %q as well as %s does; name it in the spec.volumeName of one", pv.Name, key)
	}
	return ""
}

func refersTo(pv *v1.PersistentVolume, c *v1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && keyOf(ref.Namespace, ref.Name) == keyOf(c.Namespace, c.Name)
}

// misfit says why a volume is not for a claim, "" when it is.
func misfit(pv *v1.PersistentVolume, c *v1.PersistentVolumeClaim) string {
	have, want := pv.Spec.Capacity[v1.ResourceStorage], c.Spec.Resources.Requests[v1.ResourceStorage]
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	it := func() string { return fmt.Sprintf("cannot have the PersistentVolume %q: ", pv.Name) }
	switch {
	case pv.Spec.ClaimRef != nil && !refersTo(pv, c):
		return it() + "its claimRef is " + keyOf(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name).String()
	case have.Cmp(want) < 0:
		return it() + "it has " + have.String() + ", and the claim requests " + want.String()
	case *pv.Spec.VolumeMode != *c.Spec.VolumeMode:
		return it() + "its volumeMode is " + string(*pv.Spec.VolumeMode)
	case pv.Spec.StorageClassName != class:
		return it() + fmt.Sprintf("its storageClassName is %q", pv.Spec.StorageClassName)
	}
	for _, mode := range c.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, mode) {
			return it() + "it has no accessMode " + string(mode)
		}
	}
	return ""
}

// away says that a volume is one of other nodes, "" when it is not.
func (o *Objects) away(pv *v1.PersistentVolume) string {
	if !o.Elsewhere[types.NamespacedName{Name: pv.Name}] {
		return ""
	}
	return fmt.Sprintf("cannot have the PersistentVolume %q: its nodeAffinity is for nodes with other labels than this one has (--node-labels)", pv.Name)
}

func selects(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) bool {
	if c.Spec.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	return err == nil && s.Matches(labels.Set(pv.Labels))
}

func byName(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

func quoteAll(list []*v1.PersistentVolume) string {
	var names []string
	for _, pv := range list {
		names = append(names, fmt.Sprintf("%q", pv.Name))
	}
	return strings.Join(names, ", ")
}

// claimLacks is what a claim that is there lacks. Until its source was seen whole
// a volume may yet come that is its own, so it gets no directory; and until those
// before it were it may be another's. One that has its directory waits for
// neither, for it gets no other data by that.
func (o *Objects) claimLacks(p *Pod, u Use, what string) []lack {
	if o.Before != "" && !o.keeps(o.Claims[u.Object.NamespacedName]) {
		return []lack{{u, what, "may be at " + o.Before + ", too, which comes first and was not read whole yet"}}
	}
	bound, text := o.Binding(o.Claims[u.Object.NamespacedName])
	if text == "" {
		text = misused(p, &bound)
	}
	switch {
	case text != "":
		return []lack{{u, what, text}}
	case bound.Volume == nil && !o.keeps(bound.PersistentVolumeClaim):
		u.Optional = true
		return []lack{{u, what, "may have a PersistentVolume in a file that is not read yet"}}
	}
	return nil
}

// misused says that a container mounts a device, or has a file system as one; ""
// when none does.
func misused(p *Pod, c *Claim) (text string) {
	block := c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == v1.PersistentVolumeBlock
	of := func(name string) bool {
		for i := range p.Spec.Spec.Volumes {
			if v := &p.Spec.Spec.Volumes[i]; v.Name == name {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == c.Name ||
					v.Ephemeral != nil && EphemeralClaim(p.Spec, name) == c.Name
			}
		}
		return false
	}
	for _, list := range [][]v1.Container{p.Spec.Spec.InitContainers, p.Spec.Spec.Containers} {
		for i := range list {
			switch ctr := &list[i]; {
			case block && slices.ContainsFunc(ctr.VolumeMounts, func(m v1.VolumeMount) bool { return of(m.Name) }):
				return fmt.Sprintf("has the volumeMode Block, and container %s has it among its volumeMounts; write it under volumeDevices", ctr.Name)
			case !block && slices.ContainsFunc(ctr.VolumeDevices, func(d v1.VolumeDevice) bool { return of(d.Name) }):
				return fmt.Sprintf("has the volumeMode Filesystem, and container %s has it among its volumeDevices; write it under volumeMounts", ctr.Name)
			}
		}
	}
	return ""
}
