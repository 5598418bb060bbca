package manifest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// driven is a volume of a pod that a CSI driver makes: of its own, inline, or of the
// claim that it has, pv.
type driven struct {
	volume, field, driver  string
	inline                 *v1.CSIVolumeSource
	claim                  *Use
	bound                  *v1.PersistentVolumeClaim
	pv                     *v1.PersistentVolume
	readOnly               bool
	stage, publish, expand *Use // of Secrets; nil: none
}

// driven is a volume of a pod as far as a driver has to do with it; nil where none
// has, or nobody knows yet.
func (o *Objects) driven(pod *v1.Pod, i int) *driven {
	v, at := &pod.Spec.Volumes[i], fmt.Sprintf("spec.volumes[%d]", i)
	d := &driven{volume: v.Name, field: at}
	secret := func(namespace, name, field string, optional bool) *Use {
		ref := ObjectRef{"Secret", types.NamespacedName{Namespace: namespace, Name: name}}
		return &Use{Object: ref, Role: ForDriver, Optional: optional, Field: at + ".csi." + field}
	}
	if v.CSI != nil {
		d.driver, d.inline = v.CSI.Driver, v.CSI
		if ref := v.CSI.NodePublishSecretRef; ref != nil {
			d.publish = secret(pod.Namespace, ref.Name, "nodePublishSecretRef", false)
		}
		return d
	}
	if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
		return nil
	}
	u := &uses{namespace: pod.Namespace, pod: pod}
	if u.volume(v, at); len(u.all) == 0 {
		return nil
	}
	d.claim = &u.all[0]
	if d.bound = o.Claims[d.claim.Object.NamespacedName]; d.bound == nil {
		return nil
	}
	d.pv = o.Volumes[types.NamespacedName{Name: d.bound.Spec.VolumeName}]
	if d.pv == nil || d.pv.Spec.CSI == nil || Unbound(d.bound, d.pv) != "" {
		return nil
	}
	s := d.pv.Spec.CSI
	d.driver, d.readOnly = s.Driver, v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	if ref := s.NodeStageSecretRef; ref != nil {
		d.stage = secret(ref.Namespace, ref.Name, "nodeStageSecretRef", false)
	}
	if ref := s.NodePublishSecretRef; ref != nil {
		d.publish = secret(ref.Namespace, ref.Name, "nodePublishSecretRef", false)
	}
	if ref := s.NodeExpandSecretRef; ref != nil { // the pod can do without
		d.expand = secret(ref.Namespace, ref.Name, "nodeExpandSecretRef", true)
	}
	return d
}

// DriverUses are what the CSI drivers of a pod of an API server need looked up, as
// far as it is known by now which volumes are theirs.
func (o *Objects) DriverUses(pod *v1.Pod) []Use {
	if o.Cluster == nil {
		return nil
	}
	var all []Use
	for i := range pod.Spec.Volumes {
		if d := o.driven(pod, i); d != nil && o.driverWait(d) == "" {
			all = append(all, o.usesOf(pod, d)...)
		}
	}
	return all
}

// needsDriver says that a volume of a pod is a driver's, as far as it is known.
func (o *Objects) needsDriver(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if o.driven(pod, i) != nil {
			return true
		}
	}
	return false
}

func (o *Objects) usesOf(pod *v1.Pod, d *driven) []Use {
	var all []Use
	for _, secret := range d.secrets() {
		all = append(all, *secret)
	}
	if o.Cluster.Drivers == nil {
		return all
	}
	if d.pv != nil && o.attaches(d) {
		handle := d.pv.Spec.CSI.VolumeHandle
		ref := ObjectRef{kindAttachment, types.NamespacedName{Name: AttachmentName(d.driver, handle, pod.Spec.NodeName)}}
		all = append(all, Use{Object: ref, Role: ForDriver, Field: d.field, Volume: UniqueVolume(d.driver, handle)})
	}
	if wants := o.Cluster.Drivers[d.driver]; wants != nil {
		for i := range wants.TokenRequests {
			all = append(all, tokenUse(pod, &wants.TokenRequests[i], d.field))
		}
	}
	return all
}

func (d *driven) secrets() []*Use {
	return slices.DeleteFunc([]*Use{d.stage, d.publish, d.expand}, func(u *Use) bool { return u == nil })
}

func tokenUse(pod *v1.Pod, r *storage.TokenRequest, field string) Use {
	t := &v1.ServiceAccountTokenProjection{Audience: r.Audience, ExpirationSeconds: r.ExpirationSeconds}
	return Use{Object: TokenOf(pod, t), Role: ForDriver, Field: field, Token: t}
}

// attaches: where the cluster does not know the driver, its volumes are attached.
func (o *Objects) attaches(d *driven) bool {
	wants := o.Cluster.Drivers[d.driver]
	return d.pv != nil && (wants == nil || wants.AttachRequired == nil || *wants.AttachRequired)
}

// driversWait is what keeps a pod from being set up although all that its drivers
// need is there.
func (o *Objects) driversWait(p *Pod) Wait {
	for i := range p.Spec.Spec.Volumes {
		if d := o.driven(p.Spec, i); d != nil {
			if why := o.driverWait(d); why != "" {
				return Wait{Missing: why, Volume: d.volume}
			}
		}
	}
	return Wait{}
}

// driverWait is why a driver cannot be asked for a volume, "" when it can. Names are
// checked again, though the API server did: they become directories.
func (o *Objects) driverWait(d *driven) string {
	mode, whose := storage.VolumeLifecycleEphemeral, "the volume"
	if d.pv != nil {
		mode, whose = storage.VolumeLifecyclePersistent, fmt.Sprintf("PersistentVolume %q", d.pv.Name)
	}
	for _, secret := range d.secrets() {
		if len(validation.IsDNS1123Subdomain(secret.Object.Name))+len(validation.IsDNS1123Label(secret.Object.Namespace)) > 0 {
			return fmt.Sprintf("%s has %q for a Secret, which is no name of one", whose, clip(secret.Object.NamespacedName.String(), 80))
		}
	}
	wants := o.Cluster.Drivers[d.driver]
	switch {
	case !isDriver(d.driver):
		return fmt.Sprintf("%s has %q for a CSI driver, which is no name of one", whose, clip(d.driver, 80))
	case d.pv != nil && (d.pv.Spec.CSI.VolumeHandle == "" || strings.Contains(d.pv.Spec.CSI.VolumeHandle, "\x00")):
		return whose + " has no volumeHandle that a driver could know"
	case d.pv != nil && len(d.pv.Spec.CSI.VolumeHandle) > LongestHandle:
		return fmt.Sprintf("%s has a volumeHandle of %d bytes; podd takes %d", whose, len(d.pv.Spec.CSI.VolumeHandle), LongestHandle)
	case d.pv != nil && len(validation.IsDNS1123Subdomain(d.pv.Name)) > 0:
		return whose + " has a name that no directory can have"
	case o.Cluster.Drivers == nil, wants == nil && d.pv != nil:
		return ""
	case wants == nil:
		return fmt.Sprintf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, d.driver)
	case !slices.Contains(wants.VolumeLifecycleModes, mode):
		return fmt.Sprintf("volume mode %q not supported by driver %s (only supports %q)", mode, d.driver, wants.VolumeLifecycleModes)
	}
	return ""
}

// LongestHandle bounds a driver's name of a volume, which the Node's status and files
// repeat. CSI has it that such a text has at most 128 bytes.
const LongestHandle = 4096

// isDriver: a driver may have upper case in its name, as the API server has it.
func isDriver(name string) bool {
	return len(name) <= 63 && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}

// AttachmentName is of the VolumeAttachment that the cluster makes of a driver's
// volume and a node.
func AttachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// UniqueVolume is how the status of a Node names a driver's volume.
func UniqueVolume(driver, handle string) v1.UniqueVolumeName {
	return v1.UniqueVolumeName("kubernetes.io/csi/" + driver + "^" + handle)
}
