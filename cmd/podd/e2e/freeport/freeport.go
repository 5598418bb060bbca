// Package freeport finds ports for the servers of tests and benchmarks.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Find returns a TCP port on which no process listens on 127.0.0.1. The kernel does not use the port for
// outgoing connections, for which it uses ports from 32768 on (net.ipv4.ip_local_port_range). The port is
// not reserved. Find may be called concurrently.
func Find() (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(10000)
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, ln.Close()
		}
	}
	return 0, fmt.Errorf("finding a free port: %w", err)
}
