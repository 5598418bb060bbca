package decode

import (
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/manifest/document"
	"podd/manifest/wording"
)

// builtinPriorities contains the priority classes that exist in every cluster. A pod of a manifest
// can use no other priority class.
var builtinPriorities = map[string]int32{
	"system-cluster-critical": manifest.CriticalPriority,
	"system-node-critical":    manifest.CriticalPriority + 1000,
}

// suffix returns the suffix of pod names, including its dash. It consists of o.NameSuffix or, if
// that is empty, of the node's name.
func (o Options) suffix() string {
	name := o.NameSuffix
	if name == "" {
		name = o.NodeName
	}
	if name == "" {
		return ""
	}
	return "-" + strings.ToLower(name)
}

// setIdentity sets the key, UID, hashes and priority of a pod. It adds the metadata of a static pod
// to a pod from a file or URL. userPod is the pod as the user wrote it. p.Object.Spec must not be
// modified after setIdentity.
func (d *decoder) setIdentity(p *manifest.Pod, v document.Value, userPod map[string]any, n *objectProblems) {
	h := manifest.HashManifest(userPod, p.Object, d.IsWrittenByAPI)
	p.Hash, p.SandboxHash, p.ContainerHashes = h.Pod, h.Sandbox, h.Containers
	resolvePriority(&p.Object.Spec, n)
	meta := &p.Object.ObjectMeta
	p.UID, p.HasFixedUID = meta.UID, meta.UID != "" && d.NameSuffix == ""
	p.Key = manifest.NewKey(meta.Namespace, meta.Name)
	if d.Kind == manifest.KindAPI {
		return
	}
	if meta.Name != "" && !d.IsWrittenByAPI {
		p.NameSuffix = d.suffix()
		p.Key.Name += p.NameSuffix
	}
	if !p.HasFixedUID {
		p.UID = h.UID(d.NodeName, p.Key)
	}
	*meta = metav1.ObjectMeta{
		Name: p.Key.Name, Namespace: p.Key.Namespace, UID: p.UID,
		Labels: meta.Labels, Annotations: d.annotations(p),
		GenerateName: d.originalGenerateName(meta), CreationTimestamp: d.creationTime(v), ManagedFields: d.managedFields(v),
	}
	p.Object.Spec.NodeName = d.NodeName
	p.Object.Status = v1.PodStatus{Phase: v1.PodPending}
	if d.Kind == manifest.KindFile && !d.IsWrittenByAPI {
		tolerateNoExecute(&p.Object.Spec)
	}
}

// originalGenerateName returns the generateName from which podd's API generated the pod's
// name; "" for other pods.
func (d *decoder) originalGenerateName(meta *metav1.ObjectMeta) string {
	if !d.IsWrittenByAPI {
		return ""
	}
	return meta.GenerateName
}

// creationTime returns the time at which podd's API created a pod; zero for other pods.
func (d *decoder) creationTime(v document.Value) metav1.Time {
	tree, _ := v.Tree.(map[string]any)
	meta, _ := tree["metadata"].(map[string]any)
	text, _ := meta["creationTimestamp"].(string)
	created, err := time.Parse(time.RFC3339, text)
	if !d.IsWrittenByAPI || err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(created)
}

// managedFields returns metadata.managedFields of a pod that podd's API created. It returns nil
// for other pods, and if the managed fields are invalid.
func (d *decoder) managedFields(v document.Value) []metav1.ManagedFieldsEntry {
	tree, _ := v.Tree.(map[string]any)
	meta, _ := tree["metadata"].(map[string]any)
	if !d.IsWrittenByAPI || meta["managedFields"] == nil {
		return nil
	}
	text, err := json.Marshal(meta["managedFields"])
	var entries []metav1.ManagedFieldsEntry
	if err != nil || json.Unmarshal(text, &entries) != nil {
		return nil
	}
	return entries
}

// annotations returns the annotations of a pod and, unless podd's API created the pod, the
// annotations of a static pod.
func (d *decoder) annotations(p *manifest.Pod) map[string]string {
	if d.IsWrittenByAPI {
		return p.Object.Annotations
	}
	annotations := make(map[string]string, len(p.Object.Annotations)+3)
	for key, v := range p.Object.Annotations {
		annotations[key] = v
	}
	delete(annotations, manifest.AnnotationConfigSeen)
	annotations[manifest.AnnotationConfigSource] = d.Kind
	// This annotation is also set if the UID is fixed, because log collectors use the
	// annotation to find the logs of a static pod.
	annotations[manifest.AnnotationConfigHash] = string(p.UID)
	if !d.Now.IsZero() {
		annotations[manifest.AnnotationConfigSeen] = d.Now.Format(time.RFC3339Nano)
	}
	return annotations
}

// tolerateNoExecute adds a toleration of all NoExecute taints to a pod from a file, so that the
// taints do not evict the pod. The kubelet adds the same toleration. The kubelet adds no toleration
// to a pod from a URL.
func tolerateNoExecute(spec *v1.PodSpec) {
	allTaints := v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}
	for i := range spec.Tolerations {
		if spec.Tolerations[i].MatchToleration(&allTaints) {
			spec.Tolerations[i] = allTaints
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, allTaints)
}

// resolvePriority sets spec.priority to the value of the pod's priority class. It reports an error
// if the class is not a built-in class, because other classes exist only in a cluster.
func resolvePriority(spec *v1.PodSpec, n *objectProblems) {
	if spec.PriorityClassName == "" {
		return
	}
	value, ok := builtinPriorities[spec.PriorityClassName]
	switch {
	case !ok:
		n.addError("spec.priorityClassName", "%q not found, because there is no cluster; set spec.priority instead, or use one of the built-in classes system-node-critical and system-cluster-critical", wording.Clip(spec.PriorityClassName, 80))
	case spec.Priority == nil:
		spec.Priority = &value
	case *spec.Priority != value:
		n.addError("spec.priority", "%d differs from the priority %d of class %s; remove this field", *spec.Priority, value, spec.PriorityClassName)
	}
}
