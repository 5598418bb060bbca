// Package plan decides what to do next about one pod name. It is pure: values
// in, values out; no clock, no I/O, no goroutine.
//
//	wanted ─┐
//	seen   ─┼─▶ Next ─▶ Decision{Rule, Actions, Wake, Done}
//	memory ─┘
//
// Pod rules (pod_rules.go; what they look at and do is in pod_*.go) choose the phase,
// first match wins:
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
// Ephemeral containers (ephemeral_rules.go) are in no manifest: they are added to a
// version while it runs. They start as soon as there is a sandbox, beside all
// others, and are never started again; a pod is neither ready nor finished by what
// they do, and they end with it:
//
//	added ─▶ wait for image, target ─▶ start ─▶ runs ─▶ ended
//
// Each is created once. That it was is a fact of the runtime's, and its number is
// the same at every try: where the answer to one was lost, the runtime itself
// refuses a second. What is gone from there is not made again, whether it was
// removed or went with its sandbox.
//
// Cpu and memory of a container are its size (size.go), which changes as it runs.
//
// A probe (probe.go, probe_rules.go) is attempts, which are actions, and a
// verdict, which is history by container ID:
//
//	runs ─▶ startup passed ─▶ liveness passed ─▶ …   readiness: in the status
//	 ▲          │ failed         │ failed
//	 └── stop ◀─┴────────────────┘
//
// What ends is asked on whether it is ready, until it has ended: a pod that is
// stopped by the manifest it was made from, which a podd that comes after may not
// have. Nothing waits for the answer.
//
// A hook (hook.go, hook_rules.go) is an action, and a sleep a wait. What runs and
// owes its postStart hook has not started for others: no probe asks it, and what
// stands behind it in the manifest is not started. What is to stop has its preStop
// hook made first, and both share the grace:
//
//	start ─▶ postStart ─▶ runs      stop: preStop ─▶ TERM, with the rest ─▶ KILL
//	             │ failed                      │ grace over ▲ two seconds
//	             └─▶ stop                      └────────────┘
//
// A machine that goes down ends its pods group by group of priority (shutdown.go): each
// is Failed then, and rests. What a manifest on the machine stands for resumes after
// the next boot, or when the shutdown is cancelled:
//
//	run ─▶ wind down ─▶ rest ─▶ resumes: as after the loss of its sandbox
//
// Every stop goes this way: of a pod, of a sidecar, of one container that is ill
// or asked to restart. A grace only shrinks, and without any there is no hook.
//
// A hook is made once, or again when podd was killed amid it. That a postStart
// hook is owed is remembered before its container is started, that an end has
// begun before anything is done for it, that a hook is over before what follows:
// a podd that comes after makes again what was under way, within what is left of
// the grace, and nothing that was over. A hook under way that no Decision names
// any more, as when its container ended or the grace did, is given up: a request is
// cancelled, a command comes to its end alone, and neither's answer counts.
package plan
