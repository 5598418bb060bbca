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

// What the kubelet sees of the machine in a mount namespace of its own, whatever
// the machine has: AppArmor, and huge pages. A kubelet only looks whether they are
// there, and whether they suffice.
var (
	hugePages = []struct{ kib, n int64 }{{1 << 20, 2}, {2048, 64}} // a tmpfs lists them in reverse
	unshare   = []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", lookalike(), "kubelet"}
)

// lookalike is the script that makes it, and then becomes the program that its
// arguments are.
func lookalike() string {
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

// reserved is how many bytes of memory no pod can ask for: those of the huge
// pages, and what the kubelet keeps from pods by evicting them.
func reserved() int64 {
	bytes := int64(evictMiB << 20)
	for _, p := range hugePages {
		bytes += p.kib * p.n << 10
	}
	return bytes
}

// ended says that the kubelet has ended by itself.
func (k *kubelet) ended() bool {
	_, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(k.cmd.Process.Pid), "exe"))
	return err != nil
}

// seen is where the kubelet's own directory is with the mounts that it has made.
func (k *kubelet) seen() string {
	return filepath.Join("/proc", strconv.Itoa(k.cmd.Process.Pid), "root", k.root())
}

// makeDevice makes a node at path of a block device that is a file, and takes
// both away in the end with the loop device that the kubelet has on it.
func (k *kubelet) makeDevice(path string) error {
	file := filepath.Join(k.dir, filepath.Base(path)+".image")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	out, err := exec.Command("losetup", "--find", "--show", file).Output()
	if err != nil {
		return fmt.Errorf("making a block device of %s: %w", file, err)
	}
	device := strings.TrimSpace(string(out))
	k.machine = append(k.machine, func() {
		on, _ := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", path).Output()
		for _, other := range append(strings.Fields(string(on)), device) {
			_ = exec.Command("losetup", "--detach", other).Run()
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
