// Package logind makes systemd delay a shutdown of the host until all pods have stopped.
//
//	system bus ─▶ watcher ─┬─ holds a delay lock              ──▶ logind waits
//	                       └─ PrepareForShutdown true ─▶ Begin ─▶ releases the lock
//	                                             false ─▶ Cancel, takes another lock
//
// The daemon calls Run if a shutdownGracePeriod is configured. If InhibitDelayMaxSec of logind is
// shorter, Run raises it with a drop-in file. podd and the kubelet use the same path for this file,
// because a node has only one agent at a time, and the value of the agent that was started last
// must take effect. If Run cannot raise InhibitDelayMaxSec, the pods have less time to stop.
//
// The watcher does not use the content of a signal, because every client of the bus can send a
// signal. After each signal and each connection to the bus, the watcher reads from logind whether a
// shutdown is in progress. If the connection is lost, the watcher keeps the delay lock.
//
// If logind cancels a shutdown, the watcher starts the pods again only if this or an earlier
// watcher has stopped them. If logind has cancelled a shutdown while podd was not running, the
// watcher starts the pods again when podd starts. The watcher does not start them while systemd is
// stopping the host, because logind then also reports that no shutdown is in progress.
package logind
