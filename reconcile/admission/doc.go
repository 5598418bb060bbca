// Package admission decides which pods may run on the node: it knows the reservations of
// all pods (places, ports, devices, amounts, claims, user IDs), and returns an order for the
// worker of every pod name and the pods that are preempted.
//
// Decide is a pure function. What it must remember of a name from one call to the next is
// its Memory.
package admission
