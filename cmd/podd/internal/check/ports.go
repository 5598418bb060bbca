package check

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func checkPorts(f *Facts, r *Result) {
	var freeAddresses []string
	for i, p := range f.Ports {
		other, overlaps := findOverlap(f.Ports[:i], p)
		switch {
		case overlaps:
			r.fail("use another port with "+p.Flag, "podd cannot listen on %s (%s) and %s (%s) at the same time", other.Address, other.Flag, p.Address, p.Flag)
		case p.Err == nil, p.Owner.PID != 0 && f.Processes.isThisPodd(p.Owner.PID):
			freeAddresses = append(freeAddresses, p.Address)
		case errors.Is(p.Err, unix.EADDRINUSE):
			r.fail("stop this process, or use another port with "+p.Flag, "the port %s (%s) is in use by %s", p.Address, p.Flag, p.Owner.describe())
		case errors.Is(p.Err, unix.EADDRNOTAVAIL):
			r.fail("set --address to an address of this host", "the address %s (%s) does not belong to this host", p.Address, p.Flag)
		default:
			r.fail("use another port with "+p.Flag, "listening on %s (%s): %v", p.Address, p.Flag, p.Err)
		}
	}
	r.Detail = strings.Join(freeAddresses, ", ")
	switch {
	case len(f.Ports) == 0:
		r.Detail = "podd is configured to listen on no port"
	case len(freeAddresses) == 0:
		r.Detail = "all configured ports are in use"
	}
}

// findOverlap returns the first of the ports on which podd cannot listen if it also listens on p. ok is
// false if there is none.
func findOverlap(ports []Port, p Port) (other Port, ok bool) {
	i := slices.IndexFunc(ports, func(other Port) bool { return overlap(other.Address, p.Address) })
	if i < 0 {
		return Port{}, false
	}
	return ports[i], true
}

// overlap reports whether a process cannot listen on both addresses. Each address is "host:port".
func overlap(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	if errX != nil || errY != nil { // the host is a name
		return a == b
	}
	return Conflict(x, y)
}

// Conflict reports whether podd cannot listen on one of the addresses while a socket listens on the
// other. An address such as 0.0.0.0 or ::, which stands for all addresses, conflicts with every address
// of this port: even for 0.0.0.0, Go listens on IPv4 and IPv6.
func Conflict(a, b netip.AddrPort) bool {
	x, y := a.Addr().Unmap(), b.Addr().Unmap()
	return a.Port() == b.Port() && (x == y || x.IsUnspecified() || y.IsUnspecified())
}

// describe returns the name and the PID of a process.
func (p Process) describe() string {
	if p.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("%s (PID %d)", p.Name, p.PID)
}

// runningPID returns the PID of the running podd that uses the directories of this configuration,
// or 0 if there is none.
func (p Processes) runningPID() int {
	if p.IsStarting || p.RootDirPID != p.SocketPID {
		return 0
	}
	return p.RootDirPID
}

// isThisPodd reports whether pid is this process or the running podd that uses the directories of
// this configuration.
func (p Processes) isThisPodd(pid int) bool { return pid == p.OwnPID || pid == p.runningPID() }
