package manifest

import v1 "k8s.io/api/core/v1"

// A Node contains the labels and taints of this node in the cluster, which admission uses.
type Node struct {
	Labels map[string]string
	Taints []v1.Taint
}
