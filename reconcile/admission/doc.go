// Package admission decides which pods may run on the node. It compares the reservations of all
// pods with the limits of the node: the number of pods, host ports, devices, requested amounts,
// volume claims and user IDs. It returns an order for the worker of every pod name, and an eviction
// request for each preempted pod.
//
// Decide is a pure function. A Memory contains the data about a name that Decide needs in its next
// call.
package admission
