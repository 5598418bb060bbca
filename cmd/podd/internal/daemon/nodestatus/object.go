package nodestatus

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/reconcile/admission"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/server"
)

// NodeOptions are the options of NewNode.
type NodeOptions struct {
	Node           render.Node       // name and resources
	Limits         admission.Limits  // including the node's labels
	Info           v1.NodeSystemInfo // properties of the host
	Instance       string            // ID of the podd instance
	RootDir        string            // contains a file with the creation time of the Node
	KubeletAddress string            // address of the kubelet API; may be ""
}

// NewNode returns the constant parts of the Node object. Properties that cannot be read
// are empty.
func NewNode(o NodeOptions) *v1.Node {
	capacity := resourceList(o.Limits, o.Node.Capacity)
	for name, n := range node.ReadHugePages() {
		capacity[name] = *resource.NewQuantity(n, resource.BinarySI)
	}
	return &v1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: o.Node.Name, UID: server.DeriveUID("Node", o.Instance), Labels: o.Limits.Features.Labels,
			CreationTimestamp: modTime(filepath.Join(o.RootDir, "instance")),
		},
		Status: v1.NodeStatus{
			Capacity: capacity, Allocatable: resourceList(o.Limits, o.Node.Allocatable),
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: addressPort(o.KubeletAddress)}},
			NodeInfo:        o.Info, DeclaredFeatures: admission.DeclaredFeatures(),
		},
	}
}

// resourceList converts resources to the form of a Node, and adds the maximum number of
// pods in limits.
func resourceList(limits admission.Limits, r render.Resources) v1.ResourceList {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(int64(limits.MaxPods), resource.DecimalSI),
	}
	if r.EphemeralStorage > 0 {
		amounts[v1.ResourceEphemeralStorage] = *resource.NewQuantity(r.EphemeralStorage, resource.DecimalSI)
	}
	for name, n := range limits.Allocatable {
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			amounts[name] = *resource.NewQuantity(n, resource.BinarySI)
		}
	}
	return amounts
}

func modTime(path string) metav1.Time {
	info, err := os.Stat(path)
	if err != nil {
		return metav1.Now()
	}
	return metav1.NewTime(info.ModTime())
}

// addressPort returns the port of an address, or 0 if it has none.
func addressPort(address string) int32 {
	_, text, err := net.SplitHostPort(address)
	n, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil {
		return 0
	}
	return int32(n)
}
