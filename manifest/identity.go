package manifest

import (
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The annotations that mark a static pod; kubeadm and node agents read them.
const (
	AnnotationConfigHash   = "kubernetes.io/config.hash"
	AnnotationConfigSource = "kubernetes.io/config.source"
	AnnotationConfigSeen   = "kubernetes.io/config.seen"
	AnnotationConfigMirror = "kubernetes.io/config.mirror"
)

// builtinPriority are the classes that every cluster has, and podd without one.
var builtinPriority = map[string]int32{
	"system-cluster-critical": 2000000000,
	"system-node-critical":    2000001000,
}

// suffix is what goes behind the names of static pods: the node's name, or
// what takes its place.
func (o Options) suffix() string {
	name := o.Suffix
	if name == "" {
		name = o.Node
	}
	if name == "" {
		return ""
	}
	return "-" + strings.ToLower(name)
}

// Short is the pod's namespace and name as the user wrote them, without the
// node's name behind it.
func (p *Pod) Short() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Key.Namespace, Name: strings.TrimSuffix(p.Key.Name, p.Suffix)}
}

// identify gives a pod its key, UID, hashes and priority, and makes a static
// pod of one from a file or URL. It is the last to write to p.Spec.
func (d *decoder) identify(p *Pod, v value, written map[string]any, n *notes) {
	user := canonical(written)
	lasting := user
	if d.Written {
		lasting = unchanging(user)
	}
	version := version(lasting, p.Spec)
	p.Hash = hashVersion + digest("pod", version)
	p.SandboxHash = hashSandbox(user)
	p.Containers = hashContainers(user, &p.Spec.Spec)
	resolvePriority(&p.Spec.Spec, n)
	meta := &p.Spec.ObjectMeta
	p.UID, p.FixedUID = meta.UID, meta.UID != "" && d.Suffix == ""
	p.Key = keyOf(meta.Namespace, meta.Name)
	if d.Kind == KindAPI {
		return
	}
	if meta.Name != "" && !d.Written {
		p.Suffix = d.suffix()
		p.Key.Name += p.Suffix
	}
	if !p.FixedUID {
		p.UID = makeUID(d.Node, p.Key, version)
	}
	*meta = metav1.ObjectMeta{
		Name: p.Key.Name, Namespace: p.Key.Namespace, UID: p.UID,
		Labels: meta.Labels, Annotations: d.annotations(p),
		GenerateName: d.generateName(meta), CreationTimestamp: d.created(v), ManagedFields: d.managers(v),
	}
	p.Spec.Spec.NodeName = d.Node
	p.Spec.Status = v1.PodStatus{Phase: v1.PodPending}
	if d.Kind == KindFile && !d.Written {
		tolerateNoExecute(&p.Spec.Spec)
	}
}

// generateName is what the API made a pod's name of.
func (d *decoder) generateName(meta *metav1.ObjectMeta) string {
	if !d.Written {
		return ""
	}
	return meta.GenerateName
}

// created is when the API made a pod; zero for others, of which nobody knows.
func (d *decoder) created(v value) metav1.Time {
	tree, _ := v.tree.(map[string]any)
	meta, _ := tree["metadata"].(map[string]any)
	text, _ := meta["creationTimestamp"].(string)
	at, err := time.Parse(time.RFC3339, text)
	if !d.Written || err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(at)
}

// managers are whose the fields of a pod are that the API made; nil for others and
// for what cannot be read.
func (d *decoder) managers(v value) []metav1.ManagedFieldsEntry {
	tree, _ := v.tree.(map[string]any)
	meta, _ := tree["metadata"].(map[string]any)
	if !d.Written || meta["managedFields"] == nil {
		return nil
	}
	text, err := json.Marshal(meta["managedFields"])
	var all []metav1.ManagedFieldsEntry
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// annotations are the pod's own and, unless it is the API's, those of a static
// pod.
func (d *decoder) annotations(p *Pod) map[string]string {
	if d.Written {
		return p.Spec.Annotations
	}
	out := make(map[string]string, len(p.Spec.Annotations)+3)
	for key, v := range p.Spec.Annotations {
		out[key] = v
	}
	delete(out, AnnotationConfigSeen)
	out[AnnotationConfigSource] = d.Kind
	// Of a fixed UID, too: log collectors find a static pod's logs by it.
	out[AnnotationConfigHash] = string(p.UID)
	if !d.Now.IsZero() {
		out[AnnotationConfigSeen] = d.Now.Format(time.RFC3339Nano)
	}
	return out
}

// tolerateNoExecute keeps pods from files on a node in trouble, as the kubelet
// does; pods from a URL do not get it there either.
func tolerateNoExecute(spec *v1.PodSpec) {
	every := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for i := range spec.Tolerations {
		if spec.Tolerations[i].MatchToleration(&every) {
			spec.Tolerations[i] = every
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, every)
}

// resolvePriority fills in the number of a built-in class. There is no cluster
// to ask for another.
func resolvePriority(spec *v1.PodSpec, n *notes) {
	if spec.PriorityClassName == "" {
		return
	}
	value, ok := builtinPriority[spec.PriorityClassName]
	switch {
	case !ok:
		n.fail("spec.priorityClassName", "%q cannot be looked up, there is no cluster; write spec.priority instead, or system-node-critical or system-cluster-critical", clip(spec.PriorityClassName, 80))
	case spec.Priority == nil:
		spec.Priority = &value
	case *spec.Priority != value:
		n.fail("spec.priority", "%d is not the %d of class %s; remove it", *spec.Priority, value, spec.PriorityClassName)
	}
}
