// Package metrics is empty: its module pins metrics-server, the program that asks
// every node's agent for what kubectl top shows. It is a module of its own, for its
// libraries are not those of the control plane beside it.
package metrics
