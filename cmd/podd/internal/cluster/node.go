package cluster

import (
	"maps"
	"net/netip"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// annotationAttachDetach makes the attach-detach controller attach the volumes.
	annotationAttachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"
	// annotationProvidedIP passes the user's addresses to a cloud controller.
	annotationProvidedIP = "alpha.kubernetes.io/provided-node-ip"
	// taintUninitialized is removed by a cloud controller.
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// defaultLabels are also updated on an existing Node. Other labels of --node-labels are
// only set when the Node is created.
var defaultLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// newNode returns a new Node object for this node.
func (o *Options) newNode(machine *v1.Node, now time.Time) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Node, Labels: maps.Clone(machine.Labels)}}
	n.Spec.ProviderID = o.ProviderID
	n.Spec.Taints = append(n.Spec.Taints, o.Taints...)
	if o.ExternalCloud {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: taintUninitialized, Value: "true", Effect: v1.TaintEffectNoSchedule})
	}
	if o.AttachDetach {
		n.Annotations = map[string]string{annotationAttachDetach: "true"}
	}
	return o.updatedNode(n, machine, now)
}

// adoptedNode returns an existing Node of this name, from an earlier podd, a kubelet or
// an administrator, with podd's labels and annotations.
func (o *Options) adoptedNode(seen, machine *v1.Node) *v1.Node {
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

// updatedNode returns seen with the current status of this node. Fields of others are
// kept, and so are those that podd does not know yet.
func (o *Options) updatedNode(seen, machine *v1.Node, now time.Time) *v1.Node {
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
	s.Capacity, s.Allocatable = mergeResources(s, is)
	s.NodeInfo, s.DaemonEndpoints = is.NodeInfo, is.DaemonEndpoints
	s.RuntimeHandlers, s.Features = is.RuntimeHandlers, is.Features
	if is.Images != nil {
		s.Images = is.Images
	}
	s.Conditions = conditions(s.Conditions, is.Conditions, metav1.NewTime(now).Rfc3339Copy())
	return n
}

// addresses returns the addresses of the Node. With an external cloud provider, those
// that the cloud controller has set are kept; before that only the user's addresses are
// set, or none. Loopback addresses, the only ones of a host without network, are omitted
// unless the user sets them.
func (o *Options) addresses(seen, is []v1.NodeAddress) []v1.NodeAddress {
	if o.ProvidedIP == "" {
		is = slices.DeleteFunc(slices.Clone(is), func(a v1.NodeAddress) bool { return isLoopback(a.Address) })
	}
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

// isLoopback returns false for a text that is not an address.
func isLoopback(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsLoopback()
}

// mergeResources keeps resources that others have added, all of which are allocatable.
// Huge page sizes that the kernel no longer supports are removed.
func mergeResources(seen, is *v1.NodeStatus) (capacity, allocatable v1.ResourceList) {
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

// isChanged ignores heartbeat times and the order of conditions.
func isChanged(a, b *v1.Node) bool {
	still := func(s v1.NodeStatus) v1.NodeStatus {
		s.Conditions = sorted(s.Conditions)
		return s
	}
	return !equality.Semantic.DeepEqual(still(a.Status), still(b.Status)) ||
		!equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}
