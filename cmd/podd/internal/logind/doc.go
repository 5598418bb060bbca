// Package logind has systemd wait with a shutdown of the machine until the pods have
// ended.
//
//	system bus ─▶ watcher ─┬─ holds an inhibitor of mode delay ──▶ logind waits
//	                       └─ PrepareForShutdown true ─▶ Begin ─▶ lets go of it
//	                                             false ─▶ Cancel, takes another
//
// Run is for who has a shutdownGracePeriod. Where logind waits no longer than less,
// InhibitDelayMaxSec is raised by a drop-in, in the file that a kubelet has for it: there
// is one agent on a machine at a time, and whichever was started last decides, so that
// none is held to what another left. Where that does not help, the pods get less.
//
// Signals only wake, for anybody on the bus can send them: whether a shutdown is on its
// way is read from logind then, and after each connection. The lock outlives those. A
// shutdown that somebody else began is not cancelled with logind's. One that logind has given up while podd was away is cancelled, but for a
// machine that systemd is stopping already, when logind knows of no shutdown any more.
package logind
