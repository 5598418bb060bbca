// Package pressure defines the signals and thresholds by which the node detects that it is short of
// a resource. The rules are those of a kubelet (pkg/kubelet/eviction).
//
// A threshold is met while the available amount of its signal is less than its limit.
package pressure
