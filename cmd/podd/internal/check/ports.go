package check

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

func checkPorts(f *Facts, r *Result) {
	var freeAddresses []string
	for _, p := range f.Ports {
		switch {
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
