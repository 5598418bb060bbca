package manifest

import "k8s.io/apimachinery/pkg/types"

// AnnotationRestartOnChange is an annotation of pods in manifests. If its value is "true", a pod is
// replaced when a ConfigMap or Secret that provides its variables or files changes. podd replaces
// the pod in the same way as after an edit of its manifest.
const AnnotationRestartOnChange = "podd/restart-on-change"

// RestartsOnChange reports whether a pod has AnnotationRestartOnChange. It ignores the
// annotation on pods with the trait KeepsVersion.
func RestartsOnChange(p *Pod) bool {
	return !p.Traits.KeepsVersion && p.Object.Annotations[AnnotationRestartOnChange] == "true"
}

// WithContentDigests returns a copy of p whose Hash, and UID unless it is fixed, depend on files and
// env. These are digests of the ConfigMaps and Secrets that p uses as files and as environment
// variables.
func (p *Pod) WithContentDigests(files, env string) *Pod {
	v := *p
	v.Object = p.Object.DeepCopy()
	v.Hash = hashVersion + Digest("holding", p.Hash, files, env)
	if p.HasFixedUID {
		return &v
	}
	v.UID = types.UID(Digest("holding", string(p.UID), files, env))
	v.Object.UID, v.Object.Annotations[AnnotationConfigHash] = v.UID, string(v.UID)
	return &v
}
