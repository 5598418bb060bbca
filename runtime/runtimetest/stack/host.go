package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"podd/runtime/runtimetest/stack/reservation"
)

// reservationsDir is the directory of the reservations of all stacks on the host.
const reservationsDir = "/run/podd-stack"

// forwardingSysctls contains the sysctls that the CNI plugins enable. The keys are names of files
// with the previous values.
var forwardingSysctls = map[string]string{
	"ip_forward":  "/proc/sys/net/ipv4/ip_forward",
	"ip6_forward": "/proc/sys/net/ipv6/conf/all/forwarding",
}

// reservationTable returns the host's table of reservations. The first stack saves the settings
// that the CNI plugins change for the whole host, and the last stack restores them.
func reservationTable() *reservation.Table {
	return &reservation.Table{Dir: reservationsDir, UsedSubnets: reservation.Subnets, BeforeFirst: saveHostSettings, AfterLast: restoreHostSettings}
}

// savedFile returns the path of the file with the previous value of a sysctl.
func savedFile(name string) string { return filepath.Join(reservationsDir, name) }

// saveHostSettings saves the settings of the host that the CNI plugins change.
func saveHostSettings() error {
	for name, file := range forwardingSysctls {
		value, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // the kernel does not support IPv6
			continue
		}
		if err == nil {
			err = os.WriteFile(savedFile(name), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("saving the host file %s: %w", file, err)
		}
	}
	return nil
}

// restoreHostSettings restores the settings of the host. It must not be called while a stack
// exists, because stacks need the changed settings.
func restoreHostSettings() error {
	for _, dir := range []string{oldShimSockets, filepath.Dir(oldShimSockets), cniResults, filepath.Dir(cniResults)} {
		_ = os.Remove(dir) // fails if the directory contains files of another runtime
	}
	return errors.Join(restoreForwarding(), removeEmptyTables(), removeEmptyCRIOTables(), removeSharedCgroups())
}

// removeSharedCgroups removes the parent cgroups of containers in pods without a cgroup parent.
// Cgroups that another runtime uses remain. The function does not retry, because the table of
// reservations is locked.
func removeSharedCgroups() error {
	found, err := findCgroups(func(path string) bool { return path == "/k8s.io" || path == "/crio" })
	for _, dir := range found {
		_ = os.Remove(dir)
	}
	return err
}

func restoreForwarding() error {
	for name, file := range forwardingSysctls {
		value, err := os.ReadFile(savedFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("restoring the host file %s: %w", file, err)
		}
		// Do not write a value that is already set, because the host may not permit any write.
		if current, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(current)) != strings.TrimSpace(string(value)) {
			if err := os.WriteFile(file, value, 0); err != nil {
				return fmt.Errorf("restoring the host file %s: %w", file, err)
			}
		}
		if err := os.Remove(savedFile(name)); err != nil {
			return fmt.Errorf("restoring the host file %s: %w", file, err)
		}
	}
	return nil
}
