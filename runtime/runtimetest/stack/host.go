package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"podd/runtime/runtimetest/stack/claim"
)

// claimsDir is where all stacks of the host meet.
const claimsDir = "/run/podd-stack"

// forwarding is what the CNI plugins turn on, by the name under which it is
// remembered.
var forwarding = map[string]string{
	"ip_forward":  "/proc/sys/net/ipv4/ip_forward",
	"ip6_forward": "/proc/sys/net/ipv6/conf/all/forwarding",
}

// claims is the host's table. The first stack remembers what the CNI plugins
// change for the whole host and the last one undoes it.
func claims() *claim.Table {
	return &claim.Table{Dir: claimsDir, InUse: claim.Subnets, First: rememberHost, Last: restoreHost}
}

func saved(name string) string { return filepath.Join(claimsDir, name) }

func rememberHost() error {
	for name, file := range forwarding {
		was, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err == nil {
			err = os.WriteFile(saved(name), was, 0o644)
		}
		if err != nil {
			return fmt.Errorf("remembering %s: %w", file, err)
		}
	}
	return nil
}

// restoreHost runs when no stack is left, so that nothing of this is in use.
func restoreHost() error {
	for _, dir := range []string{oldShimSockets, filepath.Dir(oldShimSockets), cniResults, filepath.Dir(cniResults)} {
		_ = os.Remove(dir) // stays if another runtime keeps something in it
	}
	return errors.Join(restoreForwarding(), removeEmptyTables(), removeCgroups(func(path string) bool {
		return path == "/k8s.io"
	}))
}

func restoreForwarding() error {
	for name, file := range forwarding {
		was, err := os.ReadFile(saved(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("restoring %s: %w", file, err)
		}
		// Written only when it differs: the machine may forbid even the same value.
		if now, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(now)) != strings.TrimSpace(string(was)) {
			if err := os.WriteFile(file, was, 0); err != nil {
				return fmt.Errorf("restoring %s: %w", file, err)
			}
		}
		if err := os.Remove(saved(name)); err != nil {
			return fmt.Errorf("restoring %s: %w", file, err)
		}
	}
	return nil
}
