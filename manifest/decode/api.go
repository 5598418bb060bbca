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

// FromAPI returns the Pod for an object of an API server, which it does not modify. The
// server has validated it and set its defaults. Refused names the first field that podd
// does not support; such a pod never runs. o has the meaning that it has for File, with
// Kind KindAPI; Now is the time at which the pod was first observed. FromAPI returns nil if
// the UID cannot be the name of a directory, which no API server assigns.
//
// Hash depends only on the UID. An API server allows changes of all other mutable fields
// while the pod runs, and a field that a newer API server adds to all pods is not an edit.
// As in the kubelet, a changed image makes a new container, and changed amounts of cpu and
// memory are applied in place.
func FromAPI(pod *v1.Pod, o Options) *manifest.Pod {
	if !manifest.IsSafeUID(pod.UID) {
		return nil
	}
	p := &manifest.Pod{
		Key: manifest.NewKey(pod.Namespace, pod.Name), UID: pod.UID, FixedUID: true,
		Origin: manifest.Origin{Kind: manifest.KindAPI, Source: o.Source, Path: o.Path},
		Traits: manifest.KindTraits(manifest.KindAPI), Spec: pod.DeepCopy(),
	}
	defaults.Pod(p.Spec)
	p.Spec.Annotations = annotationsOf(pod, o)
	h := manifest.HashAPI(p.Spec)
	p.Hash, p.SandboxHash, p.Containers = h.Pod, h.Sandbox, h.Containers
	p.Refused = refusal(p.Spec, o)
	if pod.DeletionTimestamp != nil {
		p.Deletion = &manifest.Deletion{Grace: remainingGrace(pod)}
	}
	return p
}

// remainingGrace returns the remaining grace period of a pod that is being deleted: that of
// the deletion request or, if the request has none, that of the pod spec.
func remainingGrace(pod *v1.Pod) time.Duration {
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

// annotationsOf returns the annotations of the pod and those in which a kubelet records a
// pod's source, because containers can read them.
func annotationsOf(pod *v1.Pod, o Options) map[string]string {
	all := maps.Clone(pod.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[manifest.AnnotationConfigSource] = manifest.KindAPI
	if !o.Now.IsZero() {
		all[manifest.AnnotationConfigSeen] = o.Now.Format(time.RFC3339Nano)
	}
	return all
}

// refusal returns the first problem of a pod with its defaults, or "" if podd supports
// all of its fields.
func refusal(pod *v1.Pod, o Options) string {
	n := &notes{path: o.Path}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return "reading it: " + err.Error() // cannot happen: a Pod consists of JSON values
	}
	n.addAll(supported.ClusterPod(manifest.UserPart(tree)))
	n.invalid(validate.Pod(pod, o.validation()))
	for _, p := range n.list {
		if p.Severity == manifest.Error {
			return p.Text()
		}
	}
	return ""
}
