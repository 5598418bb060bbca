// Package reconcile makes the pods on the node match the desired pods.
//
//	manifest.Set ─┐            ┌─▶ worker (one per pod name) ─▶ plan.Next ─▶ effects
//	Snapshot ─────┼─▶ Router ──┤        ▲                                      │
//	node, calls ──┘            └─▶ …    └────────────── results ◀──────────────┘
//	                  ▲ reports ◀──┘
//
// # Parts
//
// The Router owns the map of workers, the data about each pod name that admission needs in its next
// call (admission.Memory), and the published state. It never waits for a worker, except for the
// worker of a pod that was removed (Router.retire).
//
// Package admission decides which pods may run. A pure function returns the order for every
// worker, and the router posts the orders that changed.
//
// A worker owns one state.State with all facts about one pod name: the desired version, the
// observed sandboxes and containers, and the history. Pure functions of package state apply each
// message, result and decision to the state. The worker carries out their outputs.
//
// An effect owns no state. It carries out one action (package effect) and returns a result (package
// result). Package journal stores the history on disk.
//
// # Glossary
//
//   - action, effect, result: the description of a change, its execution, and its return
//     value.
//   - order: the desired pod of a worker, its verdict and the facts about the node
//     (state.Order). A newer order replaces an unread one.
//   - verdict: the result of admission for a pod: Admit, Wait or Reject, with a message.
//   - reservation: a host port, an amount of a resource, a device or a volume claim that a pod
//     name has. Admission compares the reservations of all names with the limits of the node.
//   - decision: the actions that should be in progress for a pod now, with the rule that
//     chose them and the reason (plan.Decision).
//   - history: what a worker remembers about its pod, such as exits and probe results.
//   - record, journal: the part of the history that survives a restart of podd, and its file.
//   - version: a pod with a UID and a hash of its manifest. A resize does not change the
//     version. A worker manages the version in force (plan.Input.Desired). A successor is a newer
//     version that waits until it can replace the version in force.
//   - end: the final result of a version that has completed, has failed or was evicted
//     (plan.PodEnd).
//   - report: the state of a pod that its worker sends to the router (state.Report).
//   - incarnation: one sandbox of a pod name, with its containers.
//   - instance: a root directory with a random ID, which labels all sandboxes that podd
//     creates for it.
//   - foreign sandbox: a sandbox that another instance or another node agent created.
//   - adopt, take over: to manage a running sandbox of another agent or instance.
//   - barrier: the end of the newest effect; see below.
//
// # Pods of a kubelet
//
// podd may take over a pod of a file or URL from a kubelet. The pod keeps the UID that the kubelet
// gave it (manifest.Recognize, recordedUID), and its containers keep the kubelet's hash. So a
// kubelet that is started again continues to run these containers. The UID is recorded in the
// sandbox and in the journal. A version without a sandbox and a journal gets the UID of its
// manifest.
//
// If a kubelet started a pod of a cluster and the pod may terminate by itself, its worker takes
// over the running sandbox (state/takeover.go) and records the takeover in the journal.
//
// # ConfigMaps and Secrets
//
// A worker gets the ConfigMaps and Secrets of its pod as a refs.Resolved. It gets a new
// refs.Resolved only if the part that the pod reads has changed. Package plan checks whether
// objects are missing and whether the files in volumes are up to date. Effects read the values of
// the objects. They read the content of the files from disk.
//
// # Ephemeral containers
//
// Ephemeral containers are in no manifest. The router passes a request for them to the
// worker. The worker adds them to the version in force, so that planning, rendering and status
// treat them like containers of the manifest. The journal contains an ephemeral container until
// the container is created. After that, podd reads its whole spec from the annotation
// podd/ephemeral of the container. The spec includes the values of variables, which is acceptable
// because only root may query the runtime. If the runtime no longer lists an ephemeral container,
// its status is shown until podd is restarted. An edit that replaces the version removes its
// ephemeral containers.
//
// # Devices
//
// Package device manages the devices of device plugins. The router admits pods by the number
// of available devices, and sets which pods may hold devices. An effect allocates the
// devices of a pod before it creates the sandbox. If the devices change, every pod is
// admitted again.
//
// # Node pressure
//
// A Manager of package eviction observes the memory, file systems and processes of the node. While
// the node is short of a resource, the Manager evicts pods with Router.Evict, and admission admits
// only pods that may run under pressure (Router.SetPressure).
//
// If the runtime does not stop an evicted pod within a few seconds after its grace period, podd kills
// the processes of the pod through its cgroup and releases its volumes (plan/kill.go), so that evictions
// do not depend on a runtime that does not respond. The writable layers remain until the runtime removes
// the containers.
//
// If an evicted pod is from a file or URL, its end records that it runs again later
// (plan.PodEnd.Resumes). Until then, the pod is Failed and reserves nothing. When its containers
// have stopped, admission treats it like a pod that has not run yet. The worker starts the pod
// again when the pod is admitted, its back-off has passed, and the transition period of the pressure
// has passed since the eviction (plan.PodEnd.Transition).
//
// # Addresses of the node
//
// The addresses of the node change while podd runs. Package node follows them, and the router
// passes new addresses to every worker, for its statuses, probes, hooks and new containers. If a
// probe failed because the host no longer has the address, its result is ignored, because the
// container may be healthy.
//
// # The barrier
//
// The result of an effect is itself an observation, so that no worker waits until the runtime is
// listed again. An observation is out of date if its request was sent before the newest effect
// ended. Such an observation could make a worker start a container twice, so the worker drops it
// and requests another one. The barrier ignores actions that change nothing observable, such as a
// probe, a pull or the creation of a directory (plan.IsObservable).
//
// After a start, the effect queries the status of the container for two seconds. If the runtime
// does not respond, or if the start fails, the container may run without having been observed.
// Until a newer observation, no other container of the pod is started. The sandbox is not stopped
// before its grace period has passed, because stopping the sandbox would skip the container's
// preStop hook.
//
// # Journals
//
// A worker writes the journal of its pod before the effects that depend on the journal. If a pod
// terminated by itself, its end is not published until the journal with the end is on disk, because
// otherwise the pod could run a second time. An eviction, a deadline, a node shutdown and the
// removal of a manifest stop the pod before the journal is written, because the pod may be what
// fills the disk. A failed write is retried until it succeeds (state/journal.go). A worker waits
// for a write for one second only, because a disk may not respond at all. After that, the write
// counts as failed until it returns (worker_write.go).
//
// The times in a journal count from the boot of the host, so that setting the wall clock changes no
// deadline and no grace period (state.RecordClock). The time during which the host is suspended is
// included, as in a kubelet (worker_clock.go).
//
// A pod directory without a valid journal does not identify its pod. When all sources were read and
// the runtime was observed, podd removes the directory if it belongs to no pod and contains neither
// an unusable journal nor data. A directory with a journal or data is an orphan, which podd keeps
// and reports until a user removes it (router_orphan.go).
//
// An unreadable journal may record that its pod has terminated. If the runtime has no container of
// the pod, and some of its containers must not run twice, the pod waits until a user repairs or
// removes the journal.
//
// # Instances and other agents
//
// The labels of a sandbox never change. If the root directory of an Instance is lost, its ID
// remains in the labels of its sandboxes. Another instance that adopts this ID treats these
// sandboxes as its own. podd checks the locks of root directories, so that no other podd runs an
// adopted instance at the same time.
//
// Other agents on the same runtime, such as another podd, may create the same pod at the same time.
// So after an effect has created a sandbox, it lists all sandboxes with the pod's name before a
// container is started. If another agent has created a sandbox, podd stops its own sandbox and
// waits. If both agents stop their sandboxes, they try again after different delays.
//
// # Unknown exit codes
//
// If the runtime has not reported the exit code of a container, the state of the container
// is runtime.ExitCodeUnknown. Its pod has no terminal phase and is journaled as not finished.
// The container is started again only if it would be started again after any exit code. The
// observer queries the status until the runtime reports the exit code. The container gets
// the exit code 137 and the reason ContainerStatusUnknown, as in a kubelet, if
//
//   - the runtime responds that the container does not exist, or lists its sandbox without it;
//   - its pod is stopped for another reason (eviction, deadline, node shutdown);
//   - its pod was deleted from the cluster two minutes ago. A pod of a file or URL is removed at
//     once, because its exit code is reported to no API server.
//
// # Events
//
// Workers and the router create events in the wording of package event. Workers send their events
// with their reports. The router publishes all events with the next Change. No decision depends on
// an event.
package reconcile
