// Package child starts processes that the kernel kills when the program that started them exits.
//
// The kernel sends the parent-death signal (prctl(2), PR_SET_PDEATHSIG) when the thread that started
// the process exits, not when its program exits. Therefore this package starts each process on a
// thread that lives as long as the process.
package child

import (
	"bytes"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts cmd as [exec.Cmd.Start] does. When this program exits, the kernel sends SIGKILL to the
// process, or the signal in cmd.SysProcAttr.Pdeathsig if it is set. The caller must call cmd.Wait.
// The process does not inherit attributes of the calling thread, such as its namespaces.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		var pid int
		if err == nil {
			pid = cmd.Process.Pid
		}
		started <- err
		if pid != 0 {
			blockUntilExit(pid)
		}
	}()
	return <-started
}

// blockUntilExit blocks until a child process has exited. It leaves the exit status to cmd.Wait.
func blockUntilExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// Run starts cmd as Start does and waits until the process has exited. Its error is that of
// [exec.Cmd.Run].
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// CombinedOutput runs cmd as Run does and returns its standard output and standard error.
func CombinedOutput(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := Run(cmd)
	return out.Bytes(), err
}
