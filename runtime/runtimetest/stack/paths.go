package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func ownIn(dir string) string     { return filepath.Join(dir, "stack") }
func socketIn(dir string) string  { return filepath.Join(dir, "containerd.sock") }
func configIn(dir string) string  { return filepath.Join(ownIn(dir), "containerd.toml") }
func stateFile(dir string) string { return filepath.Join(ownIn(dir), "state.json") }

// socketMost is the longest path that a unix socket can have: its field in
// the address ends with a zero byte.
const socketMost = len(unix.RawSockaddrUnix{}.Path) - 1

func fitsSocket(path string) error {
	if len(path) > socketMost {
		return fmt.Errorf("placing socket %s: its path has %d bytes and the kernel takes %d; use a directory with a shorter path", path, len(path), socketMost)
	}
	return nil
}

// shimSockets is where shims listen, each on a name of 64 digits. It lies in
// the stack's directory unless that is too deep for it.
func (s *Stack) shimSockets() string {
	const name = 1 + 64
	if dir := filepath.Join(s.own(), "s"); len(dir)+name <= socketMost {
		return dir
	}
	return filepath.Join(claimsDir, fmt.Sprintf("%d.s", s.Claim.Number))
}

// save writes state.json, whole or not at all.
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
