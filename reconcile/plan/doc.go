// Package plan decides what to do next for one pod name. Its functions are pure: they depend only
// on their arguments, read no clock, perform no I/O and start no goroutine.
//
//	desired  ─┐
//	observed ─┼─▶ Next ─▶ Decision{Rule, Actions, Steps, WakeAt, FullyRemoved}
//	history  ─┘
//
// A Decision contains every action that should be in progress now, including actions that are
// already in progress. The worker starts an action if no action with the same subject is in
// progress. It cancels actions in progress that the Decision does not contain, if they are
// cancellable.
//
// # Rules
//
// Three kinds of tables contain the rules. A row has an ID, a phase or verb, a sentence for
// users, a condition and an action:
//
//	{RuleNotAdmitted, PhaseWait, "the node does not admit the pod",
//		(*facts).isNotAdmitted, (*facts).waitAdmission},
//
// [Decision.Rule], [Step.Rule], logs, events, metrics and podd why refer to a rule by its
// [RuleID]. The sentence is the same for all pods ([RuleID.Sentence]). Decision.Why and Step.Why
// contain the details for one pod. No code parses these texts.
//
// Pod rules (pod_rules.go, with conditions and actions in pod_*.go) choose the phase of the
// pod. The first row with a true condition applies:
//
//	        ┌───────────────────── stop ◀──────────────┐ changed, removed, requested
//	        ▼                                          │
//	wait ─▶ prepare ─▶ init ─▶ run ─▶ wind down ─▶ rest
//	          ▲                 │ sandbox lost
//	          └─────────────────┘
//
// Container rules (container_rules.go) choose what to do with a container. For each
// container of a pod in phase init or run, the first row with a true condition applies.
// Short tables in the same file apply to the containers of a pod without a ready sandbox. The table
// in pod_restart.go applies while all containers are restarted together, and the table in
// ephemeral_rules.go to ephemeral containers.
//
// Additional rules (additional_rules.go) apply in addition to the pod rule, for example to
// read termination messages, to fail a pod at its deadline, or to update volumes. All rows
// with a true condition apply, in the order of the table. [Decision.WhyRule] is the rule that has
// replaced the reason of the pod rule.
//
// # Ephemeral containers
//
// Ephemeral containers are not part of a manifest. They are added to a version while it runs. They
// start as soon as there is a sandbox, independently of other containers, and are never restarted.
// They do not affect whether a pod is ready or finished, and stop when the pod stops:
//
//	added ─▶ wait for image, target ─▶ start ─▶ runs ─▶ exited
//
// Each ephemeral container is created once. All attempts to create it use the same attempt number,
// so that the runtime rejects a second container if the result of an attempt was lost. A container
// that was removed, alone or with its sandbox, is not created again.
//
// For other containers, every start has its own attempt number, which is part of the container's
// name. If an interrupted call holds the name for more than five seconds, the attempt number is
// skipped and does not count as a restart. An ephemeral container waits until the runtime releases
// its name.
//
// # Probes
//
// A probe (probe.go, probe_rules.go) consists of attempts, which are actions, and a result, which
// the history contains by container ID:
//
//	runs ─▶ startup passed ─▶ liveness passed ─▶ …   readiness: in the status
//	 ▲          │ failed         │ failed
//	 └── stop ◀─┴────────────────┘
//
// The readiness probe of a container that is being stopped continues until the container has
// exited. If the whole pod is being stopped, the probe continues only if podd has the manifest from
// which the pod was created. After a restart podd may not have it. No rule waits for the result.
//
// # Hooks and termination
//
// A hook (hook.go, hook_rules.go) is an action; a hook that sleeps is only a wait. A container
// counts as started when its postStart hook is done. Before that, its probes do not run, and the
// containers after it in the manifest are not started. Before a container is stopped, its preStop
// hook runs. The hook and the stop share the grace period:
//
//	start ─▶ postStart ─▶ runs      stop: preStop ─▶ SIGTERM, with the rest ─▶ SIGKILL
//	             │ failed                      │ grace period over ▲ two seconds
//	             └─▶ stop                      └───────────────────┘
//
// All stops follow this procedure: the stop of a pod, of a sidecar, of an unhealthy container, and
// of a container whose restart was requested. A grace period is never extended. If it is zero, no
// hook runs.
//
// The stop of a pod cancels the container starts in progress ([Decision.CancelStarts]). A
// canceled start that has not called the runtime yet creates no container. Such a start may not
// return, for example because a volume does not respond. The stop does not wait for it; only the
// removal of the pod's directory does. A start that has called the runtime returns within seconds,
// and the stop waits for it.
//
// A hook runs once. If podd is killed while the hook runs, it runs again. To detect such a hook
// after a restart, podd records three facts: a postStart hook is due (before its container is
// started); a termination has begun (before its first action); a hook is done (before the next
// step). After a restart, podd repeats a hook that was in progress, within the rest of the grace
// period.
//
// If the container of a hook exits or the grace period has passed, no Decision contains the hook any
// more. Then podd cancels the hook if it is an HTTP request, but does not cancel a command. In both
// cases the result of the hook is ignored.
//
// A node shutdown stops pods by groups of priority (shutdown.go). Each pod becomes Failed and
// enters the phase rest (PhaseCleanedUp). A pod of a manifest on this node runs again after the
// next boot, or when the shutdown is canceled:
//
//	run ─▶ wind down ─▶ rest ─▶ resumes: as after the loss of its sandbox
//
// # Sizes
//
// The cpu and memory of a container are its size (size.go), which can change while it runs.
package plan
