// Package plan decides what to do next for one pod name. It is pure: values in, values out;
// no clock, no I/O, no goroutine.
//
//	desired  ─┐
//	observed ─┼─▶ Next ─▶ Decision{Rule, Actions, Steps, Wake, Done}
//	history  ─┘
//
// A Decision names every action that must be in progress, including those that already are.
// The worker starts the ones with a free subject and cancels those that a Decision no longer
// names.
//
// # Rules
//
// Three kinds of tables contain the rules. A row has an ID, a phase or verb, a sentence for
// users, a condition and an action:
//
//	{RuleNotAdmitted, PhaseWait, "the node does not admit the pod",
//		(*facts).notAdmitted, (*facts).waitAdmission},
//
// Everything that refers to a rule uses its [RuleID]: [Decision.Rule], [Step.Rule], logs,
// events, metrics and podd why. The sentence is the same for all pods ([RuleID.Sentence]).
// Decision.Why and Step.Why have the details for one pod. No code parses either.
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
// Short tables in the same file apply to the containers of a pod without a ready sandbox,
// and the table in ephemeral_rules.go to ephemeral containers.
//
// Additional rules (additional_rules.go) apply in addition to the pod rule, for example to
// read termination messages, to fail a pod at its deadline, or to update volumes. All rows
// with a true condition apply, in the order of the table. [Decision.WhyRule] is the one that
// has replaced the reason of the pod rule.
//
// # Ephemeral containers
//
// Ephemeral containers are not part of a manifest: they are added to a version while it
// runs. They start as soon as there is a sandbox, independently of other containers, and are
// never restarted. They do not affect whether a pod is ready or finished, and stop with it:
//
//	added ─▶ wait for image, target ─▶ start ─▶ runs ─▶ exited
//
// Each is created once. The runtime shows whether it was created, and every try uses the
// same attempt number: if the result of a try was lost, the runtime rejects a second
// container. A container that was removed, by itself or with its sandbox, is not created
// again.
//
// Every other start has its own attempt number, which is part of the container's name. If
// an interrupted call holds the name of a number for more than five seconds, the number is
// skipped, and does not count as a restart. An ephemeral container waits until the runtime
// releases its name.
//
// # Probes
//
// A probe (probe.go, probe_rules.go) consists of attempts, which are actions, and a result,
// which is part of the history by container ID:
//
//	runs ─▶ startup passed ─▶ liveness passed ─▶ …   readiness: in the status
//	 ▲          │ failed         │ failed
//	 └── stop ◀─┴────────────────┘
//
// The readiness probe of a container that is being stopped continues until it has exited.
// In a pod that is being stopped this needs the manifest that the pod was created from,
// which podd may not have after a restart. Nothing waits for the result.
//
// # Hooks and termination
//
// A hook (hook.go, hook_rules.go) is an action, except that a sleep is a wait. Until its
// postStart hook is done, a container has not started: no probe runs, and the containers
// after it in the manifest are not started. Before a container is stopped, its preStop hook
// runs, and both share the grace period:
//
//	start ─▶ postStart ─▶ runs      stop: preStop ─▶ SIGTERM, with the rest ─▶ SIGKILL
//	             │ failed                      │ grace period over ▲ two seconds
//	             └─▶ stop                      └───────────────────┘
//
// All stops follow this procedure: of a pod, of a sidecar, of one container that is
// unhealthy or must restart on request. A grace period only gets shorter, and with zero
// grace no hook runs.
//
// The stop of a pod does not wait for starts of its containers. Those that have not called
// the runtime are canceled at once: they create nothing, even if a volume keeps them from
// returning, and only the removal of the pod's directory waits for them. The others are
// canceled, and return within seconds ([Decision.CancelStarts]).
//
// A hook runs once, or again if podd was killed while it ran. Three facts are recorded in
// time: that a postStart hook is due, before its container is started; that a termination
// has begun, before anything is done for it; that a hook is done, before the next step. So
// podd after a restart repeats a hook that was in progress, within the rest of the grace
// period, and no hook that was done. If no Decision names a hook in progress any more,
// because its container exited or the grace period is over, an HTTP request is canceled, a
// command continues, and the result of both is ignored.
//
// A node shutdown stops pods by groups of priority (shutdown.go): each pod becomes Failed
// and rests. A pod of a manifest on this node resumes after the next boot, or when the
// shutdown is canceled:
//
//	run ─▶ wind down ─▶ rest ─▶ resumes: as after the loss of its sandbox
//
// # Sizes
//
// The cpu and memory of a container are its size (size.go), which can change while it runs.
package plan
