// Package reconcile makes what runs agree with what is wanted.
//
//	manifest.Set ─┐            ┌─▶ worker (one a pod name) ─▶ plan.Next ─▶ effects
//	Snapshot ─────┼─▶ Router ──┤        ▲                                     │
//	node, asks ───┘            └─▶ …    └────────────── facts ◀───────────────┘
//	                  ▲ reports ◀──┘
//
// The Router owns the map of workers, the node-wide claims and the published
// state; it never blocks on a worker. A worker owns everything about one pod
// name: the wanted version, what was seen, what is remembered. An effect owns
// nothing: it takes an action, does it, and returns a fact.
//
// The barrier: a fact is itself an observation, so nothing waits for a relist.
// In return an observation that was sent before the newest effect ended is
// dropped and asked for again, or a container would be started twice. An attempt
// of a probe changes nothing that can be observed: it is outside the barrier, and
// what only says again what is known goes no further than its worker.
package reconcile
