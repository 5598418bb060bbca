// Package logind makes systemd delay a shutdown of the host until the pods have stopped.
//
//	system bus ─▶ watcher ─┬─ holds an inhibitor of mode delay ──▶ logind waits
//	                       └─ PrepareForShutdown true ─▶ Begin ─▶ releases the inhibitor
//	                                             false ─▶ Cancel, takes another one
//
// Run is used if a shutdownGracePeriod is configured. If logind's InhibitDelayMaxSec is
// less, Run raises it with the kubelet's drop-in file: a node has one agent at a time, and
// the one that was started last decides, so that it is not limited by the file of another.
// If that has no effect, the pods get less time.
//
// Signals only wake the watcher, because every client of the bus can send them. Whether a
// shutdown is in progress is read from logind after each signal and each connection. The
// inhibitor does not depend on the connection. A shutdown that another initiator began is
// not cancelled together with logind's. A shutdown that logind cancelled while podd was not
// running is cancelled too, unless systemd is already stopping the host, when logind
// reports no shutdown any more.
package logind
