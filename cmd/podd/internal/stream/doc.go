// Package stream is the client of what Kubernetes calls exec, attach and port
// forwarding: many streams over one connection.
//
//	net.Conn ── Dial (HTTP upgrade) ──▶ Conn ── Command.Run ──▶ stdin, stdout, stderr, size, exit code
//	                                      └─── Forward, any number at a time ──▶ a port's data
//
// It speaks SPDY, which every runtime's server of streams does: over WebSocket
// older ones cannot be told that the input is at its end, so that a command that
// reads all of it would wait for ever.
package stream
