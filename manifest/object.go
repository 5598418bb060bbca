package manifest

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// object decodes a document beside the pods into meta's owner. It returns its
// key, and false when the document was refused.
func (d *decoder) object(v value, kind string, s *shape, into any, meta *metav1.ObjectMeta, validate func(*notes) field.ErrorList) (ObjectRef, bool) {
	n := d.notes(v)
	v.index(s, n)
	known := s.check(v.tree, "", n)
	n.unmarshal(known, into)
	n.invalid(validateMeta(meta))
	ref := ObjectRef{kind, keyOf(meta.Namespace, meta.Name)}
	if kind == kindVolume {
		if meta.Namespace != "" {
			n.fail("metadata.namespace", "a %s is in no namespace; remove it", kind)
		}
		ref.Namespace = ""
	}
	meta.Namespace = ref.Namespace
	n.invalid(validate(n))
	if rules := servedObjects()[kind]; rules != nil {
		rules.walk(known, s, "", n)
	}
	if first, taken := d.file.Objects.Origins[ref]; taken {
		n.fail("metadata.name", "%s is already at %s; remove one", ref, first)
	}
	n.finish(types.NamespacedName{})
	d.tell(n.list...)
	if !n.refused {
		d.file.Objects.place(ref, d.origin(v, n))
	}
	return ref, !n.refused
}

func (d *decoder) configMap(v value) {
	c := &v1.ConfigMap{}
	ref, ok := d.object(v, "ConfigMap", configShape(), c, &c.ObjectMeta, func(*notes) field.ErrorList {
		return validateData(c.Data, c.BinaryData, "binaryData")
	})
	if ok {
		put(&d.file.Objects.ConfigMaps, ref.NamespacedName, c)
	}
}

// secret decodes a Secret and folds stringData into data, where it wins, as the
// apiserver does.
func (d *decoder) secret(v value) {
	s := &v1.Secret{}
	ref, ok := d.object(v, "Secret", secretShape(), s, &s.ObjectMeta, func(*notes) field.ErrorList {
		for key, text := range s.StringData {
			put(&s.Data, key, []byte(text))
		}
		s.StringData = nil
		if s.Type == "" {
			s.Type = v1.SecretTypeOpaque
		}
		return append(validateData(nil, s.Data, "data"), validateSecretType(s)...)
	})
	if ok {
		put(&d.file.Objects.Secrets, ref.NamespacedName, s)
	}
}

func (d *decoder) claim(v value) {
	c := &v1.PersistentVolumeClaim{}
	ref, ok := d.object(v, "PersistentVolumeClaim", claimShape(), c, &c.ObjectMeta, func(*notes) field.ErrorList {
		setClaimDefaults(c)
		return validateClaim(&c.Spec, field.NewPath("spec"))
	})
	if ok {
		put(&d.file.Objects.Claims, ref.NamespacedName, c)
	}
}

func (d *decoder) volume(v value) {
	pv := &v1.PersistentVolume{}
	ref, ok := d.object(v, kindVolume, volumeShape(), pv, &pv.ObjectMeta, func(n *notes) field.ErrorList {
		setPersistentVolumeDefaults(pv)
		adviseReclaim(pv, n)
		return validatePersistentVolume(&pv.Spec, field.NewPath("spec"))
	})
	if ok {
		put(&d.file.Objects.Volumes, ref.NamespacedName, pv)
		if a := pv.Spec.NodeAffinity; a != nil && d.Labels != nil && !selectsNode(a.Required, d.Node, d.Labels) {
			put(&d.file.Objects.Elsewhere, ref.NamespacedName, true)
		}
	}
}

// String is "ConfigMap default/conf".
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.NamespacedName.String()
}

// place remembers where an object was written.
func (o *Objects) place(ref ObjectRef, origin Origin) {
	origin.Fields = nil // nobody asks for an object's fields, and they are many
	put(&o.Origins, ref, origin)
}

// put sets a key of a map that may be nil.
func put[M ~map[K]V, K comparable, V any](m *M, key K, v V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = v
}

// JoinObjects is every object of several files of one source. Of two with one
// kind and key the first wins and the other is an error Problem.
func JoinObjects(list ...Objects) (Objects, []Problem) {
	joined := Objects{}
	var problems []Problem
	for _, o := range list {
		for ref, origin := range o.Origins {
			if first, taken := joined.Origins[ref]; taken {
				problems = append(problems, Problem{
					Severity: Error, Path: origin.Path, Position: origin.Position(""), Refused: true,
					Message: ref.String() + " is at " + first.String() + ", too, which comes first and counts; remove one",
				})
				continue
			}
			joined.take(ref, o, origin)
		}
	}
	sortProblems(problems)
	return joined, problems
}

// take copies one object of another set of objects.
func (o *Objects) take(ref ObjectRef, from Objects, origin Origin) {
	put(&o.Origins, ref, origin)
	key := ref.NamespacedName
	switch ref.Kind {
	case "ConfigMap":
		put(&o.ConfigMaps, key, from.ConfigMaps[key])
	case "Secret":
		put(&o.Secrets, key, from.Secrets[key])
	case "PersistentVolumeClaim":
		put(&o.Claims, key, from.Claims[key])
	case kindVolume:
		put(&o.Volumes, key, from.Volumes[key])
		if from.Elsewhere[key] {
			put(&o.Elsewhere, key, true)
		}
	}
}
