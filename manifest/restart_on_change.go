package manifest

import "k8s.io/apimachinery/pkg/types"

// If AnnotationRestartOnChange is "true", a pod of a manifest is replaced, as after an
// edit, when the content of an object changes that its variables or files come from.
const AnnotationRestartOnChange = "podd/restart-on-change"

// RestartsOnChange reports whether a pod has AnnotationRestartOnChange. It ignores the
// annotation on pods with the trait KeepsVersion.
func RestartsOnChange(p *Pod) bool {
	return !p.Traits.KeepsVersion && p.Spec.Annotations[AnnotationRestartOnChange] == "true"
}

// WithContent returns the version of a pod for one content of the objects that its files
// and variables come from; both are digests.
func (p *Pod) WithContent(files, env string) *Pod {
	v := *p
	v.Spec = p.Spec.DeepCopy()
	v.Hash = hashVersion + Digest("holding", p.Hash, files, env)
	if p.FixedUID {
		return &v
	}
	v.UID = types.UID(Digest("holding", string(p.UID), files, env))
	v.Spec.UID, v.Spec.Annotations[AnnotationConfigHash] = v.UID, string(v.UID)
	return &v
}
