package host

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/runtime/runtimetest/child"
)

// TestSystemInfo_UserNamespace checks that the Node reports whether podd runs in a user namespace,
// unless the feature gate KubeletInUserNamespace is false. The test runs itself in a new user namespace.
func TestSystemInfo_UserNamespace(t *testing.T) {
	const marker = "PODD_TEST_USER_NAMESPACE"
	if os.Getenv(marker) != "" {
		if got := SystemInfo(&config.Node{}).RunningInUserNamespace; got == nil || !*got {
			t.Errorf("got %v, want true", got)
		}
		return
	}
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(strings.Fields(string(uidMap)), " ") != "0 0 4294967295" // the map of the initial user namespace
	if got := SystemInfo(&config.Node{}).RunningInUserNamespace; got == nil || *got != want {
		t.Errorf("got %v, want %t", got, want)
	}
	if got := SystemInfo(&config.Node{HidesUserNamespace: true}).RunningInUserNamespace; got != nil {
		t.Errorf("with HidesUserNamespace: got %t, want nil", *got)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}}
	out, err := child.CombinedOutput(cmd)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a user namespace: %v\n%s", err, out)
	}
}
