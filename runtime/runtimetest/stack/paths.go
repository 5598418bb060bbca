package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/tools"
)

func privateDirIn(dir string) string { return filepath.Join(dir, "stack") }
func stateFile(dir string) string    { return filepath.Join(privateDirIn(dir), "state.json") }

// flavors lists one flavor of containerd and one of CRI-O. The paths of their sockets and
// configurations differ, so the stack searches for the processes of both.
var flavors = []tools.Flavor{tools.Pinned, tools.CRIO}

// daemonName returns the name of a flavor's daemon, containerd or crio.
func daemonName(f tools.Flavor) string {
	if f == tools.CRIO {
		return "crio"
	}
	return "containerd"
}

func socketIn(dir string, f tools.Flavor) string { return filepath.Join(dir, daemonName(f)+".sock") }

func configIn(dir string, f tools.Flavor) string {
	if f == tools.CRIO {
		return filepath.Join(privateDirIn(dir), "crio.conf")
	}
	return filepath.Join(privateDirIn(dir), "containerd.toml")
}

// maxSocketPath is the maximum length of the path of a Unix socket. One byte of the field for the
// path is needed for the terminating zero.
const maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1

// checkSocketPath returns an error if path is too long for a socket.
func checkSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("creating socket %s: its path has %d bytes (limit %d); use a directory with a shorter path", path, len(path), maxSocketPath)
	}
	return nil
}

// shimSockets returns the directory for the sockets of shims and of CRI-O's monitors. The name of a
// shim's socket has 64 digits. A monitor's socket is called "attach", in a directory with a name of
// 64 digits. The returned directory is in the stack's directory unless the paths of the sockets
// would be too long.
func (s *Stack) shimSockets() string {
	const name = 1 + 64 + len("/attach")
	if dir := filepath.Join(s.privateDir(), "s"); len(dir)+name <= maxSocketPath {
		return dir
	}
	return filepath.Join(reservationsDir, fmt.Sprintf("%d.s", s.Reservation.Number))
}

// saveState replaces state.json atomically.
func (s *Stack) saveState() error {
	data, err := json.MarshalIndent(s.state, "", "\t")
	if err != nil {
		return fmt.Errorf("encoding the stack's state: %w", err)
	}
	file := stateFile(s.Dir)
	if err := os.WriteFile(file+".tmp", data, 0o600); err != nil {
		return fmt.Errorf("writing the stack's state: %w", err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("writing the stack's state: %w", err)
	}
	return nil
}
