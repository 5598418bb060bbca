package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine contains the properties of the host and of the process that Load depends on.
type Machine struct {
	// Program is the base name with which podd was called; "kubelet" changes defaults.
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
	// Checkout is the .run directory of the source checkout that podd was started from, or "".
	// make run starts a private runtime there.
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
		CgroupV2:   isCgroupV2("/sys/fs/cgroup"),
		Swap:       hasSwap("/proc/swaps"),
		SwapLimits: canLimitSwap("/sys/fs/cgroup", "/proc/self/cgroup"),
		SELinux:    exists("/sys/fs/selinux/enforce"),
		Checkout:   checkout(),
	}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// canLimitSwap reports whether the kernel can limit the swap of a cgroup: whether the file
// with the limit exists. On cgroup v2 the root cgroup does not have it, so podd's own cgroup is
// checked, which self (/proc/self/cgroup) contains.
func canLimitSwap(cgroups, self string) bool {
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

// isCgroupV2 reports whether path is the mount point of a unified hierarchy.
func isCgroupV2(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// hasSwap reports whether path, which is /proc/swaps, has lines other than the title. It does
// not exist if the kernel does not support swap. zram is swap, too.
func hasSwap(path string) bool {
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

// checkout returns Machine.Checkout. It returns "" if other users can write to the directory,
// because podd, which runs as root, would connect to a socket there.
func checkout() string {
	exe, err := os.Executable()
	if err != nil || filepath.Base(filepath.Dir(exe)) != "bin" {
		return ""
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(exe)), ".run")
	if !isPrivateDir(dir) {
		return ""
	}
	return dir
}

// isPrivateDir reports whether a directory belongs to this user and no other user can write
// to it.
func isPrivateDir(dir string) bool {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	return int(st.Uid) == os.Geteuid() && st.Mode&0o022 == 0
}
