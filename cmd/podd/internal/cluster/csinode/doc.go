// Package csinode publishes the CSI drivers of this node as the kubelet does: in an annotation and in
// topology labels of the Node, and in the CSINode. podd always creates the CSINode at the start. The
// differences are:
//
//   - The registration of a driver does not depend on the API server: the driver is
//     published when the API server is reachable. If the topology of a driver conflicts with
//     the Node's labels, podd reports a problem and publishes the remaining drivers.
//   - If a CSINode has a deleted Node as its owner, podd replaces the owner.
//   - When podd updates allocatable.count, it ignores all other changes in the driver's response,
//     because the API server rejects them. In this case the kubelet does not update the count either.
package csinode
