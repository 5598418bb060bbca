// Package metrics is empty. Its module pins the version of metrics-server, the program that queries
// the agents of all nodes for the values that kubectl top prints. It is a separate module, because
// it requires versions of libraries that differ from those of the control plane.
package metrics
