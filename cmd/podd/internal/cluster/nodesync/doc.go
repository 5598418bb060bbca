// Package nodesync creates the Node in the API server and updates its status.
//
// Pure functions compute the content of the Node (content.go, condition.go, patch.go). Images, pressure and
// readiness come from the View, and are sent when they change. podd handles the Node like the kubelet, with
// these differences:
//
//   - A host that only has a loopback address, for example before DHCP, is registered
//     without an address. The kubelet does not report a status in this case.
//   - If another client changes the status, podd corrects the status with the next periodic update.
//     If the API server was unreachable, podd corrects the status as soon as the API server is
//     reachable again.
//
// The eviction thresholds determine the pressure conditions of the Node (package eviction). The
// thresholds of memory.available and nodefs.available also reduce the allocatable resources. As in
// a kubelet, memory.available refers to the memory of the host, and allocatableMemory.available to
// the memory limit of all pods together.
//
// If the Node is deleted while podd runs, podd does not create the Node again, because the deletion
// was intended. The kubelet behaves in the same way. podd uses a Node that another client creates.
// After a restart podd creates the Node itself.
//
// podd writes the condition KubeletConfigOk of the View to the Node, and removes it from the Node if the
// View does not contain it.
package nodesync
