// Package state holds the memory of a worker, and the functions that apply an order, an
// observation or a result to it.
//
// A State is a value. Each function returns the next State, and the Outputs that its caller
// must carry out: journals to write, an observation to request, events and log records. No
// function reads a clock, does input or output, or modifies a map or slice that an earlier
// State has. The decision itself is made by package plan, from State.In.
package state
