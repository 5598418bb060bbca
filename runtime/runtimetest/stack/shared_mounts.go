package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
	"podd/runtime/runtimetest/stack/tools"
)

// ShareMounts makes mounts with propagation possible for tests on CRI-O. CRI-O rejects such mounts
// if the root mount is not shared. In this case, ShareMounts runs the calling test program again in
// a new mount namespace in which all mounts are shared. The test program and CRI-O must be in the
// same namespace. hasRun reports whether the tests have run in the new namespace. If hasRun is
// true, code is their exit code. If hasRun is false, this process must run the tests. TestMain must
// call ShareMounts first.
func ShareMounts() (code int, hasRun bool, err error) {
	if tools.Flavor(os.Getenv("RUNTIME")) != tools.CRIO || os.Geteuid() != 0 {
		return 0, false, nil
	}
	const mountNamespaceEnv = "PODD_STACK_SHARES_MOUNTS"
	if os.Getenv(mountNamespaceEnv) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
			return 0, false, fmt.Errorf("making all mounts of the namespace shared: %w", err)
		}
		return 0, false, nil
	}
	root, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter("/"))
	if err != nil {
		return 0, false, fmt.Errorf("reading the propagation of the root mount: %w", err)
	}
	if len(root) > 0 && root[0].Optional != "" {
		return 0, false, nil
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), mountNamespaceEnv+"=yes")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	exit := (*exec.ExitError)(nil)
	if err := child.Run(cmd); err != nil && !errors.As(err, &exit) {
		return 0, false, fmt.Errorf("starting the tests in a mount namespace: %w", err)
	}
	return cmd.ProcessState.ExitCode(), true, nil
}
