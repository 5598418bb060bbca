// Package podwriter updates the pods of this node in the API server. decide.go contains the decision
// table for a pod. Its inputs are the pod in the View and the pod in the API server. The snapshot contains
// the last status in the API server, so that a patch needs no GET, and no request is sent while nothing
// changes. Each pod has at most one request in flight, and at most MaxWrites requests are in flight
// together. podd handles pods like the kubelet, with these differences:
//
//   - The start of a pod does not wait for its mirror pod. A mirror pod with the final status
//     of an earlier run is replaced, because a final status cannot be reverted.
//   - podd patches a status without reading the pod first.
//   - While the host only has a loopback address, podd does not change two kinds of addresses in the
//     API server: the hostIPs of pods, and the podIPs of pods on the host's network. A new pod then
//     has no hostIPs.
package podwriter
