package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// HostFacts contains the properties of the host and of this process that Load depends on.
type HostFacts struct {
	// Program is the base name of the program with which podd was called. "kubelet" changes
	// defaults.
	Program string
	// Hostname is the name that the kernel reports. It is the node name unless
	// --hostname-override is set.
	Hostname string
	// UsesCgroupV2 is set if cgroup v2 is mounted at /sys/fs/cgroup.
	UsesCgroupV2 bool
	// SwapEnabled is set if the host uses swap.
	SwapEnabled bool
	// CanLimitSwap is set if the kernel can limit the swap of a cgroup.
	CanLimitSwap bool
	// KernelRelease is the release of the kernel, such as "6.1.0-13-amd64", or "" if it is unknown.
	KernelRelease string
	// TracingURLs contains the values of tracingVariables; "" for those that are not set.
	TracingURLs [len(tracingVariables)]string
	// PrivateRuntimeDir is the .run directory of the source checkout that podd was started from, or
	// "". "make run" starts a private runtime in this directory.
	PrivateRuntimeDir string
}

// ReadHostFacts reads the properties of this host and this process.
func ReadHostFacts() (HostFacts, error) {
	host, err := os.Hostname()
	if err != nil {
		return HostFacts{}, fmt.Errorf("reading the hostname: %w", err)
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	f := HostFacts{
		Program:           filepath.Base(os.Args[0]),
		Hostname:          host,
		UsesCgroupV2:      isCgroupV2("/sys/fs/cgroup"),
		SwapEnabled:       hasSwap("/proc/swaps"),
		CanLimitSwap:      canLimitSwap("/sys/fs/cgroup", "/proc/self/cgroup"),
		KernelRelease:     strings.TrimSpace(string(release)),
		PrivateRuntimeDir: findPrivateRuntimeDir(),
	}
	for i, name := range tracingVariables {
		f.TracingURLs[i] = os.Getenv(name)
	}
	return f, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// canLimitSwap reports whether the kernel can limit the swap of a cgroup, that is, whether the
// file with the limit exists. cgroups is /sys/fs/cgroup. With cgroup v2 the root cgroup does
// not contain this file, so podd checks its own cgroup. self is /proc/self/cgroup, which
// contains the path of that cgroup.
func canLimitSwap(cgroups, self string) bool {
	if fileExists(filepath.Join(cgroups, "memory/memory.memsw.limit_in_bytes")) {
		return true
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if ownCgroup, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return fileExists(filepath.Join(cgroups, ownCgroup, "memory.swap.max"))
		}
	}
	return false
}

// calledAsKubelet reports whether the name of the program is kubelet.
func (f HostFacts) calledAsKubelet() bool { return f.Program == "kubelet" }

// isCgroupV2 reports whether cgroup v2 is mounted at path.
func isCgroupV2(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// hasSwap reports whether the host uses swap, including zram. path is /proc/swaps, which
// contains a title and a line for each swap device. The file does not exist if the kernel does
// not support swap.
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

// findPrivateRuntimeDir returns HostFacts.PrivateRuntimeDir. It returns "" if other users can write
// to the directory, because podd runs as root and would connect to a socket of another user.
func findPrivateRuntimeDir() string {
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
