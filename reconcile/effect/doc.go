// Package effect carries out the actions of package plan: it pulls images, prepares volumes,
// creates and removes sandboxes and containers, and runs probes and hooks.
//
//	plan.Action, Input ──▶ Runner.Do ──▶ Result
//	                           │
//	          Runtime, Images, Disk, LogsAndCgroups, Devices, cgroups
//
// An effect owns no state. It reads an Input, which is immutable, calls the host and returns
// a Result: an error and, for some actions, a Value. The worker of the pod applies the
// Result to its state.
//
// Do returns soon after its context is canceled, unless a file system of the host hangs. A
// start in progress is not interrupted at once (withDelayedCancel), because a runtime does
// not always clean up after an interrupted start. With a Permit, a worker can abandon a
// start that hangs before the start has called the runtime. A Gate limits how many sandboxes
// and containers are started at once. A limitTuner adapts this limit to the runtime.
package effect
