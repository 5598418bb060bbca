package manifest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CSI is what a driver is told of a volume, so that it appears on this machine and
// in a pod: from a PersistentVolume of a cluster, or from the pod itself. Immutable.
type CSI struct {
	Driver string
	// Handle is the driver's name of the volume; "" for one that is written in the
	// pod, which lives as long as the pod does.
	Handle string
	// Volume is the name of the PersistentVolume; "" for one of the pod's own.
	Volume       string
	FSType       string // "": the driver's choice
	ReadOnly     bool
	Block        bool // a device, not a directory
	AccessMode   v1.PersistentVolumeAccessMode
	MountOptions []string
	Attributes   map[string]string
	// Published is what the attacher says of the volume here, the metadata of its
	// VolumeAttachment; nil where nothing attaches volumes of the driver.
	Published map[string]string
	// Capacity is that of the volume in bytes, which the cluster may raise while it is
	// in use; 0: not known.
	Capacity int64
	// The Secrets that are passed on with the call of their name; nil: none.
	StageSecret, PublishSecret, ExpandSecret map[string][]byte
	// Wishes are how the driver wants to be called: what of the pod it is told, who
	// gives the files to a group. nil: the cluster knows no CSIDriver of the name,
	// and the defaults of one count.
	Wishes *storage.CSIDriverSpec
	// Tokens are the pod's tokens by audience, as JSON, where the driver wants them
	// in the volume context; "": it does not.
	Tokens string
	// Grow says that the claim has less than Capacity yet: what this machine has to do
	// for a volume to grow is still to be done.
	Grow bool
}

// CSI is what the driver of a volume is told of it; nil while it is not known, or
// where the volume is no driver's. It keeps its pointer while it says the same.
func (s *Supply) CSI(v *v1.Volume) *CSI {
	if s == nil {
		return nil
	}
	return s.csi[v.Name]
}

// drive gathers what the drivers of the pod's volumes are told, of those of which
// all is there.
func (s *Supply) drive(o *Objects, node *Node, before *Supply) {
	for i := range s.pod.Spec.Spec.Volumes {
		v := &s.pod.Spec.Spec.Volumes[i]
		d := o.driven(s.pod.Spec, i)
		if d == nil || o.driverWait(d) != "" || !o.complete(s.pod, d, node) {
			continue
		}
		is := o.told(s.pod.Spec, d)
		if before != nil && samePod(before.pod, s.pod) && reflect.DeepEqual(before.csi[v.Name], is) {
			is = before.csi[v.Name]
		}
		put(&s.csi, v.Name, is)
	}
}

// complete says that all that a volume's driver needs is there.
func (o *Objects) complete(p *Pod, d *driven, node *Node) bool {
	if o.Cluster.Drivers == nil {
		return false
	}
	uses := o.usesOf(p.Spec, d)
	if d.claim != nil {
		uses = append(uses, *d.claim)
	}
	for _, u := range uses {
		if !o.lookedUp(u.Object) || o.lackOf(p, u, node) != "" {
			return false
		}
	}
	return true
}

// told is what a driver is told of a volume of which all is there.
func (o *Objects) told(pod *v1.Pod, d *driven) *CSI {
	c := &CSI{Driver: d.driver, Wishes: o.Cluster.Drivers[d.driver], Tokens: o.tokensFor(pod, d.driver)}
	secret := func(u *Use) map[string][]byte {
		if u == nil || o.Secrets[u.Object.NamespacedName] == nil {
			return nil
		}
		return o.Secrets[u.Object.NamespacedName].Data
	}
	c.StageSecret, c.PublishSecret, c.ExpandSecret = secret(d.stage), secret(d.publish), secret(d.expand)
	if s := d.inline; s != nil {
		c.ReadOnly, c.Attributes, c.AccessMode = isTrue(s.ReadOnly), s.VolumeAttributes, v1.ReadWriteOnce
		if s.FSType != nil {
			c.FSType = *s.FSType
		}
		return c
	}
	s := d.pv.Spec.CSI
	size := d.pv.Spec.Capacity[v1.ResourceStorage]
	c.Handle, c.Volume, c.FSType, c.ReadOnly, c.Attributes = s.VolumeHandle, d.pv.Name, s.FSType, d.readOnly, s.VolumeAttributes
	c.Block = d.pv.Spec.VolumeMode != nil && *d.pv.Spec.VolumeMode == v1.PersistentVolumeBlock
	c.AccessMode, c.MountOptions, c.Capacity = v1.ReadWriteOnce, d.pv.Spec.MountOptions, size.Value()
	if to, grows := Growth(d.bound, d.pv); grows && !c.ReadOnly {
		c.Grow, c.Capacity = true, to.Value()
	}
	if len(d.pv.Spec.AccessModes) > 0 { // the kubelet's choice, too
		c.AccessMode = d.pv.Spec.AccessModes[0]
	}
	if o.attaches(d) {
		c.Published = o.Cluster.Attached[AttachmentName(d.driver, s.VolumeHandle, pod.Spec.NodeName)]
	}
	return c
}

// Growth is the size that a claim of a volume is to grow to on this machine. A controller that says
// how far it is is waited for; from one of old, the size of the volume is all there is.
func Growth(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) (to resource.Quantity, grows bool) {
	s := &c.Status
	has, step := s.Capacity[v1.ResourceStorage], s.AllocatedResourceStatuses[v1.ResourceStorage]
	if s.AllocatedResources == nil && step == "" {
		to = pv.Spec.Capacity[v1.ResourceStorage]
		return to, has.Sign() > 0 && has.Cmp(to) < 0
	}
	to = s.AllocatedResources[v1.ResourceStorage]
	pending := step == v1.PersistentVolumeClaimNodeResizePending || step == v1.PersistentVolumeClaimNodeResizeInProgress
	return to, pending && has.Cmp(to) < 0
}

// tokensFor are those that a driver wants of a pod, as the volume context has them.
func (o *Objects) tokensFor(pod *v1.Pod, driver string) string {
	wants := o.Cluster.Drivers[driver]
	if wants == nil || len(wants.TokenRequests) == 0 {
		return ""
	}
	all := map[string]authentication.TokenRequestStatus{}
	for i := range wants.TokenRequests {
		token := o.Cluster.Tokens[tokenUse(pod, &wants.TokenRequests[i], "").Object.NamespacedName]
		all[wants.TokenRequests[i].Audience] = authentication.TokenRequestStatus{Token: string(token.Text), ExpirationTimestamp: token.Expires}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("manifest: tokens are no JSON: " + err.Error())
	}
	return string(text)
}

// calls tells apart what drivers are to be called with while the pod runs; nil: the pod
// has no volume of theirs. Where there are some they are looked at after a start, too.
func (s *Supply) calls() []byte {
	var all []byte
	for _, volume := range slices.Sorted(maps.Keys(s.csi)) {
		c := s.csi[volume]
		again := CSI{Grow: c.Grow}
		if c.Grow {
			again.Capacity = c.Capacity
		}
		if c.Wishes != nil && isTrue(c.Wishes.RequiresRepublish) {
			again = *c
		}
		all = append(append(all, volume...), again.text()...)
	}
	return all
}

// text tells one content from another.
func (c *CSI) text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic("manifest: what a driver is told is no JSON: " + err.Error())
	}
	return text
}
