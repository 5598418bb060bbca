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

	"podd/runtime/beneath"
)

// errSilent is the error of a program that took longer than it may.
var errSilent = errors.New("no answer in time")

// killWait is how long a killed program may take to end.
const killWait = 2 * time.Second

// runProgram runs a program that may hang in the kernel on a server that is
// silent. Its error is errSilent after the limit, and what ended ctx after that.
// dir, which may be nil, is its descriptor 3. said is the end of its words.
//
// A program that the kernel does not let go even when it is killed is waited for
// no longer: whatever it still does, the mount table tells. The goroutine that
// reaps it is the only one that outlives its call, for there is nothing that
// could end it before.
func runProgram(ctx context.Context, limit time.Duration, dir *beneath.Dir, name string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	out, err := words()
	if err != nil {
		return "", err
	}
	defer out.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = out, out // files: nobody copies them
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
		case <-time.After(killWait):
		}
		return "", context.Cause(ctx)
	}
	text := make([]byte, messageLimit)
	n, readErr := out.ReadAt(text, 0)
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		err = errors.Join(err, fmt.Errorf("reading what %s said: %w", name, readErr))
	}
	return string(text[:n]), err
}

// words is a file in memory.
func words() (*os.File, error) {
	fd, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "words"), nil
}
