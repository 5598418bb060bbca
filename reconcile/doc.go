// Package reconcile makes what runs agree with what is wanted.
//
//	manifest.Set ─┐            ┌─▶ worker (one a pod name) ─▶ plan.Next ─▶ effects
//	Snapshot ─────┼─▶ Router ──┤        ▲                                     │
//	node, asks ───┘            └─▶ …    └────────────── facts ◀───────────────┘
//	                  ▲ reports ◀──┘
//
// The Router owns the map of workers, the node-wide claims and the published
// state; it waits for no worker but for the end of one that has nothing left to
// do. A worker owns everything about one pod
// name: the wanted version, what was seen, what is remembered. An effect owns
// nothing: it takes an action, does it, and returns a fact.
//
// A pod of a file or URL that podd took over from a kubelet keeps the UID that it had
// there (manifest.Recognize, knownAs), and its containers have the kubelet's hash: so a
// kubelet that comes back goes on with them. What says so is on the machine, the
// sandbox and the journal; a version that neither knows has the UID of its own. What a
// kubelet began of a cluster's pod that may end, its worker has for its own as it runs
// (worker_takeover.go), and the journal says so.
//
// Objects beside a pod, ConfigMaps and Secrets, come to its worker as a
// manifest.Supply, and a new one only when what the pod reads of them differs:
// plan sees what is missing and which content the files should have, effects
// look values up. What the files have is read from disk, never remembered.
//
// Ephemeral containers are in no manifest. A worker is asked for them through the
// router, and makes them part of the version in force: what decides, renders and
// tells sees them as if they had been written. Until one is made its journal has
// it, then the container itself, in the annotation podd/ephemeral, and a podd that
// comes after finds it there: a container that is in no file, and is never made
// again, is known from the runtime alone. The annotation has the whole spec, values
// of variables among it; who may ask the runtime is root. What the runtime lists no
// more is shown as it ended by the podd that saw it, and by none that comes after. An
// edit that replaces the version drops them with it.
//
// Devices of device plugins are the ledger's, package device: the router admits
// pods by how many there are and tells it whose pods may have some, an effect takes
// a pod's before its sandbox is made, and a change of them has every pod admitted
// anew.
//
// The barrier: a fact is itself an observation, so nothing waits for a relist.
// In return an observation that was sent before the newest effect ended is
// dropped and asked for again, or a container would be started twice. What changes
// nothing that can be observed, as an attempt of a probe, a pull or a directory
// made, is outside the barrier (plan.Observable); and what only says again what is
// known goes no further than its worker.
//
// Events, as package event words them, are told by who did or decided a thing:
// workers send theirs with their reports, the router its own, and all go on with
// the next Change. Nothing reads them here.
package reconcile
