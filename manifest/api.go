package manifest

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Deletion is that the source has a pod and wants it ended.
type Deletion struct {
	Grace time.Duration // at least a second, as with a kubelet
}

// Node is this machine as the cluster has it: what its pods are admitted by.
type Node struct {
	Labels map[string]string
	Taints []v1.Taint
}

// FromAPI makes a pod of what an API server has of it, which is not written. The
// server checked it and gave it its defaults; what podd does not serve of it is
// told in Refused, and the pod is one that never runs. Options are as for Decode,
// with Kind KindAPI; Now is when the pod was seen first. nil where the UID cannot
// be a directory's name, which no API server gives.
//
// Its Hash is of its UID alone: what else can be changed of it, an API server lets
// be changed while it runs, and what a newer one adds to all of them is no edit.
// As with the kubelet, another image is another container, and other amounts of
// cpu and memory are given to what runs.
func FromAPI(pod *v1.Pod, o Options) *Pod {
	if !SafeUID(pod.UID) {
		return nil
	}
	p := &Pod{
		Key: keyOf(pod.Namespace, pod.Name), UID: pod.UID, FixedUID: true,
		Origin: Origin{Kind: KindAPI, Source: o.Source, Path: o.Path}, Spec: pod.DeepCopy(),
		Hash: hashVersion + digest("api", pod.UID), SandboxHash: hashVersion + digest("api sandbox", pod.UID),
	}
	setDefaults(p.Spec)
	p.Spec.Annotations = annotationsOf(pod, o)
	p.Containers = hashImages(&p.Spec.Spec)
	p.Refused = refusal(p.Spec, o)
	if pod.DeletionTimestamp != nil {
		p.Deletion = &Deletion{graceOf(pod)}
	}
	return p
}

// graceOf is what is left to a pod that is being deleted: what was asked for, or
// its own.
func graceOf(pod *v1.Pod) time.Duration {
	seconds := int64(v1.DefaultTerminationGracePeriodSeconds)
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		seconds = *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(min(max(seconds, 1), mostGrace)) * time.Second
}

// mostGrace is a hundred years, in seconds.
const mostGrace = 100 * 365 * 24 * 3600

// annotationsOf are the pod's own and those by which a kubelet marks where it has
// a pod from; containers can read them.
func annotationsOf(pod *v1.Pod, o Options) map[string]string {
	all := maps.Clone(pod.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[AnnotationConfigSource] = KindAPI
	if !o.Now.IsZero() {
		all[AnnotationConfigSeen] = o.Now.Format(time.RFC3339Nano)
	}
	return all
}

// hashImages is ContainerHash as the kubelet tells containers of one pod apart.
func hashImages(spec *v1.PodSpec) map[string]ContainerHash {
	sizes, hashes := sizesOf(spec), map[string]ContainerHash{}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			hashes[c.Name] = ContainerHash{Start: hashVersion + digest("api start", c.Name, c.Image), Size: sizes[c.Name]}
		}
	}
	return hashes
}

// refusal names the first thing that podd does not serve of a pod that has its
// defaults, "" for none.
func refusal(pod *v1.Pod, o Options) string {
	n := &notes{path: o.Path}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return "reading it: " + err.Error() // a Pod is made of what JSON has
	}
	apiRules().walk(userPart(tree), podShape(), "", n)
	n.invalid(validatePod(pod, o))
	for _, p := range n.list {
		if p.Severity == Error {
			return p.What()
		}
	}
	return ""
}

// Over says that a pod ran to its end before, as its source has it: it is never
// run again, whatever this machine remembers of it.
func (p *Pod) Over() bool {
	if p == nil || p.Origin.Kind != KindAPI {
		return false
	}
	phase := p.Spec.Status.Phase
	return phase == v1.PodSucceeded || phase == v1.PodFailed
}
