package nodesync

import (
	"maps"
	"net/netip"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
)

const (
	// annotationAttachDetach is an annotation of the Node. It requests that the attach-detach
	// controller attaches the volumes of this node.
	annotationAttachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"
	// annotationProvidedIP passes the user's addresses to a cloud controller.
	annotationProvidedIP = "alpha.kubernetes.io/provided-node-ip"
	// taintUninitialized prevents pods from being scheduled to the node until a cloud controller
	// removes the taint.
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// defaultLabels are the labels that podd also updates on an existing Node. podd sets other labels
// of --node-labels only when it creates the Node.
var defaultLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType, v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

// newNode returns the Node to create in the API server. local is the Node in the View.
func (o *Options) newNode(local *v1.Node, now time.Time) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.NodeName, Labels: maps.Clone(local.Labels)}}
	n.Spec.ProviderID = o.ProviderID
	n.Spec.Taints = append(n.Spec.Taints, o.Taints...)
	if n.Spec.Unschedulable = o.Unschedulable; o.Unschedulable {
		addTaint(n, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
	if o.HasExternalCloud {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: taintUninitialized, Value: "true", Effect: v1.TaintEffectNoSchedule})
	}
	if o.EnableControllerAttachDetach {
		n.Annotations = map[string]string{annotationAttachDetach: "true"}
	}
	return o.updatedNode(n, local, now)
}

// addTaint adds a taint to n, unless n has a taint with the same key and effect.
func addTaint(n *v1.Node, t v1.Taint) {
	if !slices.ContainsFunc(n.Spec.Taints, func(o v1.Taint) bool { return o.MatchTaint(&t) }) {
		n.Spec.Taints = append(n.Spec.Taints, t)
	}
}

// adoptedNode returns a copy of stored with podd's labels and annotations. stored is a Node in
// the API server, which an earlier podd process, a kubelet or an administrator may have created.
func (o *Options) adoptedNode(stored, local *v1.Node) *v1.Node {
	n := stored.DeepCopy()
	for _, label := range defaultLabels {
		if value := local.Labels[label]; value != "" {
			metav1.SetMetaDataLabel(&n.ObjectMeta, label, value)
		}
	}
	if o.EnableControllerAttachDetach {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationAttachDetach, "true")
	} else {
		delete(n.Annotations, annotationAttachDetach)
	}
	return n
}

// zeroExtendedResources sets the extended resources in a list to 0.
func zeroExtendedResources(list v1.ResourceList) {
	for name := range list {
		if manifest.IsExtendedResource(name) {
			list[name] = resource.Quantity{Format: resource.DecimalSI}
		}
	}
}

// updatedNode returns a copy of stored with the status of local. It keeps the fields that other
// clients write and the fields that local does not contain yet.
func (o *Options) updatedNode(stored, local *v1.Node, now time.Time) *v1.Node {
	n := stored.DeepCopy()
	metav1.SetMetaDataLabel(&n.ObjectMeta, v1.LabelOSStable, goruntime.GOOS)
	metav1.SetMetaDataLabel(&n.ObjectMeta, v1.LabelArchStable, goruntime.GOARCH)
	if o.HasExternalCloud && o.ProvidedIP != "" {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotationProvidedIP, o.ProvidedIP)
	} else {
		delete(n.Annotations, annotationProvidedIP)
	}
	s, own := &n.Status, local.Status.DeepCopy()
	s.Addresses = o.Addresses(s.Addresses, own.Addresses)
	s.Capacity, s.Allocatable = mergeResources(s, own)
	s.NodeInfo, s.DaemonEndpoints = own.NodeInfo, own.DaemonEndpoints
	s.RuntimeHandlers, s.Features, s.DeclaredFeatures = own.RuntimeHandlers, own.Features, own.DeclaredFeatures
	if own.Images != nil {
		s.Images = own.Images
	}
	s.Conditions = mergeNodeConditions(s.Conditions, own.Conditions, metav1.NewTime(now).Rfc3339Copy())
	return n
}

// Addresses returns the addresses that the Node should have. stored contains the addresses of
// the Node in the API server, and local contains the addresses of this host. Without an external
// cloud provider, Addresses returns local. With an external cloud provider, it returns the
// addresses in stored. If stored is empty, it returns local if the user has configured addresses,
// and otherwise only the hostname. Addresses omits loopback addresses from local unless the
// user has configured them. A host without network has only loopback addresses.
func (o *Config) Addresses(stored, local []v1.NodeAddress) []v1.NodeAddress {
	if o.ProvidedIP == "" {
		local = slices.DeleteFunc(slices.Clone(local), func(a v1.NodeAddress) bool { return isLoopback(a.Address) })
	}
	switch {
	case !o.HasExternalCloud:
		return local
	case len(stored) > 0:
		return stored
	case o.ProvidedIP != "":
		return local
	}
	var names []v1.NodeAddress
	for _, a := range local {
		if a.Type == v1.NodeHostName {
			names = append(names, a)
		}
	}
	return names
}

func isLoopback(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.IsLoopback()
}

// mergeResources returns the capacity and the allocatable resources for the Node. They consist of
// the resources in own and those that other clients have added to stored. The entire capacity of
// the added resources is allocatable. Huge pages are only taken from own, because the kernel may no
// longer support a size in stored.
func mergeResources(stored, own *v1.NodeStatus) (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, q := range stored.Capacity {
		if !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			capacity[name], allocatable[name] = q, q
		}
	}
	maps.Copy(capacity, own.Capacity)
	maps.Copy(allocatable, own.Allocatable)
	return capacity, allocatable
}

// isNodeChanged reports whether the status, labels or annotations of a and b differ. It ignores
// heartbeat times and the order of conditions.
func isNodeChanged(a, b *v1.Node) bool {
	normalize := func(s v1.NodeStatus) v1.NodeStatus {
		s.Conditions = normalizeConditions(s.Conditions)
		return s
	}
	return !equality.Semantic.DeepEqual(normalize(a.Status), normalize(b.Status)) ||
		!equality.Semantic.DeepEqual(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}
