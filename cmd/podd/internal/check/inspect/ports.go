package inspect

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/config"
	"podd/server"
)

// tryPorts listens on each port of podd for a moment.
func tryPorts(ctx context.Context, cfg *config.Server) []check.Port {
	var ports []check.Port
	for _, p := range []check.Port{
		{Flag: "--port", Address: cfg.API.Address}, {Flag: "--healthz-port", Address: cfg.HealthzAddress},
		{Flag: "--cadvisor-port", Address: cfg.CadvisorAddress}, {Flag: "--read-only-port", Address: cfg.ReadOnlyAddress},
	} {
		if p.Address == "" {
			continue
		}
		var ln net.Listener
		if ln, p.Err = server.Listen(ctx, p.Flag, p.Address); p.Err == nil {
			ln.Close()
		}
		ports = append(ports, p)
	}
	return ports
}

// A listener is a TCP socket in the state LISTEN.
type listener struct {
	address netip.AddrPort
	inode   string // number of the socket, as in /proc/PID/fd
}

// listeners returns the listeners of this network namespace.
func listeners() (found []listener) {
	for _, path := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(path)
		if err != nil {
			continue // without IPv6, the second file does not exist
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if l, ok := parseListener(lines.Text()); ok {
				found = append(found, l)
			}
		}
		f.Close()
	}
	return found
}

// parseListener parses a line of /proc/net/tcp or /proc/net/tcp6, such as
//
//	0: 0100007F:280A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 46733 1
//
// ok is false if the socket is not in the state LISTEN (0A).
func parseListener(line string) (l listener, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != "0A" {
		return l, false
	}
	host, port, _ := strings.Cut(fields[1], ":")
	raw, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return l, false
	}
	for word := range slices.Chunk(raw, 4) { // convert the words, which the kernel prints in the byte order of the host
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return listener{netip.AddrPortFrom(ip.Unmap(), uint16(number)), fields[9]}, ok
}

// conflicts reports whether l prevents podd from listening on address, which is "host:port".
func (l listener) conflicts(address string) bool {
	want, err := netip.ParseAddrPort(address)
	return err == nil && check.Conflict(want, l.address)
}
