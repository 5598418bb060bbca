package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The kubelet runs in a mount namespace in which AppArmor and huge pages appear to exist,
// whether the host has them or not. This is sufficient, because a kubelet only checks whether they
// exist and whether there are enough huge pages.
var (
	hugePages = []struct{ kib, n int64 }{{1 << 20, 2}, {2048, 64}} // a tmpfs lists them in reverse
	unshare   = []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", namespaceScript(), "kubelet"}
)

// namespaceScript returns a shell script that prepares the mount namespace and then executes its
// arguments.
func namespaceScript() string {
	const modules, security, huge = "/sys/module", "/sys/kernel/security", "/sys/kernel/mm/hugepages"
	lines := []string{
		"for d in " + modules + " " + security + " " + huge + "; do mount -t tmpfs seen $d; done",
		"mkdir -p " + modules + "/apparmor/parameters " + security + "/apparmor",
		"echo Y > " + modules + "/apparmor/parameters/enabled",
	}
	for _, p := range hugePages {
		dir := fmt.Sprintf("%s/hugepages-%dkB", huge, p.kib)
		lines = append(lines, "mkdir "+dir, fmt.Sprintf("echo %d > %s/nr_hugepages", p.n, dir))
	}
	return strings.Join(append(lines, `exec "$@"`), "\n")
}

// reservedMemory returns the memory, in bytes, that pods cannot request. It is the sum of the
// memory of the huge pages and the free memory below which the kubelet evicts pods.
func reservedMemory() int64 {
	bytes := int64(evictMiB << 20)
	for _, p := range hugePages {
		bytes += p.kib * p.n << 10
	}
	return bytes
}

// hasExited reports whether the kubelet has exited.
func (k *kubelet) hasExited() bool {
	_, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(k.cmd.Process.Pid), "exe"))
	return err != nil
}

// rootInNamespace returns the path of the kubelet's root directory with the mounts in its namespace.
func (k *kubelet) rootInNamespace() string {
	return filepath.Join("/proc", strconv.Itoa(k.cmd.Process.Pid), "root", k.rootDir())
}

// makeDevice creates a loop device, and a device node for it at path. stop removes both, and the
// loop device that the kubelet has created for the node.
func (k *kubelet) makeDevice(path string) error {
	file := filepath.Join(k.dir, filepath.Base(path)+".image")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	out, err := exec.Command("losetup", "--find", "--show", file).Output()
	if err != nil {
		return fmt.Errorf("creating a loop device for %s: %w", file, err)
	}
	device := strings.TrimSpace(string(out))
	k.cleanup = append(k.cleanup, func() {
		on, _ := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", path).Output()
		for _, loopDevice := range append(strings.Fields(string(on)), device) {
			_ = exec.Command("losetup", "--detach", loopDevice).Run()
		}
	})
	var st syscall.Stat_t
	if err := syscall.Stat(device, &st); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return syscall.Mknod(path, syscall.S_IFBLK|0o600, int(st.Rdev))
}
