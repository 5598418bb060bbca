package refs

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"podd/manifest"
)

// A CSI contains the parameters of the CSI calls for one volume, which come from a
// PersistentVolume of a cluster or from the pod itself. It is immutable.
type CSI struct {
	Driver string
	// Handle is the volume ID; "" for an inline volume, which lives as long as the pod.
	Handle string
	// Volume is the name of the PersistentVolume; "" for an inline volume.
	Volume       string
	FSType       string // "" means the driver's default
	ReadOnly     bool
	Block        bool // a block device instead of a file system
	AccessMode   v1.PersistentVolumeAccessMode
	MountOptions []string
	Attributes   map[string]string
	// Published is the publish context: the attachment metadata of the VolumeAttachment for
	// this node. It is nil if volumes of the driver are not attached.
	Published map[string]string
	// Capacity is the capacity of the volume in bytes, which may grow while it is in use;
	// 0: unknown.
	Capacity int64
	// The Secrets for the calls of these names; nil: none.
	StageSecret, PublishSecret, ExpandSecret map[string][]byte
	// DriverSpec is the spec of the CSIDriver, for example podInfoOnMount and fsGroupPolicy. It
	// is nil if the cluster has no CSIDriver of this name, which means the defaults.
	DriverSpec *storage.CSIDriverSpec
	// Tokens contains the pod's tokens by audience, as JSON for the volume context; "" if
	// the driver does not request tokens.
	Tokens string
	// MustExpand reports that the claim has less than Capacity, so the node must still expand the
	// volume.
	MustExpand bool
}

// CSI returns the parameters for the driver of a volume. It returns nil while they are
// unknown, or if no driver serves the volume. The pointer stays the same while the content
// is equal.
func (s *Resolved) CSI(v *v1.Volume) *CSI {
	if s == nil {
		return nil
	}
	return s.csi[v.Name]
}

// addCSI sets the parameters of those volumes for which all objects are available.
func (s *Resolved) addCSI(o *lookup, node *manifest.Node, before *Resolved) {
	for i := range s.pod.Spec.Spec.Volumes {
		v := &s.pod.Spec.Spec.Volumes[i]
		d := o.csiVolume(s.pod.Spec, i)
		if d == nil || o.driverWait(d) != "" || !o.complete(s.pod, d, node) {
			continue
		}
		is := o.csiParameters(s.pod.Spec, d)
		if before != nil && samePod(before.pod, s.pod) && reflect.DeepEqual(before.csi[v.Name], is) {
			is = before.csi[v.Name]
		}
		s.csi[v.Name] = is
	}
}

// complete reports whether all objects that the driver of a volume needs are available.
func (o *lookup) complete(p *manifest.Pod, d *csiVolume, node *manifest.Node) bool {
	if o.server.Drivers == nil {
		return false
	}
	all := o.refsOf(p.Spec, d)
	if d.claim != nil {
		all = append(all, *d.claim)
	}
	for _, u := range all {
		if !o.lookedUp(u.Object) || o.missingReason(p, u, node) != "" {
			return false
		}
	}
	return true
}

// csiParameters returns the parameters for a volume for which everything is available.
func (o *lookup) csiParameters(pod *v1.Pod, d *csiVolume) *CSI {
	c := &CSI{Driver: d.driver, DriverSpec: o.server.Drivers[d.driver], Tokens: o.tokensFor(pod, d.driver)}
	secret := func(u *Ref) map[string][]byte {
		if u == nil || o.Secrets[u.Object.NamespacedName] == nil {
			return nil
		}
		return o.Secrets[u.Object.NamespacedName].Data
	}
	c.StageSecret, c.PublishSecret, c.ExpandSecret = secret(d.stage), secret(d.publish), secret(d.expand)
	if s := d.inline; s != nil {
		c.ReadOnly, c.Attributes, c.AccessMode = ptr.Deref(s.ReadOnly, false), s.VolumeAttributes, v1.ReadWriteOnce
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
	if to, grows := ExpansionSize(d.bound, d.pv); grows && !c.ReadOnly {
		c.MustExpand, c.Capacity = true, to.Value()
	}
	if len(d.pv.Spec.AccessModes) > 0 { // as in the kubelet
		c.AccessMode = d.pv.Spec.AccessModes[0]
	}
	if o.attaches(d) {
		c.Published = o.server.Attached[AttachmentName(d.driver, s.VolumeHandle, pod.Spec.NodeName)]
	}
	return c
}

// ExpansionSize returns the size to which this node must expand the volume of a claim. grows
// is false if the node must not expand it. If the status of the claim has the progress of the
// controller, the node waits until the controller has expanded the volume. An older controller
// sets no progress, so the capacity of the volume is the size.
func ExpansionSize(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) (to resource.Quantity, grows bool) {
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

// tokensFor returns the tokens that a driver requests for a pod, as JSON for the volume
// context.
func (o *lookup) tokensFor(pod *v1.Pod, driver string) string {
	spec := o.server.Drivers[driver]
	if spec == nil || len(spec.TokenRequests) == 0 {
		return ""
	}
	all := map[string]authentication.TokenRequestStatus{}
	for i := range spec.TokenRequests {
		token := o.server.Tokens[tokenRef(pod, &spec.TokenRequests[i], "").Object.NamespacedName]
		all[spec.TokenRequests[i].Audience] = authentication.TokenRequestStatus{Token: string(token.Text), ExpirationTimestamp: token.Expires}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("refs: encoding tokens: " + err.Error())
	}
	return string(text)
}

// calls returns a text that differs if drivers must be called with different parameters
// while the pod runs. It is nil if the pod has no CSI volume. Otherwise the volumes are
// also checked after a restart.
func (s *Resolved) calls() []byte {
	var all []byte
	for _, volume := range slices.Sorted(maps.Keys(s.csi)) {
		c := s.csi[volume]
		again := CSI{MustExpand: c.MustExpand}
		if c.MustExpand {
			again.Capacity = c.Capacity
		}
		if c.DriverSpec != nil && ptr.Deref(c.DriverSpec.RequiresRepublish, false) {
			again = *c
		}
		all = append(append(all, volume...), again.text()...)
	}
	return all
}

// text returns a text that differs for different parameters.
func (c *CSI) text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic("refs: encoding CSI parameters: " + err.Error())
	}
	return text
}
