package decode

import (
	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/defaults"
	"podd/manifest/document"
	"podd/manifest/schema"
	"podd/manifest/supported"
	"podd/manifest/validate"
)

// decodeObject decodes v into object, a pointer to the struct of a kind other than Pod. If the
// object is valid, decodeObject adds it to the file; otherwise ok is false. s is the schema of the
// kind, and meta points to the metadata in the struct. defaultAndValidate sets the defaults of the
// object and validates the object. ref identifies the object.
func (d *decoder) decodeObject(v document.Value, kind string, s *schema.Schema, object any, meta *metav1.ObjectMeta, defaultAndValidate func(*objectProblems) field.ErrorList) (ref manifest.ObjectRef, ok bool) {
	n := d.newObjectProblems(v, s)
	checkedTree := s.Check(v.Tree, n.addFault)
	n.unmarshal(checkedTree, object)
	n.addInvalid(validateMeta(object, meta))
	ref = manifest.ObjectRef{Kind: kind, NamespacedName: manifest.NewKey(meta.Namespace, meta.Name)}
	if manifest.IsClusterScoped(kind) {
		if meta.Namespace != "" {
			n.addError("metadata.namespace", "a %s does not belong to a namespace; remove this field", kind)
		}
		ref.Namespace = ""
	}
	meta.Namespace = ref.Namespace
	n.addInvalid(defaultAndValidate(n))
	n.addProblems(supported.CheckObject(kind, checkedTree))
	if firstOrigin, isDuplicate := d.file.Objects.Origins[ref]; isDuplicate {
		n.addError("metadata.name", "%s is already defined at %s; remove one", ref, firstOrigin)
	}
	n.finish(types.NamespacedName{})
	d.addProblems(n.problems...)
	if !n.isRefused {
		d.file.Objects.Add(ref, object, d.origin(v, n))
	}
	return ref, !n.isRefused
}

// validateMeta validates the metadata of an object. Other rules apply to the name of a
// ClusterTrustBundle.
func validateMeta(object any, meta *metav1.ObjectMeta) field.ErrorList {
	if b, ok := object.(*certificates.ClusterTrustBundle); ok {
		return validate.TrustBundleMeta(b)
	}
	return validate.Meta(meta)
}

func (d *decoder) decodeConfigMap(v document.Value) {
	c := &v1.ConfigMap{}
	d.decodeObject(v, manifest.ConfigMapKind, configMapSchema(), c, &c.ObjectMeta, func(*objectProblems) field.ErrorList {
		return validate.ConfigMap(c)
	})
}

// decodeSecret decodes a Secret and merges stringData into data. If a key is in both, the value in
// stringData is used, as in the API server.
func (d *decoder) decodeSecret(v document.Value) {
	s := &v1.Secret{}
	d.decodeObject(v, manifest.SecretKind, secretSchema(), s, &s.ObjectMeta, func(*objectProblems) field.ErrorList {
		for key, text := range s.StringData {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(text)
		}
		s.StringData = nil
		if s.Type == "" {
			s.Type = v1.SecretTypeOpaque
		}
		return validate.Secret(s)
	})
}

func (d *decoder) decodeClaim(v document.Value) {
	c := &v1.PersistentVolumeClaim{}
	d.decodeObject(v, manifest.ClaimKind, claimSchema(), c, &c.ObjectMeta, func(*objectProblems) field.ErrorList {
		defaults.Claim(c)
		return validate.Claim(c)
	})
}

func (d *decoder) decodeVolume(v document.Value) {
	pv := &v1.PersistentVolume{}
	ref, ok := d.decodeObject(v, manifest.VolumeKind, volumeSchema(), pv, &pv.ObjectMeta, func(n *objectProblems) field.ErrorList {
		defaults.PersistentVolume(pv)
		adviseReclaim(pv, n)
		return validate.PersistentVolume(pv)
	})
	if a := pv.Spec.NodeAffinity; ok && a != nil && d.NodeLabels != nil && !manifest.SelectsNode(a.Required, d.NodeName, d.NodeLabels) {
		if d.file.Objects.VolumesOnOtherNodes == nil {
			d.file.Objects.VolumesOnOtherNodes = map[types.NamespacedName]bool{}
		}
		d.file.Objects.VolumesOnOtherNodes[ref.NamespacedName] = true
	}
}

func (d *decoder) decodeTrustBundle(v document.Value) {
	b := &certificates.ClusterTrustBundle{}
	d.decodeObject(v, manifest.TrustBundleKind, trustBundleSchema(), b, &b.ObjectMeta, func(*objectProblems) field.ErrorList {
		return validate.TrustBundle(b)
	})
}

func (d *decoder) decodeCSIDriver(v document.Value) {
	c := &storage.CSIDriver{}
	d.decodeObject(v, manifest.CSIDriverKind, csiDriverSchema(), c, &c.ObjectMeta, func(*objectProblems) field.ErrorList {
		defaults.CSIDriver(c)
		return validate.CSIDriver(c)
	})
}
