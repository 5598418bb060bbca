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

// A CSIVolume contains the parameters of the calls to a CSI driver for one volume of a pod. The
// parameters come from a PersistentVolume or, for an inline volume, from the pod. A CSIVolume is
// immutable.
type CSIVolume struct {
	Driver string
	// Handle is the volume ID; "" for an inline volume, which is deleted with the pod.
	Handle string
	// Volume is the name of the PersistentVolume; "" for an inline volume.
	Volume       string
	FSType       string // "" means the driver's default
	ReadOnly     bool
	Block        bool // whether the volume is a block device instead of a file system
	AccessMode   v1.PersistentVolumeAccessMode
	MountOptions []string
	Attributes   map[string]string
	// Published is the publish context: the attachment metadata of the VolumeAttachment for
	// this node. It is nil if volumes of the driver are not attached.
	Published map[string]string
	// Capacity is the capacity of the volume in bytes; 0 means unknown. It may grow while the
	// volume is in use.
	Capacity int64
	// These are the data of the Secrets for the CSI calls NodeStageVolume, NodePublishVolume and
	// NodeExpandVolume. A map is nil if there is no Secret for the call.
	StageSecret, PublishSecret, ExpandSecret map[string][]byte
	// DriverSpec is the spec of the CSIDriver, with fields such as podInfoOnMount and
	// fsGroupPolicy. It is nil if the cluster has no CSIDriver of this name. In this case the
	// defaults apply. It is never nil for a volume in manifests.
	DriverSpec *storage.CSIDriverSpec
	// Tokens contains the pod's tokens by audience, as JSON for the volume context; "" if
	// the driver does not request tokens.
	Tokens string
	// MustExpand reports whether the node must expand the volume to Capacity.
	MustExpand bool
}

// CSI returns the parameters of the calls to the CSI driver of a volume. It returns nil if no CSI
// driver provides the volume, or if an object for the parameters is missing. The pointer stays the
// same while the parameters do not change.
func (s *Resolved) CSI(v *v1.Volume) *CSIVolume {
	if s == nil {
		return nil
	}
	return s.csiVolumes[v.Name]
}

// addCSI sets the parameters of the CSI volumes for which all objects are available. previous is the
// previous result for the pod, or nil; unchanged parameters keep their pointer.
func (s *Resolved) addCSI(o *lookup, node *manifest.Node, previous *Resolved) {
	for i := range s.pod.Object.Spec.Volumes {
		v := &s.pod.Object.Spec.Volumes[i]
		d := o.csiVolume(s.pod.Object, i)
		if d == nil || o.mustWait(d) || !o.hasAllObjects(s.pod, d, node) {
			continue
		}
		parameters := o.csiParameters(s.pod.Object, d)
		if previous != nil && samePod(previous.pod, s.pod) && reflect.DeepEqual(previous.csiVolumes[v.Name], parameters) {
			parameters = previous.csiVolumes[v.Name]
		}
		s.csiVolumes[v.Name] = parameters
	}
}

// hasAllObjects reports whether all objects that the driver of a volume needs are available.
func (o *lookup) hasAllObjects(p *manifest.Pod, d *csiVolume, node *manifest.Node) bool {
	if o.drivers == nil {
		return false
	}
	refs := o.refsOf(p.Object, d)
	if !o.IsFromServer() {
		return !slices.ContainsFunc(refs, func(u Ref) bool { return !o.exists(u.Object) })
	}
	if d.claim != nil {
		refs = append(refs, *d.claim)
	}
	for _, u := range refs {
		if !o.isLookedUp(u.Object) || o.missingReason(p, u, node) != "" {
			return false
		}
	}
	return true
}

// csiParameters returns the parameters of a volume. All objects for the volume must be
// available.
func (o *lookup) csiParameters(pod *v1.Pod, d *csiVolume) *CSIVolume {
	c := &CSIVolume{Driver: d.driver, DriverSpec: o.drivers[d.driver], Tokens: o.encodeTokens(pod, d.driver)}
	secretData := func(u *Ref) map[string][]byte {
		if u == nil || o.Secrets[u.Object.NamespacedName] == nil {
			return nil
		}
		return o.Secrets[u.Object.NamespacedName].Data
	}
	c.StageSecret, c.PublishSecret, c.ExpandSecret = secretData(d.stageSecret), secretData(d.publishSecret), secretData(d.expandSecret)
	if s := d.inline; s != nil {
		c.ReadOnly, c.Attributes, c.AccessMode = ptr.Deref(s.ReadOnly, false), s.VolumeAttributes, v1.ReadWriteOnce
		if s.FSType != nil {
			c.FSType = *s.FSType
		}
		return c
	}
	s := d.pv.Spec.CSI
	size := d.pv.Spec.Capacity[v1.ResourceStorage]
	c.Handle, c.Volume, c.FSType, c.ReadOnly, c.Attributes = s.VolumeHandle, d.pv.Name, s.FSType, d.isReadOnly, s.VolumeAttributes
	c.Block = d.pv.Spec.VolumeMode != nil && *d.pv.Spec.VolumeMode == v1.PersistentVolumeBlock
	c.AccessMode, c.MountOptions, c.Capacity = v1.ReadWriteOnce, d.pv.Spec.MountOptions, size.Value()
	if o.IsFromServer() && d.boundClaim != nil && !c.ReadOnly {
		if newSize, mustExpand := ExpansionSize(d.boundClaim, d.pv); mustExpand {
			c.MustExpand, c.Capacity = true, newSize.Value()
		}
	}
	if len(d.pv.Spec.AccessModes) > 0 { // the kubelet uses the first mode, too
		c.AccessMode = d.pv.Spec.AccessModes[0]
	}
	if o.mustAttach(d) {
		c.Published = o.cluster.AttachedVolumes[AttachmentName(d.driver, s.VolumeHandle, pod.Spec.NodeName)]
	}
	return c
}

// ExpansionSize returns the size to which this node must expand the volume of a claim. If mustExpand
// is false, the node must not expand the volume now.
//
// If the status of the claim contains the progress of the expansion, the node waits until the
// resize controller has expanded the volume. An older controller does not record the progress. In
// this case the size is the capacity of the PersistentVolume.
func ExpansionSize(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) (size resource.Quantity, mustExpand bool) {
	s := &c.Status
	currentSize, resizeStatus := s.Capacity[v1.ResourceStorage], s.AllocatedResourceStatuses[v1.ResourceStorage]
	if s.AllocatedResources == nil && resizeStatus == "" {
		size = pv.Spec.Capacity[v1.ResourceStorage]
		return size, currentSize.Sign() > 0 && currentSize.Cmp(size) < 0
	}
	size = s.AllocatedResources[v1.ResourceStorage]
	isPending := resizeStatus == v1.PersistentVolumeClaimNodeResizePending || resizeStatus == v1.PersistentVolumeClaimNodeResizeInProgress
	return size, isPending && currentSize.Cmp(size) < 0
}

// encodeTokens returns the tokens that a driver requests for a pod, as JSON for the volume
// context.
func (o *lookup) encodeTokens(pod *v1.Pod, driver string) string {
	spec := o.drivers[driver]
	if spec == nil || len(spec.TokenRequests) == 0 {
		return ""
	}
	tokensByAudience := map[string]authentication.TokenRequestStatus{}
	for i := range spec.TokenRequests {
		token := o.cluster.Tokens[tokenRef(pod, &spec.TokenRequests[i], "").Object.NamespacedName]
		tokensByAudience[spec.TokenRequests[i].Audience] = authentication.TokenRequestStatus{Token: string(token.Text), ExpirationTimestamp: token.Expires}
	}
	text, err := json.Marshal(tokensByAudience)
	if err != nil {
		panic("refs: encoding tokens: " + err.Error())
	}
	return string(text)
}

// encodeDriverCalls returns an encoding of the parameters with which drivers must be called while
// the pod runs. If the encoding changes, the drivers must be called again. The result is nil only
// if the pod has no CSI volume. Therefore the FilesDigest of a pod with CSI volumes is never empty,
// so that podd also checks these volumes after a restart of podd.
func (s *Resolved) encodeDriverCalls() []byte {
	var encoding []byte
	for _, volume := range slices.Sorted(maps.Keys(s.csiVolumes)) {
		c := s.csiVolumes[volume]
		parameters := CSIVolume{MustExpand: c.MustExpand}
		if c.MustExpand {
			parameters.Capacity = c.Capacity
		}
		if c.DriverSpec != nil && ptr.Deref(c.DriverSpec.RequiresRepublish, false) {
			parameters = *c
		}
		encoding = append(append(encoding, volume...), parameters.encode()...)
	}
	return encoding
}

// encode returns an encoding of the parameters. Different parameters have different encodings.
func (c *CSIVolume) encode() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic("refs: encoding CSI parameters: " + err.Error())
	}
	return text
}
