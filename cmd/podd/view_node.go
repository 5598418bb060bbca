package main

import (
	"cmp"
	"maps"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/server"
	"podd/server/kube"
)

// nodeView is this node as kubectl shows one. For one goroutine; what it returned
// never changes.
type nodeView struct {
	node  *v1.Node                         // without what may change
	seen  runtimeState                     // shown is of it
	has   map[v1.ResourceName]plan.Devices // and of these
	facts *nodeFacts                       // and of these
	can   map[string]runtime.Handler       // and of these
	shown *v1.Node
	// latest is what the node sees of itself now; nil: it has not looked. Its
	// keeper sets it, from its own goroutine.
	latest atomic.Pointer[nodeFacts]
}

// runtimeState is what the node shows of its runtime, and of its disk.
type runtimeState struct {
	name, version     string
	ready, network    bool
	groups            bool // a policy of supplemental groups is served
	why, whyNetwork   string
	disk, diskForPods int64
	leaves            bool // the machine shuts down
}

// newNodeView is the node of a configuration; what this machine does not tell is
// left empty.
func newNodeView(cfg *config.Config, r render.Node, instance string) *nodeView {
	limits := limitsOf(cfg, r.Allocatable)
	capacity := resourcesOf(limits, r.Capacity)
	for name, n := range hugePages("/sys/kernel/mm/hugepages") {
		capacity[name] = *resource.NewQuantity(n, resource.BinarySI)
	}
	n := &v1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: cfg.NodeName, UID: server.UIDOf("Node", instance), Labels: nodeLabels(cfg),
			CreationTimestamp: made(filepath.Join(cfg.RootDir, "instance")),
		},
		Status: v1.NodeStatus{
			Capacity: capacity, Allocatable: resourcesOf(limits, r.Allocatable),
			Addresses:       []v1.NodeAddress{},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: port(cfg.API.Listen)}},
			NodeInfo:        systemInfo(cfg.AsKubelet),
		},
	}
	for _, ip := range r.HostIPs {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeHostName, Address: cfg.NodeName})
	return &nodeView{node: n}
}

// resourcesOf are those of the machine, or of what of it is for pods.
func resourcesOf(limits plan.Limits, r render.Resources) v1.ResourceList {
	all := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(int64(limits.MaxPods), resource.DecimalSI),
	}
	if r.EphemeralStorage > 0 {
		all[v1.ResourceEphemeralStorage] = *resource.NewQuantity(r.EphemeralStorage, resource.BinarySI)
	}
	for name, n := range limits.Amounts {
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			all[name] = *resource.NewQuantity(n, resource.BinarySI)
		}
	}
	return all
}

// with is the node with the runtime, the disk and the devices of a change; the same
// pointer while nothing of it is another.
func (m *nodeView) with(c reconcile.Change) *v1.Node {
	r := c.Node
	now := runtimeState{r.Name, r.Version, r.Ready, r.NetworkReady, r.SupplementalGroupsPolicy, r.Message, r.NetworkMessage, c.Capacity.EphemeralStorage, c.Allocatable.EphemeralStorage, c.ShuttingDown}
	facts := m.latest.Load()
	if m.shown != nil && m.seen == now && m.facts == facts && maps.Equal(m.has, c.Devices) && maps.Equal(m.can, r.Handlers) {
		return m.shown
	}
	n := m.node.DeepCopy()
	setResources(&n.Status, c)
	if facts != nil {
		n.Status.Images = facts.images
		for _, kind := range pressureKinds {
			if is, known := facts.pressure[kind]; known {
				n.Status.Conditions = append(n.Status.Conditions, m.since(pressure(kind, is)))
			}
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, m.since(readiness(r, c.ShuttingDown)))
	if r.Name != "" {
		n.Status.NodeInfo.ContainerRuntimeVersion = r.Name + "://" + strings.TrimPrefix(r.Version, "v")
	}
	setFeatures(&n.Status, r)
	m.seen, m.has, m.facts, m.can, m.shown = now, c.Devices, facts, r.Handlers, n
	return n
}

// setResources are those that may change while podd runs. The devices of a plugin
// that is not there are for no pod.
func setResources(s *v1.NodeStatus, c reconcile.Change) {
	if c.Capacity.EphemeralStorage > 0 {
		s.Capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(c.Capacity.EphemeralStorage, resource.BinarySI)
		s.Allocatable[v1.ResourceEphemeralStorage] = *resource.NewQuantity(c.Allocatable.EphemeralStorage, resource.BinarySI)
	}
	for name, d := range c.Devices {
		s.Capacity[name] = *resource.NewQuantity(d.Total, resource.DecimalSI)
		s.Allocatable[name] = resource.Quantity{Format: resource.DecimalSI}
		if d.Served {
			s.Allocatable[name] = s.Capacity[name]
		}
	}
}

// setFeatures are what the runtime says that it can do, each of its handlers apart;
// older ones say nothing.
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

// readiness is the condition Ready; leaves: the machine shuts down.
func readiness(r runtime.Node, leaves bool) v1.NodeCondition {
	c := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionFalse, Reason: "KubeletNotReady"}
	switch {
	case leaves:
		c.Message = "node is shutting down"
	case r.Ready && r.NetworkReady:
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "KubeletReady", "podd runs pods"
	case r.Ready:
		c.Message = cmp.Or(r.NetworkMessage, "the runtime's network is not ready")
	default:
		c.Message = cmp.Or(r.Message, "the runtime was not reached yet")
	}
	return c
}

// pressure is the condition of a kind of pressure.
func pressure(kind v1.NodeConditionType, is bool) v1.NodeCondition {
	words := wordsOf(kind, is)
	c := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: words[0], Message: words[1]}
	if is {
		c.Status = v1.ConditionTrue
	}
	return c
}

// since gives a condition its times.
func (m *nodeView) since(c v1.NodeCondition) v1.NodeCondition {
	c.LastHeartbeatTime = metav1.Now()
	c.LastTransitionTime = c.LastHeartbeatTime
	if m.shown == nil {
		return c
	}
	for _, was := range m.shown.Status.Conditions {
		if was.Type == c.Type && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	return c
}

// made is when a file was written.
func made(path string) metav1.Time {
	info, err := os.Stat(path)
	if err != nil {
		return metav1.Now()
	}
	return metav1.NewTime(info.ModTime())
}

func port(address string) int32 {
	_, text, err := net.SplitHostPort(address)
	n, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil {
		return 0
	}
	return int32(n)
}

// systemInfo is what the machine is. To a cluster, and whoever calls podd kubelet,
// its agent has the version of the kubelet that it stands in for: kubeadm and others
// compare versions.
func systemInfo(asKubelet bool) v1.NodeSystemInfo {
	info := v1.NodeSystemInfo{
		MachineID:  cmp.Or(firstLine("/etc/machine-id"), firstLine("/var/lib/dbus/machine-id")),
		SystemUUID: cmp.Or(firstLine("/sys/class/dmi/id/product_uuid"), firstLine("/proc/device-tree/vm,uuid"), firstLine("/etc/machine-id")),
		BootID:     firstLine("/proc/sys/kernel/random/boot_id"), OSImage: osImage("/etc/os-release"),
		KubeletVersion: kube.GitVersion, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if asKubelet {
		info.KubeletVersion = kubernetesVersion
	}
	if swap, err := memInfo("/proc/meminfo", "SwapTotal"); err == nil && swap > 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &swap}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		info.KernelVersion = unix.ByteSliceToString(u.Release[:])
	}
	return info
}

// firstLine of a file; "" when it cannot be read.
func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// osImage is the name that os-release(5) has for people.
func osImage(path string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); found {
			return strings.Trim(name, `"'`)
		}
	}
	return "Linux"
}
