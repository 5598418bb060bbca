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

// claimsDir is the directory of the claims of all stacks on the host.
const claimsDir = "/run/podd-stack"

// forwarding contains the sysctls that the CNI plugins enable, by the name of the file with
// the previous value.
var forwarding = map[string]string{
	"ip_forward":  "/proc/sys/net/ipv4/ip_forward",
	"ip6_forward": "/proc/sys/net/ipv6/conf/all/forwarding",
}

// claims returns the host's table. The first stack records what the CNI plugins change for
// the whole host, and the last one restores it.
func claims() *claim.Table {
	return &claim.Table{Dir: claimsDir, InUse: claim.Subnets, First: saveHost, Last: restoreHost}
}

func saved(name string) string { return filepath.Join(claimsDir, name) }

func saveHost() error {
	for name, file := range forwarding {
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err == nil {
			err = os.WriteFile(saved(name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("saving %s: %w", file, err)
		}
	}
	return nil
}

// restoreHost must be called when there is no stack, because stacks use these settings.
func restoreHost() error {
	for _, dir := range []string{oldShimSockets, filepath.Dir(oldShimSockets), cniResults, filepath.Dir(cniResults)} {
		_ = os.Remove(dir) // fails if another runtime has files in it
	}
	return errors.Join(restoreForwarding(), removeEmptyTables(), removeEmptyCRIOTables(), removeSharedCgroups())
}

// removeSharedCgroups removes the cgroups of containers of pods without a cgroup parent.
// They stay if another runtime uses them. It does not wait, because the table of claims is
// locked.
func removeSharedCgroups() error {
	found, err := findCgroups(func(path string) bool { return path == "/k8s.io" || path == "/crio" })
	for _, dir := range found {
		_ = os.Remove(dir)
	}
	return err
}

func restoreForwarding() error {
	for name, file := range forwarding {
		value, err := os.ReadFile(saved(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("restoring %s: %w", file, err)
		}
		// Written only if it differs, because the host may not permit writing even the same
		// value.
		if now, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(now)) != strings.TrimSpace(string(value)) {
			if err := os.WriteFile(file, value, 0); err != nil {
				return fmt.Errorf("restoring %s: %w", file, err)
			}
		}
		if err := os.Remove(saved(name)); err != nil {
			return fmt.Errorf("restoring %s: %w", file, err)
		}
	}
	return nil
}
