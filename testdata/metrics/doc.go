// Package metrics is empty. Its module pins metrics-server, the program that queries the agents
// of all nodes for the values of kubectl top. It is a separate module, because its libraries
// have other versions than those of the control plane.
package metrics
