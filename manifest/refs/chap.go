package refs

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/manifest/disk"
)

// chapRef returns the reference to the Secret with the CHAP credentials of a pod's volume at index i.
// It returns nil if the volume is no iSCSI disk or needs no credentials, or if the name of the Secret
// is not valid.
func (o *lookup) chapRef(pod *v1.Pod, i int) *Ref {
	u := &Ref{role: forDriver, FieldPath: fmt.Sprintf("spec.volumes[%d].iscsi.secretRef", i)}
	var s *v1.ISCSIPersistentVolumeSource
	if inline := pod.Spec.Volumes[i].ISCSI; inline != nil {
		s = disk.PersistentSource(inline)
	} else if _, _, pv := o.claimedVolume(pod, i); pv != nil && pv.Spec.ISCSI != nil {
		s, u.PersistentVolume = pv.Spec.ISCSI, pv.Name
	}
	if s == nil || s.SecretRef == nil {
		return nil
	}
	u.Keys = disk.CHAPKeys(s)
	name := types.NamespacedName{Namespace: cmp.Or(s.SecretRef.Namespace, pod.Namespace), Name: s.SecretRef.Name}
	if len(u.Keys) == 0 || len(validation.IsDNS1123Subdomain(name.Name))+len(validation.IsDNS1123Label(name.Namespace)) > 0 {
		return nil
	}
	u.Object = manifest.ObjectRef{Kind: manifest.SecretKind, NamespacedName: name}
	return u
}

// CHAPSecret returns the Secret with the CHAP credentials of an iSCSI disk. It returns nil if the
// disk needs no credentials, or if the Secret is missing.
func (s *Resolved) CHAPSecret(v *v1.Volume) *v1.Secret {
	if s == nil {
		return nil
	}
	return s.chapSecrets[v.Name]
}

// addCHAP sets the Secrets with the CHAP credentials of the volumes.
func (s *Resolved) addCHAP(o *lookup) {
	for i := range s.pod.Object.Spec.Volumes {
		u := o.chapRef(s.pod.Object, i)
		if u == nil {
			continue
		}
		if secret := o.Secrets[u.Object.NamespacedName]; secret != nil {
			s.chapSecrets[s.pod.Object.Spec.Volumes[i].Name] = secret
		}
	}
}
