//go:build e2e

package kubeadm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nodeEnv has the name of the node that a process is, "" outside.
const nodeEnv = "PODD_KUBEADM_NODE"

// The nodes, and what their addresses are.
const (
	first, second               = "cp-0", "node-1"
	firstAddress, secondAddress = "198.18.0.1", "198.18.0.2"
)

// unshared is this program as a node; it ends with this process. The caller keeps
// its thread, at whose end the kernel kills that one.
func unshared(node string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), nodeEnv+"="+node)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL,
	}
	return cmd
}

// outside runs the tests as the first node and returns their exit code.
func outside() (int, error) {
	runtime.LockOSThread()
	cmd := unshared(first, os.Args[1:]...)
	err := cmd.Run()
	if end := (&exec.ExitError{}); errors.As(err, &end) {
		return max(end.ExitCode(), 1), nil
	}
	return 0, err
}

// settle makes the namespaces of this process a machine.
func settle(node, dir string) error {
	if err := unix.Sethostname([]byte(node)); err != nil {
		return fmt.Errorf("naming the machine: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keeping mounts here: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	for _, of := range []string{"/etc", "/usr", "/var"} {
		if node == second { // what the first has there came with its namespace
			if err := unix.Unmount(of, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("uncovering %s: %w", of, err)
			}
		}
		if err := overlay(of, filepath.Join(dir, "changed", of)); err != nil {
			return err
		}
	}
	// kubeadm asks dl.k8s.io for the newest version, and goes on at once when refused.
	hosts := fmt.Sprintf("127.0.0.1 localhost dl.k8s.io\n%s %s\n%s %s\n", firstAddress, first, secondAddress, second)
	return errors.Join(os.WriteFile("/etc/hosts", []byte(hosts), 0o644), ip("link", "set", "lo", "up"))
}

// overlay has what is written below a directory go to another.
func overlay(of, to string) error {
	upper, work := filepath.Join(to, "upper"), filepath.Join(to, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", of, "overlay", 0, "lowerdir="+of+",upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("covering %s: %w", of, err)
	}
	return nil
}

// uplink is what a node is reached by, with an address and the way to everywhere.
const uplink = "uplink"

func addUplink(address string) error {
	return errors.Join(
		ip("addr", "add", address+"/24", "dev", uplink), ip("link", "set", uplink, "up"), ip("route", "add", "default", "dev", uplink))
}

// forward has the node forward packets, which kubeadm's preflight asks of one. The
// stack has remembered by now what the host had, which a new namespace begins with.
func forward() error {
	const file = "/proc/sys/net/ipv4/ip_forward"
	if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == "1" {
		return nil
	}
	return os.WriteFile(file, []byte("1"), 0)
}

// connect has the second node, a process, reached by a link of its own.
func connect(pid int) error {
	const name = "second"
	return errors.Join(
		ip("link", "add", name, "type", "veth", "peer", "name", uplink, "netns", strconv.Itoa(pid)),
		ip("link", "set", name, "up"), ip("route", "add", secondAddress, "dev", name, "src", firstAddress))
}

// await waits until the node is connected.
func await() error {
	for range 600 {
		if ip("link", "show", uplink) == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("no link %s came", uplink)
}

func ip(words ...string) error {
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}
