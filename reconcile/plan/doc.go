// Package plan decides what to do next about one pod name. It is pure: values
// in, values out; no clock, no I/O, no goroutine.
//
//	wanted ─┐
//	seen   ─┼─▶ Next ─▶ Decision{Rule, Actions, Wake, Done}
//	memory ─┘
//
// Pod rules (pod_rules.go) choose the phase, first match wins:
//
//	        ┌───────────────────── stop ◀──────────────┐ changed, removed, asked
//	        ▼                                          │
//	wait ─▶ prepare ─▶ init ─▶ run ─▶ wind down ─▶ rest
//	          ▲                 │ sandbox lost
//	          └─────────────────┘
//
// Container rules (container_rules.go) then see every container. A Decision
// names every action that should be under way, also those that already are:
// the worker starts the ones whose subject is free and cancels what a Decision
// no longer names.
//
// A probe (probe.go, probe_rules.go) is attempts, which are actions, and a
// verdict, which is history by container ID:
//
//	runs ─▶ startup passed ─▶ liveness passed ─▶ …   readiness: in the status
//	 ▲          │ failed         │ failed
//	 └── stop ◀─┴────────────────┘
package plan
