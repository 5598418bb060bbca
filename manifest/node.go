package manifest

import v1 "k8s.io/api/core/v1"

// A Node contains the labels and taints of the Node object of this node in the cluster.
// Admission uses them.
type Node struct {
	Labels map[string]string
	Taints []v1.Taint
}
