// Package stream is a client of the streaming protocol of exec, attach and port forwarding. The
// protocol multiplexes streams over one connection.
//
//	net.Conn ── dial (HTTP upgrade) ──▶ Conn ── Command.Run ──▶ stdin, stdout, stderr, size, exit code
//	                                      └─── Forward, any number at a time ──▶ the data of a port
//
// The package uses SPDY, because the streaming servers of all runtimes support SPDY. With
// WebSocket, an older server does not receive the end of the input, so that a command that reads
// its input until the end would never exit.
package stream
