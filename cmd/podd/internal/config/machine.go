package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what Load takes from the machine and the way podd was called.
type Machine struct {
	// Program is the base name podd was called by; "kubelet" changes defaults.
	Program string
	// Hostname as the kernel has it; used without --hostname-override.
	Hostname string
	// CgroupV2 says that /sys/fs/cgroup is the unified hierarchy.
	CgroupV2 bool
	// Swap says that some swap is on.
	Swap bool
	// SwapLimits says that the kernel can limit the swap of a cgroup.
	SwapLimits bool
	// SELinux says that SELinux is on.
	SELinux bool
	// Checkout is the .run directory beside the bin/ that podd was started
	// from, "" outside a checkout. It holds a private runtime for trying out.
	Checkout string
}

// ThisMachine looks at the machine podd runs on.
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

// swapLimits looks for the file that limits swap: on cgroup v2 it is in every
// cgroup but the root, so in podd's own, which self names.
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

// AsKubelet reports whether podd was called by the kubelet's name.
func (m Machine) AsKubelet() bool { return m.Program == "kubelet" }

func unified(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// swapOn counts the lines below the title of /proc/swaps. A kernel without
// swap has no such file; zram counts as swap.
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

// checkout trusts only a directory beside podd's own, and only when nobody
// else can put a socket there: it decides which runtime a root process obeys.
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
