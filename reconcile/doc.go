// Package reconcile makes the pods on the node match the desired pods.
//
//	manifest.Set ─┐            ┌─▶ worker (one per pod name) ─▶ plan.Next ─▶ effects
//	Snapshot ─────┼─▶ Router ──┤        ▲                                      │
//	node, calls ──┘            └─▶ …    └────────────── results ◀──────────────┘
//	                  ▲ reports ◀──┘
//
// # Parts
//
// The Router owns the map of workers, what admission remembers of each, and the published
// state. It never waits for a worker, except for the end of one that has nothing left to do.
// Package admission decides which pods may run: a pure function returns the order for every
// worker, and the router posts those that changed.
// A worker owns one state.State, which has everything about one pod name: the desired
// version, the observed sandboxes and containers, and the history. Each message, result and
// decision is applied by a pure function of package state; the worker carries out what that
// returns. An effect owns nothing: it carries out one action (package effect) and returns a
// result (package result). Package journal stores the history on disk.
//
// # Glossary
//
//   - action, effect, result: the description of a change, its execution, and its return
//     value.
//   - order: everything that the router wants of a worker (state.Order). A newer order
//     replaces an unread one.
//   - record, journal: the part of a worker's history that survives podd, and its file.
//   - incarnation: one sandbox of a pod name, with its containers.
//   - version: a pod with a UID and a hash of its manifest. Resized pods are of one version.
//   - foreign sandbox: one that another instance or another node agent made.
//   - barrier: the end of the newest effect; see below.
//   - orphan: a pod directory of no known pod.
//
// # Pods of a kubelet
//
// A pod of a file or URL that podd took over from a kubelet keeps the UID that it had there
// (manifest.Recognize, recordedUID), and its containers keep the kubelet's hash. So a kubelet
// that is started again continues with them. The UID is recorded in the sandbox and in the
// journal. A version that neither of them has gets the UID of its manifest.
// If a kubelet started a pod of a cluster that may terminate by itself, its worker takes the
// running sandbox over (state/takeover.go) and records that in the journal.
//
// # ConfigMaps and Secrets
//
// A worker gets the ConfigMaps and Secrets of its pod as a refs.Resolved. It gets a new one
// only if the part that the pod reads differs. plan checks which objects are missing and
// which content the files should have; effects read the values. The present content of the
// files is read from disk and never remembered.
//
// # Ephemeral containers
//
// Ephemeral containers are in no manifest. The router passes a request for them to the
// worker, which adds them to the version in force, so that planning, rendering and status
// treat them like containers of the manifest. The journal has an ephemeral container until it
// is created. After that the annotation podd/ephemeral of the container has its whole spec,
// and a podd that is started later reads it from there. The spec includes the values of
// variables, which is acceptable because only root may query the runtime. If the runtime no
// longer lists such a container, its status is shown only by the podd that observed it. An
// edit that replaces the version drops its ephemeral containers.
//
// # Devices
//
// Package device manages the devices of device plugins. The router admits pods by the number
// of devices and reports which pods may hold some. An effect allocates the devices of a pod
// before it creates the sandbox. If the devices change, every pod is admitted again.
//
// # Addresses of the node
//
// The addresses of the node change while podd runs. Package node follows them, and the router
// passes new ones to every worker, for its statuses, probes, hooks and new containers. A
// probe that failed at an address which the host does not have shows nothing about its
// container, and does not count.
//
// # The barrier
//
// The result of an effect is itself an observation, so nothing waits for a relist. In return,
// an observation that was requested before the newest effect ended is dropped and requested
// again, because it could start a container twice. Actions that change nothing observable,
// such as a probe, a pull or the creation of a directory, are outside the barrier
// (plan.Observable). Their results are reported only if they differ from what is known.
//
// After a start, the container's status is queried for two seconds. If there is no response,
// or if a start fails, the container may run without having been observed. Until a newer
// observation, nothing else is started in the pod, and while there is grace its sandbox
// is not stopped, because that would skip the container's preStop hook.
//
// # Journals
//
// A worker writes the journal of its pod before the effects that depend on it.
// Only the end of a pod that ended by itself waits until it is on disk, because the
// pod could run a second time. An eviction, a deadline, a shutdown of the node and
// the removal of a manifest stop the pod first, because the pod may be what fills
// the disk; a write that failed is retried until it succeeds (state/journal.go).
// A worker waits for a write for one second only, because a disk may not respond at all.
// After that the write counts as failed until it ends (worker_write.go).
// The times in a journal count from the boot of the host, so that no setting of
// the wall clock moves a deadline or a grace (state.RecordClock). Time for which the host
// is suspended counts, as with a kubelet (worker_clock.go).
//
// A pod directory without a valid journal does not name its pod. If no desired or
// observed pod has its UID once all of these are known, podd removes it only if it has
// neither a journal nor data. Otherwise it is an orphan: podd keeps and reports it until
// a user removes it (router_orphan.go). An unreadable journal may record that its pod has
// ended. So if the runtime has no container of the pod, and some of its containers may run
// once only, the pod waits until a user repairs or removes the journal.
//
// # Instances and other agents
//
// The labels of a sandbox never change. If the root directory of an Instance is lost, its ID
// remains in the labels of its sandboxes. Another instance that adopts this ID treats these
// sandboxes as its own. podd checks the locks of root directories, so that no other podd runs
// the adopted instance at the same time.
//
// Other agents on the same runtime, such as another podd, may create the same pod at the
// same time. So an effect that has created a sandbox lists those of the pod's name
// before any container is started in it. If another agent has one, podd stops its
// own and waits. Both agents may do so; they try again after different times.
//
// # Unknown exit codes
//
// An exit code that the runtime has not reported decides nothing. Such a container is
// runtime.ExitUnknown, and its pod has no terminal phase and is journaled as not finished.
// The container is started again only if it would be started again after any exit code. The
// observer queries the status until it has the code. The container counts as lost, with the
// code 137 and the reason ContainerStatusUnknown as with a kubelet, if
//
//   - the runtime responds that it does not exist, or lists its sandbox without it;
//   - its pod is ended for another reason (eviction, deadline, node shutdown);
//   - its pod was deleted from the cluster two minutes ago. A pod of a file or URL is
//     removed at once, because its exit code is reported to no API server.
//
// # Events
//
// The part that made a decision or carried it out creates the event, in the wording of
// package event. Workers send their events with their reports; the router adds its own, and
// publishes all with the next Change. Nothing in this package reads events.
package reconcile
