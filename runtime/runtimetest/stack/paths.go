package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/tools"
)

func ownIn(dir string) string     { return filepath.Join(dir, "stack") }
func stateFile(dir string) string { return filepath.Join(ownIn(dir), "state.json") }

// flavors lists the flavors, which have different sockets and configurations, so that the
// processes of any runtime are found.
var flavors = []tools.Flavor{tools.Pinned, tools.CRIO}

// program returns the name of a flavor's daemon; both containerds have the same.
func program(f tools.Flavor) string {
	if f == tools.CRIO {
		return "crio"
	}
	return "containerd"
}

func socketIn(dir string, f tools.Flavor) string { return filepath.Join(dir, program(f)+".sock") }

func configIn(dir string, f tools.Flavor) string {
	if f == tools.CRIO {
		return filepath.Join(ownIn(dir), "crio.conf")
	}
	return filepath.Join(ownIn(dir), "containerd.toml")
}

// maxSocketPath is the maximum length of a unix socket's path: its field in the address ends
// with a zero byte.
const maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1

func fitsSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("placing socket %s: its path has %d bytes (limit %d); use a directory with a shorter path", path, len(path), maxSocketPath)
	}
	return nil
}

// shimSockets returns the directory in which shims listen, each on a name of 64 digits, and
// CRI-O's monitors, each on "attach" below such a name. It is in the stack's directory
// unless its path would be too long.
func (s *Stack) shimSockets() string {
	const name = 1 + 64 + len("/attach")
	if dir := filepath.Join(s.own(), "s"); len(dir)+name <= maxSocketPath {
		return dir
	}
	return filepath.Join(claimsDir, fmt.Sprintf("%d.s", s.Claim.Number))
}

// save replaces state.json atomically.
func (s *Stack) save() error {
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
