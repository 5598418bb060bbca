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

const ipForward = "/proc/sys/net/ipv4/ip_forward"

// claims is the host's table. The first stack remembers what the CNI plugins
// change for the whole host and the last one undoes it.
func claims() *claim.Table {
	return &claim.Table{Dir: claimsDir, InUse: claim.Subnets, First: rememberHost, Last: restoreHost}
}

func savedIPForward() string { return filepath.Join(claimsDir, "ip_forward") }

func rememberHost() error {
	was, err := os.ReadFile(ipForward)
	if err == nil {
		err = os.WriteFile(savedIPForward(), was, 0o644)
	}
	if err != nil {
		return fmt.Errorf("remembering ip_forward: %w", err)
	}
	return nil
}

// restoreHost runs when no stack is left, so that nothing of this is in use.
func restoreHost() error {
	for _, dir := range []string{oldShimSockets, filepath.Dir(oldShimSockets), cniResults, filepath.Dir(cniResults)} {
		_ = os.Remove(dir) // stays if another runtime keeps something in it
	}
	return errors.Join(restoreIPForward(), removeEmptyTables(), removeCgroups(func(path string) bool {
		return path == "/k8s.io"
	}))
}

func restoreIPForward() error {
	was, err := os.ReadFile(savedIPForward())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring ip_forward: %w", err)
	}
	// Written only when it differs: the machine may forbid even the same value.
	if now, err := os.ReadFile(ipForward); err != nil || strings.TrimSpace(string(now)) != strings.TrimSpace(string(was)) {
		if err := os.WriteFile(ipForward, was, 0); err != nil {
			return fmt.Errorf("restoring ip_forward: %w", err)
		}
	}
	return os.Remove(savedIPForward())
}
