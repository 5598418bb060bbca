package decode

import (
	v1 "k8s.io/api/core/v1"
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

// object decodes a document other than a pod into the value into, whose metadata is meta, and
// adds the value to the file. complete sets the defaults and validates. object returns the
// reference of the object; ok is false if the document was refused.
func (d *decoder) object(v document.Value, kind string, s *schema.Schema, into any, meta *metav1.ObjectMeta, complete func(*notes) field.ErrorList) (ref manifest.ObjectRef, ok bool) {
	n := d.notes(v, s)
	known := s.Check(v.Tree, n.addFault)
	n.unmarshal(known, into)
	n.invalid(validate.Meta(meta))
	ref = manifest.ObjectRef{Kind: kind, NamespacedName: manifest.NewKey(meta.Namespace, meta.Name)}
	if kind == manifest.VolumeKind {
		if meta.Namespace != "" {
			n.fail("metadata.namespace", "a %s has no namespace; remove it", kind)
		}
		ref.Namespace = ""
	}
	meta.Namespace = ref.Namespace
	n.invalid(complete(n))
	n.addAll(supported.Object(kind, known))
	if first, taken := d.file.Objects.Origins[ref]; taken {
		n.fail("metadata.name", "%s is already defined at %s; remove one", ref, first)
	}
	n.finish(types.NamespacedName{})
	d.addProblems(n.list...)
	if !n.refused {
		d.file.Objects.Add(ref, into, d.origin(v, n))
	}
	return ref, !n.refused
}

func (d *decoder) configMap(v document.Value) {
	c := &v1.ConfigMap{}
	d.object(v, manifest.ConfigMapKind, configMapSchema(), c, &c.ObjectMeta, func(*notes) field.ErrorList {
		return validate.ConfigMap(c)
	})
}

// secret decodes a Secret and merges stringData into data, where it takes precedence, as in
// the API server.
func (d *decoder) secret(v document.Value) {
	s := &v1.Secret{}
	d.object(v, manifest.SecretKind, secretSchema(), s, &s.ObjectMeta, func(*notes) field.ErrorList {
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

func (d *decoder) claim(v document.Value) {
	c := &v1.PersistentVolumeClaim{}
	d.object(v, manifest.ClaimKind, claimSchema(), c, &c.ObjectMeta, func(*notes) field.ErrorList {
		defaults.Claim(c)
		return validate.Claim(c)
	})
}

func (d *decoder) volume(v document.Value) {
	pv := &v1.PersistentVolume{}
	ref, ok := d.object(v, manifest.VolumeKind, volumeSchema(), pv, &pv.ObjectMeta, func(n *notes) field.ErrorList {
		defaults.PersistentVolume(pv)
		adviseReclaim(pv, n)
		return validate.PersistentVolume(pv)
	})
	if a := pv.Spec.NodeAffinity; ok && a != nil && d.Labels != nil && !manifest.SelectsNode(a.Required, d.Node, d.Labels) {
		if d.file.Objects.OnOtherNodes == nil {
			d.file.Objects.OnOtherNodes = map[types.NamespacedName]bool{}
		}
		d.file.Objects.OnOtherNodes[ref.NamespacedName] = true
	}
}
