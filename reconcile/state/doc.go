// Package state defines the state of a worker, and the functions that apply an order, an
// observation or a result to it.
//
// A State is a value. Each function returns the next State, and the Outputs that its caller
// must carry out: journals to write, an observation to request, events and log records. No
// function reads a clock, performs I/O, or modifies a map or slice of an earlier State. Package
// plan makes the decisions from State.Input.
package state
