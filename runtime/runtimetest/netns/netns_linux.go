// Package netns moves a test to a separate network namespace, so that addresses, links and
// routes can change without an effect on the host.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// init locks the main goroutine to the main thread, so that Enter cannot move the main thread to
// another namespace. The main thread would stay in that namespace, because it does not exit with a
// goroutine, and /proc/self and /proc/net show the namespaces of the main thread.
func init() { runtime.LockOSThread() }

// Enter moves the calling goroutine to a new network namespace and returns the path of the
// namespace. It must be called by the test's own goroutine. The namespace contains the connected
// interfaces uplink and wire. Only the loopback interface has addresses.
//
// Programs that the goroutine starts, and sockets that it creates, are in the namespace. Other
// goroutines stay in the namespace of the host. The namespace is removed when the test and these
// programs have ended.
func Enter(t *testing.T) string {
	t.Helper()
	runtime.LockOSThread() // never unlocked, so that the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	RunIP(t, "link set lo up")
	RunIP(t, "link add uplink type veth peer name wire")
	RunIP(t, "link set uplink up")
	RunIP(t, "link set wire up")
	return fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
}

// RunIP runs the program ip with the given arguments, which are separated by spaces, in the
// namespace of the calling goroutine.
func RunIP(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}
