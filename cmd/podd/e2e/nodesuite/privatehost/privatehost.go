// Package privatehost runs a program as if it had a host of its own. The program may use fixed
// paths, ports and cgroups without an effect on the real host, and nothing that it starts outlives
// it:
//
//	program ── Run ──▶ init, process 1 of new namespaces ──▶ the same program, with the same arguments
//
// The namespaces are those of mounts, processes, network, cgroups, hostname and IPC. In them, /run
// is empty; /etc, /usr and /var are overlays; and /tmp, /var/lib/kubelet and /var/log/pods are
// empty directories on a disk that is a file on the real host. All cgroups are below one cgroup of the
// real host. The network has a loopback device and one device with an address, and no connection to the
// outside.
//
// Several private hosts can exist at once. They share the memory of the real host, its huge pages, its
// process IDs, its devices and the sysctls that have no namespace.
//
// If the caller of Run is killed, the kernel kills all processes in the namespaces. Then the mounts
// and the network no longer exist. The next call of Run removes the files and the cgroups.
package privatehost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/child"
)

// Paths in the namespaces: Root is the directory that Run passes to prepare, and Disk the root of
// the disk.
const (
	Root = "/mnt"
	Disk = Root + "/disk"
)

// stageEnv is the environment variable with the stage of this process. It is not set in the
// process that calls Run.
const stageEnv = "PODD_PRIVATE_HOST"

// Stages of a process in the namespaces.
const (
	initStage    = "init"
	programStage = "program"
)

// IsInside reports whether this process runs in the namespaces.
func IsInside() bool { return os.Getenv(stageEnv) == programStage }

// Run runs this program in new namespaces and returns its exit code. Before that, it calls prepare
// on the real host with the path of an empty directory. Run removes the directory at the end.
func Run(prepare func(ctx context.Context, dir string) error) (exitCode int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := reservePlace()
	if err != nil {
		return 1, fmt.Errorf("preparing the private host: %w", err)
	}
	defer func() { err = errors.Join(err, p.release()) }()
	if err := prepare(ctx, p.dir); err != nil {
		return 1, err
	}
	cmd, err := start(ctx, p)
	if err != nil {
		return 1, fmt.Errorf("starting the private host: %w", err)
	}
	err = cmd.Wait()
	if end := (&exec.ExitError{}); errors.As(err, &end) {
		return max(end.ExitCode(), 1), ctx.Err()
	}
	return 0, err
}

// start starts init in new namespaces. The cgroups in which this process is at the start become the
// roots of the cgroup namespace. Therefore this process moves to the new cgroups before the start, and
// moves back after it.
func start(ctx context.Context, p place) (*exec.Cmd, error) {
	leave, err := enterCgroups(p.cgroup)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), stageEnv+"="+initStage, dirEnv+"="+p.dir, "TMPDIR=/tmp") // the real one may not exist in the namespaces
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	err = child.Start(cmd)
	return cmd, errors.Join(err, leave())
}
