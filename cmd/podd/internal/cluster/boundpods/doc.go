// Package boundpods implements the source of the pods that are bound to the node.
//
// Source (source.go, bound.go) is the source.Source of these pods. It emits the first batch
// after the pods and the Node were listed, because until then podd does not know which pods exist.
// The pods are not cached for the next start. The source emits only changes that affect how a pod
// runs, because the watch also reports podd's own status updates as changes. This package only
// decides which pods are bound; package manifest validates these pods, and package admission admits
// them. As with the kubelet, a pod that is force-deleted gets the grace period in its spec, because
// the API server reports no other grace period. The differences from the kubelet are:
//
//   - If a list does not contain a pod, the pod is deleted only if the list comes from the cluster
//     that has bound the pod. An API server that has lost its data returns an empty list, although
//     no user has deleted the pods. A cluster is identified (apiserver.Origin) by the UIDs of the Service
//     default/kubernetes and of the Node. A new cluster creates the Service with another UID. The
//     UID of the Node is needed, too, because a user may have deleted the Service. podd requests
//     both UIDs with every list and stores them in cluster.json in the root directory. If both
//     differ, pods that the list does not contain continue to run, with a Problem that names the
//     remedy. If a kubeconfig has another CA, the user has moved the node to another cluster. Pods
//     that this cluster does not list are then deleted.
//   - A deletion that a watch reports is always applied, because an API server that has lost its
//     data ends its watches. If pods of the first cluster continue to run, the watch of a second
//     cluster may report a deletion, even a forced one. The deleted pod may be a pod that the second
//     cluster has bound to this node, or a pod of the first cluster that the second cluster lists,
//     too. podd applies the deletion in both cases.
package boundpods
