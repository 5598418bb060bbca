// Package logind makes systemd delay a shutdown of the host until the pods have stopped.
//
//	system bus ─▶ watcher ─┬─ holds a delay lock              ──▶ logind waits
//	                       └─ PrepareForShutdown true ─▶ Begin ─▶ releases the lock
//	                                             false ─▶ Cancel, takes another lock
//
// Run is used if a shutdownGracePeriod is configured. If logind's InhibitDelayMaxSec is
// less, Run raises it with a drop-in file. The file is that of the kubelet, because a node has
// one agent at a time, and the value of the agent that was started last must take effect. If
// raising it fails, the pods get less time.
//
// Signals only wake the watcher, because every client of the bus can send them. Whether a
// shutdown is in progress is read from logind after each signal and each connect. The lock
// does not depend on the connection. A shutdown of pods that another initiator began is not
// cancelled together with logind's. If logind cancelled a shutdown while podd was not running,
// the watcher cancels the shutdown of pods when it starts. It does not do so while systemd is
// stopping the host, because logind then reports no shutdown either.
package logind
