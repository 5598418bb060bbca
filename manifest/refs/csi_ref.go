package refs

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/manifest/intree"
	"podd/manifest/wording"
)

// AttachTimeout is the time after which podd reports a volume that is not attached, or a certificate that
// is not issued, as a problem. The kubelet has the same timeout for volumes. If the node has reached a limit
// of attached volumes, the pod then fails; see Blocker.AttachLimitMessage.
const AttachTimeout = 2*time.Minute + 3*time.Second

// A csiVolume is a volume that a CSI driver provides to a pod. It is an inline volume, the
// PersistentVolume pv that is bound to the claim, or the translation pv of an in-tree volume.
type csiVolume struct {
	volume, fieldPath, driver                string
	inline                                   *v1.CSIVolumeSource
	claim                                    *Ref // reference to the claim; nil for an inline volume and an in-tree volume
	boundClaim                               *v1.PersistentVolumeClaim
	pv                                       *v1.PersistentVolume // nil for an inline volume
	isReadOnly                               bool
	stageSecret, publishSecret, expandSecret *Ref // references to the Secrets for the calls; nil if there is none
}

// csiVolume returns the volume of a pod at index i if a CSI driver provides it. It returns nil if
// no CSI driver provides the volume, or if its claim is missing or not bound to a PersistentVolume.
func (o *lookup) csiVolume(pod *v1.Pod, i int) *csiVolume {
	v, at := &pod.Spec.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i)
	d := &csiVolume{volume: v.Name, fieldPath: at}
	newSecretRef := func(namespace, name, field string, isOptional bool) *Ref {
		ref := manifest.ObjectRef{Kind: manifest.SecretKind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
		return &Ref{Object: ref, role: forDriver, Optional: isOptional, FieldPath: at + ".csi." + field, PersistentVolume: d.volumeName()}
	}
	if v.CSI != nil {
		d.driver, d.inline = v.CSI.Driver, v.CSI
		if ref := v.CSI.NodePublishSecretRef; ref != nil {
			d.publishSecret = newSecretRef(pod.Namespace, ref.Name, "nodePublishSecretRef", false)
		}
		return d
	}
	if o.IsFromServer() && intree.IsInline(v) {
		pv, err := intree.TranslateInline(v, pod.Namespace)
		if err != nil { // driverBlocker reports the error
			return nil
		}
		d.addVolume(pv, newSecretRef)
		d.isReadOnly = pv.Spec.CSI.ReadOnly
		return d
	}
	var pv *v1.PersistentVolume
	d.claim, d.boundClaim, pv = o.claimedVolume(pod, i)
	if pv == nil || pv.Spec.CSI == nil {
		return nil
	}
	d.addVolume(pv, newSecretRef)
	d.isReadOnly = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	if !o.IsFromServer() && d.pv.Spec.CSI.ReadOnly { // in a cluster, the volume is attached read-only instead
		d.isReadOnly = true
	}
	return d
}

// claimedVolume returns the reference to the claim of a pod's volume at index i, the claim, and the
// PersistentVolume to which the claim is bound. pv is nil if the volume has no claim, or if the claim
// is missing or not bound to a PersistentVolume.
func (o *lookup) claimedVolume(pod *v1.Pod, i int) (ref *Ref, claim *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
	v := &pod.Spec.Volumes[i]
	if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
		return nil, nil, nil
	}
	u := &lister{namespace: pod.Namespace}
	if o.IsFromServer() {
		u.pod = pod
	}
	if u.addVolume(v, fmt.Sprintf("spec.volumes[%d]", i)); len(u.refs) == 0 {
		return nil, nil, nil
	}
	ref = &u.refs[0]
	if claim = o.Claims[ref.Object.NamespacedName]; claim == nil {
		return ref, nil, nil
	}
	bound, reason := o.bind(claim)
	if reason != "" {
		return ref, claim, nil
	}
	return ref, claim, bound.Volume
}

// addVolume sets the PersistentVolume and the references to its Secrets. newRef returns the reference
// to a Secret from a field of the PersistentVolume.
func (d *csiVolume) addVolume(pv *v1.PersistentVolume, newRef func(namespace, name, field string, isOptional bool) *Ref) {
	d.pv, d.driver = pv, pv.Spec.CSI.Driver
	s := pv.Spec.CSI
	if ref := s.NodeStageSecretRef; ref != nil {
		d.stageSecret = newRef(ref.Namespace, ref.Name, "nodeStageSecretRef", false)
	}
	if ref := s.NodePublishSecretRef; ref != nil {
		d.publishSecret = newRef(ref.Namespace, ref.Name, "nodePublishSecretRef", false)
	}
	if ref := s.NodeExpandSecretRef; ref != nil { // optional, because the pod can run without an expansion
		d.expandSecret = newRef(ref.Namespace, ref.Name, "nodeExpandSecretRef", true)
	}
}

// volumeName returns the name of the claim's PersistentVolume; "" if the volume has no claim.
func (d *csiVolume) volumeName() string {
	if d.claim == nil {
		return ""
	}
	return d.pv.Name
}

// ListDriverRefs returns references to the objects that the CSI, iSCSI and Fibre Channel volumes of a pod
// need, such as Secrets and attachments. It ignores a volume whose claim or PersistentVolume is
// missing, because the driver of the volume is then unknown.
func ListDriverRefs(o *manifest.Objects, pod *v1.Pod) []Ref {
	return newLookup(o).driverRefs(pod)
}

func (o *lookup) driverRefs(pod *v1.Pod) []Ref {
	var refs []Ref
	for i := range pod.Spec.Volumes {
		d := o.csiVolume(pod, i)
		if d != nil && (!o.IsFromServer() || o.driverWaitReason(d) == "") { // the names in manifests were validated
			refs = append(refs, o.refsOf(pod, d)...)
		}
		for _, u := range []*Ref{o.chapRef(pod, i), o.diskRef(pod, i)} {
			if u != nil {
				refs = append(refs, *u)
			}
		}
	}
	return refs
}

// mustWait reports whether the driver cannot be called for a volume.
func (o *lookup) mustWait(d *csiVolume) bool {
	if o.IsFromServer() {
		return o.driverWaitReason(d) != ""
	}
	reason, _ := o.unusableReason(d)
	return reason != ""
}

// needsDriver reports whether a CSI driver provides a volume of a pod; see csiVolume.
func (o *lookup) needsDriver(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if o.csiVolume(pod, i) != nil {
			return true
		}
	}
	return false
}

func (o *lookup) refsOf(pod *v1.Pod, d *csiVolume) []Ref {
	if !o.IsFromServer() {
		return d.localRefs()
	}
	var refs []Ref
	for _, secret := range d.secrets() {
		refs = append(refs, *secret)
	}
	if o.drivers == nil {
		return refs
	}
	if d.pv != nil && o.mustAttach(d) {
		handle := d.pv.Spec.CSI.VolumeHandle
		ref := manifest.ObjectRef{Kind: manifest.AttachmentKind, NamespacedName: types.NamespacedName{Name: AttachmentName(d.driver, handle, pod.Spec.NodeName)}}
		refs = append(refs, Ref{Object: ref, role: forDriver, FieldPath: d.fieldPath, Volume: UniqueVolumeName(d.driver, handle)})
	}
	if spec := o.drivers[d.driver]; spec != nil {
		for i := range spec.TokenRequests {
			refs = append(refs, tokenRef(pod, &spec.TokenRequests[i], d.fieldPath))
		}
	}
	return refs
}

// localRefs returns the references for a volume in manifests: the CSIDriver and the Secrets, each
// object once.
func (d *csiVolume) localRefs() []Ref {
	refs := []Ref{d.driverRef()}
	for _, secret := range d.secrets() {
		if !slices.ContainsFunc(refs, func(u Ref) bool { return u.Object == secret.Object }) {
			refs = append(refs, *secret)
		}
	}
	return refs
}

// driverRef returns the reference to the CSIDriver of a volume in manifests. podd requires this
// object, because without it, podd would not know whether the volume must be attached.
func (d *csiVolume) driverRef() Ref {
	ref := manifest.ObjectRef{Kind: manifest.CSIDriverKind, NamespacedName: types.NamespacedName{Name: d.driver}}
	u := Ref{Object: ref, role: forDriver, FieldPath: d.fieldPath, PersistentVolume: d.volumeName()}
	if d.inline != nil {
		u.FieldPath += ".csi.driver"
	}
	return u
}

func (d *csiVolume) secrets() []*Ref {
	return slices.DeleteFunc([]*Ref{d.stageSecret, d.publishSecret, d.expandSecret}, func(u *Ref) bool { return u == nil })
}

func tokenRef(pod *v1.Pod, r *storage.TokenRequest, field string) Ref {
	t := &v1.ServiceAccountTokenProjection{Audience: r.Audience, ExpirationSeconds: r.ExpirationSeconds}
	return Ref{Object: TokenRef(pod, t), role: forDriver, FieldPath: field, Token: t}
}

// mustAttach reports whether the volume must be attached to the node before it is mounted. It
// returns true if the cluster has no CSIDriver object for the driver, because this is the default
// of Kubernetes.
func (o *lookup) mustAttach(d *csiVolume) bool {
	spec := o.drivers[d.driver]
	return d.pv != nil && (spec == nil || spec.AttachRequired == nil || *spec.AttachRequired)
}

// attachLimitMessage returns the kubelet's message for a pod that fails because a volume exceeds the limit
// of attached volumes; "" if the pod does not fail. As in a kubelet, the pod fails only if the CSIDriver of
// the volume sets nodeAllocatableUpdatePeriodSeconds. Otherwise the CSINode would keep the old limit, and
// the scheduler could bind the replacement of the pod to the same node.
func (o *lookup) attachLimitMessage(p *manifest.Pod, refs []Ref) string {
	var unattached []string
	cause := ""
	for _, u := range refs {
		missingObject, isMissing := o.cluster.Missing[u.Object]
		if !isMissing || u.Object.Kind != manifest.AttachmentKind {
			continue
		}
		unattached = append(unattached, u.volumeOf(p.Object))
		spec := o.drivers[VolumeDriver(u.Volume)]
		if cause == "" && missingObject.ExceedsAttachLimit && spec != nil && spec.NodeAllocatableUpdatePeriodSeconds != nil {
			cause = missingObject.Message
		}
	}
	if cause == "" {
		return ""
	}
	slices.Sort(unattached)
	return fmt.Sprintf("Node has reached its volume attachment limit, rejecting pod. unmounted volumes=%v, unattached volumes=%[1]v, failed to process volumes=[]: %s", unattached, cause)
}

// driverBlocker returns the reason why a CSI driver cannot be called for a volume of a pod. It
// returns the zero value if all drivers can be called. All objects for the drivers must be
// available.
func (o *lookup) driverBlocker(p *manifest.Pod) Blocker {
	for i := range p.Object.Spec.Volumes {
		v := &p.Object.Spec.Volumes[i]
		if intree.IsInline(v) {
			if _, err := intree.TranslateInline(v, p.Object.Namespace); err != nil {
				return Blocker{MissingMessage: err.Error(), Volume: v.Name}
			}
		}
		if d := o.csiVolume(p.Object, i); d != nil {
			if reason := o.driverWaitReason(d); reason != "" {
				return Blocker{MissingMessage: reason, Volume: d.volume}
			}
		}
	}
	return Blocker{}
}

// driverWaitReason returns the reason why the driver cannot be called for a volume of a cluster; "" if
// it can be called. It validates names although the API server has validated them, because the names
// become names of directories.
func (o *lookup) driverWaitReason(d *csiVolume) string {
	mode, object := storage.VolumeLifecycleEphemeral, "the volume"
	if d.pv != nil {
		mode = storage.VolumeLifecyclePersistent
	}
	if d.claim != nil {
		object = fmt.Sprintf("PersistentVolume %q", d.pv.Name)
	}
	for _, secret := range d.secrets() {
		if len(validation.IsDNS1123Subdomain(secret.Object.Name))+len(validation.IsDNS1123Label(secret.Object.Namespace)) > 0 {
			return fmt.Sprintf("%s refers to a Secret with the invalid name %q", object, wording.Clip(secret.Object.NamespacedName.String(), 80))
		}
	}
	spec := o.drivers[d.driver]
	switch {
	case !manifest.IsSafeDriverName(d.driver):
		return fmt.Sprintf("%s refers to a CSI driver with the invalid name %q", object, wording.Clip(d.driver, 80))
	case d.pv != nil && (d.pv.Spec.CSI.VolumeHandle == "" || strings.Contains(d.pv.Spec.CSI.VolumeHandle, "\x00")):
		return object + " has no valid volumeHandle"
	case d.pv != nil && len(d.pv.Spec.CSI.VolumeHandle) > manifest.MaxVolumeHandle:
		return fmt.Sprintf("%s has a volumeHandle of %d bytes (limit %d)", object, len(d.pv.Spec.CSI.VolumeHandle), manifest.MaxVolumeHandle)
	case d.pv != nil && len(validation.IsDNS1123Subdomain(d.pv.Name)) > 0:
		return object + " has an invalid name"
	case o.drivers == nil, spec == nil && d.pv != nil:
		return ""
	case spec == nil:
		return fmt.Sprintf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, d.driver)
	case !slices.Contains(spec.VolumeLifecycleModes, mode):
		return fmt.Sprintf("volume mode %q not supported by driver %s (only supports %q)", mode, d.driver, spec.VolumeLifecycleModes)
	}
	return ""
}

// unusableReason returns the reason why the driver cannot be called for a volume in manifests, and
// what the user can do. reason is "" if the driver can be called, or if its CSIDriver is missing.
func (o *lookup) unusableReason(d *csiVolume) (reason, remedy string) {
	mode := storage.VolumeLifecyclePersistent
	if d.inline != nil {
		mode = storage.VolumeLifecycleEphemeral
	}
	switch spec := o.drivers[d.driver]; {
	case spec == nil:
		return "", ""
	case !slices.Contains(spec.VolumeLifecycleModes, mode):
		return fmt.Sprintf("requires the mode %s, but the CSIDriver %q supports only %q (volumeLifecycleModes)", mode, d.driver, spec.VolumeLifecycleModes),
			"use a driver that supports this mode"
	case o.mustAttach(d):
		return fmt.Sprintf("must be attached to this node by a controller, because the CSIDriver %q has attachRequired: true, but podd runs no controllers", d.driver),
			"use a driver that works without a controller, and set attachRequired: false"
	}
	return "", ""
}

// AttachmentName returns the name of the VolumeAttachment for a volume of a CSI driver and a node.
// handle is the volume ID.
func AttachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// UniqueVolumeName returns the name that a volume of a CSI driver has in the status of a Node.
// handle is the volume ID.
func UniqueVolumeName(driver, handle string) v1.UniqueVolumeName {
	return v1.UniqueVolumeName(csiNamePrefix + driver + "^" + handle)
}

const csiNamePrefix = "kubernetes.io/csi/"

// IsCSIVolume reports whether the volume with this name in the status of a Node is a volume of a CSI
// driver.
func IsCSIVolume(name v1.UniqueVolumeName) bool {
	return strings.HasPrefix(string(name), csiNamePrefix)
}

// VolumeDriver returns the name of the CSI driver of the volume with this name in the status of a Node,
// or "" if no CSI driver provides the volume.
func VolumeDriver(name v1.UniqueVolumeName) string {
	rest, isCSI := strings.CutPrefix(string(name), csiNamePrefix)
	driver, _, _ := strings.Cut(rest, "^")
	if !isCSI {
		return ""
	}
	return driver
}
