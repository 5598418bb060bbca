package cluster

import (
	"maps"
	goruntime "runtime"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// annotationAttachDetach has the cluster's controller attach the volumes.
	annotationAttachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"
	// annotationProvidedIP tells a cloud controller what the user said.
	annotationProvidedIP = "alpha.kubernetes.io/provided-node-ip"
	// taintUninitialized is taken away by a cloud controller.
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// defaultLabels are those that a Node which is there already gets too; what else
// --node-labels say counts only when it is made.
var defaultLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// made is the Node that podd makes of the machine.
func (o *Options) made(machine *v1.Node, now time.Time) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Node, Labels: maps.Clone(machine.Labels)}}
	n.Spec.ProviderID = o.ProviderID
	n.Spec.Taints = append(n.Spec.Taints, o.Taints...)
	if o.ExternalCloud {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: taintUninitialized, Value: "true", Effect: v1.TaintEffectNoSchedule})
	}
	if o.AttachDetach {
		n.Annotations = map[string]string{annotationAttachDetach: "true"}
	}
	return o.updated(n, machine, now)
}

// adopted is a Node of this name that was there already, of an earlier podd, a
// kubelet or an administrator.
func (o *Options) adopted(seen, machine *v1.Node) *v1.Node {
	n := seen.DeepCopy()
	for _, label := range defaultLabels {
		if value := machine.Labels[label]; value != "" {
			metav1.SetMetaDataLabel(&n.ObjectMeta, label, value)
		}
	}
	if o.AttachDetach {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationAttachDetach, "true")
	} else {
		delete(n.Annotations, annotationAttachDetach)
	}
	return n
}

// updated is a Node with what the machine is now. What others write stays, and what
// was known before of what podd does not know yet.
func (o *Options) updated(seen, machine *v1.Node, now time.Time) *v1.Node {
	n := seen.DeepCopy()
	metav1.SetMetaDataLabel(&n.ObjectMeta, v1.LabelOSStable, goruntime.GOOS)
	metav1.SetMetaDataLabel(&n.ObjectMeta, v1.LabelArchStable, goruntime.GOARCH)
	if o.ExternalCloud && o.ProvidedIP != "" {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationProvidedIP, o.ProvidedIP)
	} else {
		delete(n.Annotations, annotationProvidedIP)
	}
	s, is := &n.Status, machine.Status.DeepCopy()
	s.Addresses = o.addresses(s.Addresses, is.Addresses)
	s.Capacity, s.Allocatable = amounts(s, is)
	s.NodeInfo, s.DaemonEndpoints = is.NodeInfo, is.DaemonEndpoints
	s.RuntimeHandlers, s.Features = is.RuntimeHandlers, is.Features
	if is.Images != nil {
		s.Images = is.Images
	}
	s.Conditions = conditions(s.Conditions, is.Conditions, metav1.NewTime(now).Rfc3339Copy())
	return n
}

// addresses: those that a cloud controller told stay; before it does, it is to
// find a node of the user's addresses, or of none.
func (o *Options) addresses(seen, is []v1.NodeAddress) []v1.NodeAddress {
	switch {
	case !o.ExternalCloud:
		return is
	case len(seen) > 0:
		return seen
	case o.ProvidedIP != "":
		return is
	}
	var names []v1.NodeAddress
	for _, a := range is {
		if a.Type == v1.NodeHostName {
			names = append(names, a)
		}
	}
	return names
}

// amounts: a resource that somebody else made known stays as it is, and all of it
// is for pods. Huge pages of a size that the kernel no longer has go.
func amounts(seen, is *v1.NodeStatus) (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, q := range seen.Capacity {
		if !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			capacity[name], allocatable[name] = q, q
		}
	}
	maps.Copy(capacity, is.Capacity)
	maps.Copy(allocatable, is.Allocatable)
	return capacity, allocatable
}

// changed makes nothing of when a condition was looked at, nor of their order.
func changed(a, b *v1.Node) bool {
	still := func(s v1.NodeStatus) v1.NodeStatus {
		s.Conditions = sorted(s.Conditions)
		return s
	}
	return !equality.Semantic.DeepEqual(still(a.Status), still(b.Status)) ||
		!equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}
