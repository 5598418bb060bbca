// Package device gives pods the devices of device plugins: extended resources,
// asked for in resources.limits.
//
//	                Serve, Update, Leave            Use
//	plugin.Server ─────────────────────▶ Ledger ◀──────── effects
//	      ▲                                 ▲ Hold, Counts
//	      └── Preferred, Allocate, PreStart │
//	                                      router
//
// The router admits pods by Counts, as many as there are devices; which ones a
// pod gets is chosen here, for all of its containers, before its sandbox is made.
// They are its own until it is gone: a container that is started anew has the same.
//
// What was given is in a file before anything is made with it, and on the
// containers, runtime.AnnotationDevices. Without the file a plugin is asked once
// more what a container with these devices needs.
//
// A Ledger's state is guarded by a mutex rather than owned by a goroutine: nothing
// waits with it held, for a plugin or for the disk, and what the router says of
// who holds devices counts at once. A plugin that does not answer holds up pods
// that want its devices, each call for so long, and no others.
package device
