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

	"podd/runtime/oomscore"
	"podd/runtime/safepath"
)

// errTimeout is the error of a program or call that exceeded its timeout.
var errTimeout = errors.New("no response before the timeout")

// killTimeout is the maximum time to wait until a killed program has exited.
const killTimeout = 2 * time.Second

// runProgram runs a program that may hang in the kernel because a server does not respond. It
// returns the first messageLimit bytes of the program's output. The error is errTimeout after limit,
// and the cause of ctx when ctx is done. In both cases the program is killed. The program gets dir,
// unless dir is nil, as its file descriptor 3.
//
// A killed program does not exit while it hangs in the kernel. In this case runProgram returns
// nevertheless, and the caller must get the result from the mount table. The goroutine that waits
// for the program continues until the program exits.
func runProgram(ctx context.Context, limit time.Duration, dir *safepath.Dir, name string, args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	outputFile, err := newMemFile()
	if err != nil {
		return "", err
	}
	defer outputFile.Close()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	// outputFile is a file, not a pipe, so that no goroutine copies the output.
	cmd.Stdout, cmd.Stderr = outputFile, outputFile
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if dir != nil {
		fd, err := unix.FcntlInt(uintptr(dir.Fd()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		f := os.NewFile(uintptr(fd), dir.Path())
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
	}
	if err := oomscore.Start(cmd); err != nil {
		return "", err
	}
	waitResult := make(chan error, 1)
	go func() { waitResult <- cmd.Wait() }()
	select {
	case err = <-waitResult:
	case <-ctx.Done():
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // ignore an error, because Kill fails if the program has exited
		select {
		case <-waitResult:
		case <-time.After(killTimeout):
		}
		return "", context.Cause(ctx)
	}
	text := make([]byte, messageLimit)
	n, readErr := outputFile.ReadAt(text, 0)
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		err = errors.Join(err, fmt.Errorf("reading the output of %s: %w", name, readErr))
	}
	return string(text[:n]), err
}

// newMemFile returns a new file in memory.
func newMemFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "output"), nil
}
