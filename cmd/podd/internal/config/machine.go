package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine contains the properties of the host and of the call that Load depends on.
type Machine struct {
	// Program is the base name that podd was called by; "kubelet" changes defaults.
	Program string
	// Hostname is used without --hostname-override.
	Hostname string
	// CgroupV2 is set if /sys/fs/cgroup is the unified hierarchy.
	CgroupV2 bool
	// Swap is set if swap is enabled.
	Swap bool
	// SwapLimits is set if the kernel can limit the swap of a cgroup.
	SwapLimits bool
	// SELinux is set if SELinux is enabled.
	SELinux bool
	// Checkout is the .run directory next to the bin directory that podd was started from, or
	// "" outside a checkout. It contains a private runtime for trials.
	Checkout string
}

// ThisMachine returns the properties of this host.
func ThisMachine() (Machine, error) {
	host, err := os.Hostname()
	if err != nil {
		return Machine{}, fmt.Errorf("reading the hostname: %w", err)
	}
	return Machine{
		Program:    filepath.Base(os.Args[0]),
		Hostname:   host,
		CgroupV2:   unified("/sys/fs/cgroup"),
		Swap:       swapOn("/proc/swaps"),
		SwapLimits: swapLimits("/sys/fs/cgroup", "/proc/self/cgroup"),
		SELinux:    exists("/sys/fs/selinux/enforce"),
		Checkout:   checkout(),
	}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// swapLimits checks the file that limits swap. On cgroup v2 every cgroup but the root has
// it, so it is looked up in podd's own, which self names.
func swapLimits(cgroups, self string) bool {
	if exists(filepath.Join(cgroups, "memory/memory.memsw.limit_in_bytes")) {
		return true
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return exists(filepath.Join(cgroups, own, "memory.swap.max"))
		}
	}
	return false
}

// AsKubelet reports whether podd was called as kubelet.
func (m Machine) AsKubelet() bool { return m.Program == "kubelet" }

func unified(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// swapOn counts the lines of /proc/swaps without the title. The file does not exist if
// the kernel has no swap. zram counts as swap.
func swapOn(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) != "" {
			n++
		}
	}
	return n > 1
}

// checkout returns the directory only if no other user can put a socket there, because a
// podd that runs as root would use that runtime.
func checkout() string {
	exe, err := os.Executable()
	if err != nil || filepath.Base(filepath.Dir(exe)) != "bin" {
		return ""
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(exe)), ".run")
	if !onlyOurs(dir) {
		return ""
	}
	return dir
}

func onlyOurs(dir string) bool {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	return int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0
}
