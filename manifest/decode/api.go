package decode

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/manifest"
	"podd/manifest/defaults"
	"podd/manifest/supported"
	"podd/manifest/validate"
)

// FromAPI converts a pod of an API server, which has validated the pod and set its defaults.
// FromAPI does not modify pod. If podd does not support all fields of the pod, RefusalReason names
// an unsupported field and the pod never runs. The options have the same meaning as for File, but the
// kind is always KindAPI. o.Now is the time at which the pod was first observed. FromAPI returns
// nil if the UID cannot be the name of a directory; no API server assigns such a UID.
//
// Pod.Hash depends only on the UID, for two reasons. Every change that an API server allows is
// applied to the running pod. A newer API server may add fields to all pods, and these fields must
// not restart the pods. As in the kubelet, a changed image replaces the container, and changed
// amounts of cpu and memory are applied in place.
func FromAPI(pod *v1.Pod, o Options) *manifest.Pod {
	if !manifest.IsSafeUID(pod.UID) {
		return nil
	}
	p := &manifest.Pod{
		Key: manifest.NewKey(pod.Namespace, pod.Name), UID: pod.UID, HasFixedUID: true,
		Origin: manifest.Origin{Kind: manifest.KindAPI, Source: o.Source, Path: o.Path},
		Traits: manifest.KindTraits(manifest.KindAPI), Object: pod.DeepCopy(),
	}
	defaults.Pod(p.Object)
	p.Object.Annotations = annotationsOf(pod, o)
	h := manifest.HashAPI(p.Object)
	p.Hash, p.SandboxHash, p.ContainerHashes = h.Pod, h.Sandbox, h.Containers
	p.RefusalReason = refusalReason(p.Object, o)
	if pod.DeletionTimestamp != nil {
		p.Deletion = &manifest.Deletion{GracePeriod: deletionGracePeriod(pod)}
	}
	return p
}

// deletionGracePeriod returns the grace period of a pod that is being deleted. It is the grace
// period of the deletion request or, if the request contains none, of the pod spec. It is at
// least one second.
func deletionGracePeriod(pod *v1.Pod) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		seconds = *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(min(max(seconds, 1), maxGraceSeconds)) * time.Second
}

// maxGraceSeconds is a hundred years in seconds.
const maxGraceSeconds = 100 * 365 * 24 * 3600

// annotationsOf returns the annotations of the pod and the annotations in which a kubelet records
// the source of a pod. Containers can read all these annotations through the downward API.
func annotationsOf(pod *v1.Pod, o Options) map[string]string {
	annotations := maps.Clone(pod.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[manifest.AnnotationConfigSource] = manifest.KindAPI
	if !o.Now.IsZero() {
		annotations[manifest.AnnotationConfigSeen] = o.Now.Format(time.RFC3339Nano)
	}
	return annotations
}

// refusalReason returns the first error of a pod, as "field: message". It returns "" if the pod is
// valid and podd supports all its fields. The defaults of the pod must have been set.
func refusalReason(pod *v1.Pod, o Options) string {
	n := &objectProblems{path: o.Path}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return "reading the pod: " + err.Error() // cannot happen: a Pod consists of JSON values
	}
	n.addProblems(supported.CheckClusterPod(manifest.WithoutServerFields(tree)))
	n.addInvalid(validate.Pod(pod, o.validateOptions()))
	for _, p := range n.problems {
		if p.Severity == manifest.Error {
			return p.Text()
		}
	}
	return ""
}
