// Package oomscore sets the oom_score_adj of podd. The lower this value, the less likely the kernel
// kills the process when the host is out of memory. See proc_pid_oom_score_adj(5).
//
// A process inherits the value of the process that starts it. Therefore podd starts programs with
// Start, so that only podd is protected.
//
// The package imports only the standard library, so that all packages can import it.
package oomscore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// procDir is the mount point of the proc file system.
const procDir = "/proc"

// Set sets the oom_score_adj of this process. It fails if the value must be lowered and the process
// does not have the capability CAP_SYS_RESOURCE.
func Set(value int) error { return set(procDir, value) }

func set(proc string, value int) error {
	current, err := read(proc)
	if err != nil || current == value {
		return err
	}
	err = write(proc, "self", value)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("changing oom_score_adj from %d to %d: podd needs the capability CAP_SYS_RESOURCE", current, value)
	}
	return err
}

// Start starts a program. If the oom_score_adj of this process is negative, Start sets that of the
// program to 0. It ignores errors when it sets the value, because the program may have exited.
func Start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = resetChild(procDir, cmd.Process.Pid)
	return nil
}

// Run starts a program as Start does, and waits until the program exits.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// resetChild sets the oom_score_adj of a process to 0 if it has inherited a negative value.
func resetChild(proc string, pid int) error {
	inherited, err := read(proc)
	if err != nil || inherited >= 0 {
		return err
	}
	return write(proc, strconv.Itoa(pid), 0)
}

// read returns the oom_score_adj of this process.
func read(proc string) (int, error) {
	text, err := os.ReadFile(filepath.Join(proc, "self", "oom_score_adj"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// write sets the oom_score_adj of a process.
func write(proc, process string, value int) error {
	f, err := os.OpenFile(filepath.Join(proc, process, "oom_score_adj"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(value))
	return errors.Join(err, f.Close())
}
