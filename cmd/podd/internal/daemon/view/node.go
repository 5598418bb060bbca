package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/reconcile"
	"podd/reconcile/device/allocation"
	"podd/runtime"
)

// A NodeBuilder builds the Node object that kubectl shows. It is not safe for concurrent use. It
// does not modify objects that it has returned.
type NodeBuilder struct {
	template   *v1.Node // contains only the constant parts
	initialIPs []string // addresses before the first Change with addresses
	// state, devices, facts and handlers contain the data from which published was built.
	state     runtimeState
	devices   map[v1.ResourceName]allocation.Count
	facts     *nodeFacts
	handlers  map[string]runtime.Handler
	published *v1.Node
}

// runtimeState contains the parts of the Node that depend on the runtime and the disk.
type runtimeState struct {
	name, version                 string
	isReady, isNetworkReady       bool
	hasSupplementalGroupsPolicy   bool // supplementalGroupsPolicy is supported
	message, networkMessage       string
	diskCapacity, diskAllocatable int64
	isShuttingDown                bool
	addresses                     string
}

// NewNodeBuilder returns a NodeBuilder. node contains the constant parts of the Node, and is not
// modified. initialIPs are the addresses until a Change contains addresses.
func NewNodeBuilder(node *v1.Node, initialIPs []string) *NodeBuilder {
	return &NodeBuilder{template: node, initialIPs: initialIPs}
}

// nodeAddresses returns the addresses of a Node.
func nodeAddresses(ips []string, name string) []v1.NodeAddress {
	var addresses []v1.NodeAddress
	for _, ip := range ips {
		addresses = append(addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	return append(addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: name})
}

// update returns the Node object for c and facts; facts may be nil. If nothing has changed, update
// returns the same pointer as the previous call.
func (m *NodeBuilder) update(c reconcile.Change, facts *nodeFacts) *v1.Node {
	r := c.Node
	current := runtimeState{r.Name, r.Version, r.Ready, r.NetworkReady, r.SupplementalGroupsPolicy, r.Message, r.NetworkProblem(), c.Capacity.EphemeralStorage, c.Allocatable.EphemeralStorage, c.ShuttingDown, c.Addresses.String()}
	if m.published != nil && m.state == current && m.facts == facts && maps.Equal(m.devices, c.Devices) && maps.Equal(m.handlers, r.Handlers) {
		return m.published
	}
	n := m.template.DeepCopy()
	n.Status.Addresses = nodeAddresses(m.initialIPs, n.Name)
	if len(c.Addresses.IPs) > 0 {
		n.Status.Addresses = nodeAddresses(c.Addresses.Strings(), n.Name)
	}
	setResources(&n.Status, c)
	if facts != nil {
		n.Status.Images = facts.Images
		for _, kind := range PressureKinds {
			if facts.Pressure != nil {
				n.Status.Conditions = append(n.Status.Conditions, m.withTimes(pressureCondition(kind, facts.Pressure.Has(kind))))
			}
		}
	}
	if facts != nil && facts.Config != nil {
		n.Status.Conditions = append(n.Status.Conditions, m.withTimes(*facts.Config))
	}
	n.Status.Conditions = append(n.Status.Conditions, m.withTimes(readyCondition(r, c.ShuttingDown)))
	if r.Name != "" {
		n.Status.NodeInfo.ContainerRuntimeVersion = r.Name + "://" + strings.TrimPrefix(r.Version, "v")
	}
	setFeatures(&n.Status, r)
	m.state, m.devices, m.facts, m.handlers, m.published = current, c.Devices, facts, r.Handlers, n
	return n
}

// setResources sets the resources that may change while podd runs. As in a kubelet, allocated devices
// that no device plugin lists are not part of the capacity.
func setResources(s *v1.NodeStatus, c reconcile.Change) {
	if c.Capacity.EphemeralStorage > 0 {
		s.Capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(c.Capacity.EphemeralStorage, resource.DecimalSI)
		s.Allocatable[v1.ResourceEphemeralStorage] = *resource.NewQuantity(c.Allocatable.EphemeralStorage, resource.DecimalSI)
	}
	for name, d := range c.Devices {
		s.Capacity[name] = *resource.NewQuantity(d.Listed, resource.DecimalSI)
		s.Allocatable[name] = *resource.NewQuantity(d.Healthy, resource.DecimalSI)
	}
}

// setFeatures sets the features that the runtime and its handlers report. Older runtimes report no
// features; setFeatures then sets none.
func setFeatures(s *v1.NodeStatus, r runtime.Node) {
	if r.Handlers == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Handlers)) {
		h := r.Handlers[name]
		s.RuntimeHandlers = append(s.RuntimeHandlers, v1.NodeRuntimeHandler{Name: name, Features: &v1.NodeRuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: &h.RecursiveReadOnlyMounts, UserNamespaces: &h.UserNamespaces,
		}})
	}
	s.Features = &v1.NodeFeatures{SupplementalGroupsPolicy: &r.SupplementalGroupsPolicy}
}

// readyCondition returns the condition Ready.
func readyCondition(r runtime.Node, isShuttingDown bool) v1.NodeCondition {
	c := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady"}
	switch {
	case isShuttingDown:
		c.Message = "node is shutting down"
	case r.Ready && r.NetworkReady:
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "KubeletReady", "podd runs pods"
	case r.Ready:
		c.Message = cmp.Or(r.NetworkProblem(), "the runtime's network is not ready")
	default:
		c.Message = cmp.Or(r.Message, "the runtime has not responded yet")
	}
	return c
}

func pressureCondition(kind v1.NodeConditionType, exists bool) v1.NodeCondition {
	message := MessageForPressure(kind, exists)
	c := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: message.Reason, Message: message.Message}
	if exists {
		c.Status = v1.ConditionTrue
	}
	return c
}

// withTimes returns c with the times of its last heartbeat and transition.
func (m *NodeBuilder) withTimes(c v1.NodeCondition) v1.NodeCondition {
	c.LastHeartbeatTime = metav1.Now()
	c.LastTransitionTime = c.LastHeartbeatTime
	if m.published == nil {
		return c
	}
	for _, previous := range m.published.Status.Conditions {
		if previous.Type == c.Type && previous.Status == c.Status {
			c.LastTransitionTime = previous.LastTransitionTime
		}
	}
	return c
}
