// Package device allocates the devices of device plugins to pods. Pods request them as
// extended resources in resources.limits.
//
//	                Serve, Update, Leave            Use
//	plugin.Server ─────────────────────▶ Ledger ◀──────── effects
//	      ▲                                 ▲ Hold, Counts
//	      └── Preferred, Allocate, PreStart │
//	                                      router
//
// The router admits pods by the number of devices in Counts. The Ledger chooses the
// devices of a pod for all of its containers before its sandbox is created. The pod keeps
// them until it no longer exists, so that a restarted container has the same devices.
//
// Allocations are written to a file before they are used, and to the annotation
// runtime.AnnotationDevices of the containers. If the file is lost or unreadable, podd calls
// Allocate again for the devices in the annotation. A damaged file and one of a newer podd
// are unreadable; the file has a version and a checksum, so that podd detects both. An
// unreadable file stays in its place until allocations are saved, and is renamed then.
//
// The state of a Ledger is guarded by a mutex instead of being owned by a goroutine,
// because the router's calls of Hold must take effect at once. No call to a plugin and no
// disk access is made while the mutex is held. A plugin that does not respond delays only
// pods that request its devices, each call up to its timeout.
package device
