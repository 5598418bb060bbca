// Package stream is a client of the streaming protocol of exec, attach and port
// forwarding, which multiplexes streams over one connection.
//
//	net.Conn ── Dial (HTTP upgrade) ──▶ Conn ── Command.Run ──▶ stdin, stdout, stderr, size, exit code
//	                                      └─── Forward, any number at a time ──▶ a port's data
//
// It uses SPDY, which the streaming servers of all runtimes support. With WebSocket,
// older servers cannot receive the end of the input, so that a command that reads all of
// its input would wait forever.
package stream
