package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/safepath"
)

// errSilent is the error of a program that exceeded its time limit.
var errSilent = errors.New("no answer in time")

// killTimeout is how long to wait for a killed program to exit.
const killTimeout = 2 * time.Second

// runProgram runs a program that may hang in the kernel because a server does not respond.
// It returns the beginning of the program's output. The error is errSilent after limit, and
// the cause of ctx when ctx is done. dir is descriptor 3 of the program, unless it is nil.
//
// If the killed program does not exit because it hangs in the kernel, runProgram returns,
// and the caller gets the result from the mount table. Only the goroutine that waits for
// the program outlives the call, because nothing can end it earlier.
func runProgram(ctx context.Context, limit time.Duration, dir *safepath.Dir, name string, args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	out, err := newMemFile()
	if err != nil {
		return "", err
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = out, out // files, so that no goroutine copies the output
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if dir != nil {
		own, err := unix.FcntlInt(uintptr(dir.Fd()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		f := os.NewFile(uintptr(own), dir.Path())
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it may have ended
		select {
		case <-ended:
		case <-time.After(killTimeout):
		}
		return "", context.Cause(ctx)
	}
	text := make([]byte, messageLimit)
	n, readErr := out.ReadAt(text, 0)
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		err = errors.Join(err, fmt.Errorf("reading the output of %s: %w", name, readErr))
	}
	return string(text[:n]), err
}

// newMemFile returns a new file in memory.
func newMemFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "words"), nil
}
