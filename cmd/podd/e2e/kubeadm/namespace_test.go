//go:build e2e

package kubeadm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
)

// nodeEnv is the environment variable with the name of the node in which a process runs. It is
// not set in the process that starts the first node.
const nodeEnv = "PODD_KUBEADM_NODE"

// The names and addresses of the nodes.
const (
	first, second               = "cp-0", "node-1"
	firstAddress, secondAddress = "198.18.0.1", "198.18.0.2"
)

// nodeCommand returns a command that runs this program as a node.
func nodeCommand(node string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), nodeEnv+"="+node)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS}
	return cmd
}

// runFirstNode runs the tests as the first node and returns their exit code.
func runFirstNode() (int, error) {
	err := child.Run(nodeCommand(first, os.Args[1:]...))
	if end := (&exec.ExitError{}); errors.As(err, &end) {
		return max(end.ExitCode(), 1), nil
	}
	return 0, err
}

// hostNode lists the directories that exist if kubeadm has set up the host itself as a node. They
// are hidden from the nodes of this test.
var hostNode = []string{"/etc/kubernetes", "/var/lib/etcd", "/var/lib/kubelet"}

// setUpNamespaces sets the hostname, mounts the overlays and writes the hosts file in the
// namespaces of this process.
func setUpNamespaces(node, dir string) error {
	if err := unix.Sethostname([]byte(node)); err != nil {
		return fmt.Errorf("setting the hostname: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	for _, covered := range []string{"/etc", "/usr", "/var"} {
		if node == second { // the second node starts with a copy of the first node's mounts, including the overlays
			if err := unix.Unmount(covered, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmounting the overlay of %s: %w", covered, err)
			}
		}
		if err := overlay(covered, filepath.Join(dir, "changed", covered)); err != nil {
			return err
		}
	}
	for _, path := range hostNode {
		if err := os.RemoveAll(path); err != nil { // removes the path only in the overlay
			return fmt.Errorf("hiding %s of the host: %w", path, err)
		}
	}
	// kubeadm requests the newest version from dl.k8s.io and continues at once if the
	// connection is refused.
	hosts := fmt.Sprintf("127.0.0.1 localhost dl.k8s.io\n%s %s\n%s %s\n", firstAddress, first, secondAddress, second)
	return errors.Join(os.WriteFile("/etc/hosts", []byte(hosts), 0o644), ip("link", "set", "lo", "up"))
}

// overlay mounts an overlay on the directory lower. Changes are written below the directory that the
// parameter to names.
func overlay(lower, to string) error {
	upper, work := filepath.Join(to, "upper"), filepath.Join(to, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", lower, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("mounting an overlay on %s: %w", lower, err)
	}
	return nil
}

// uplink is the network device of a node, with its address and the default route.
const uplink = "uplink"

func addUplink(address string) error {
	return errors.Join(
		ip("addr", "add", address+"/24", "dev", uplink), ip("link", "set", uplink, "up"), ip("route", "add", "default", "dev", uplink))
}

// enableForwarding enables IP forwarding, which kubeadm's preflight checks require. The stack has
// already saved the initial value for its cleanup.
func enableForwarding() error {
	const file = "/proc/sys/net/ipv4/ip_forward"
	if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == "1" {
		return nil
	}
	return os.WriteFile(file, []byte("1"), 0)
}

// connectSecondNode connects the network namespace of the second node by a veth pair. pid is the
// process ID of the node.
func connectSecondNode(pid int) error {
	const name = "second"
	return errors.Join(
		ip("link", "add", name, "type", "veth", "peer", "name", uplink, "netns", strconv.Itoa(pid)),
		ip("link", "set", name, "up"), ip("route", "add", secondAddress, "dev", name, "src", firstAddress))
}

// waitForUplink waits up to a minute until the node is connected.
func waitForUplink() error {
	for range 600 {
		if ip("link", "show", uplink) == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("waited 1m for link %s: got none", uplink)
}

func ip(words ...string) error {
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}
