//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutInotifyEnv is an environment variable. If it is set, the test binary runs no tests, but
// replaces itself with the program in its arguments; see execWithoutInotify.
const withoutInotifyEnv = "PODD_E2E_WITHOUT_INOTIFY"

// withoutInotify returns a command that runs cmd as if all inotify instances of its user were in
// use. A seccomp filter returns the error that the kernel returns in this case. The function does not
// really use all instances, because this would affect every process of root on the host.
func withoutInotify(t testing.TB, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := exec.Command(self, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	launcher.Env = append(os.Environ(), withoutInotifyEnv+"=1")
	return launcher
}

// execWithoutInotify replaces this process with the program in args. It returns only after an
// error.
func execWithoutInotify(args []string) error {
	goruntime.LockOSThread() // the filter applies to a thread
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_INOTIFY_INIT1, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EMFILE)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("filtering system calls: %w", err)
	}
	if _, err := unix.InotifyInit1(0); !errors.Is(err, unix.EMFILE) {
		return fmt.Errorf("making an inotify instance: got error %v, want EMFILE", err)
	}
	if err := os.Unsetenv(withoutInotifyEnv); err != nil {
		return err
	}
	return fmt.Errorf("starting %s: %w", args[0], unix.Exec(args[0], args, os.Environ()))
}
