package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/reservation"
)

// A process is a running process. It has a pidfd, so that a signal is never sent to a later process
// with the same process ID.
type process struct {
	fd     *os.File
	pid    int
	reaped chan struct{} // closed when the process was reaped; nil if it is not a child of this process
}

// launch starts the runtime in a new session, so that ^C in this process's terminal does not reach
// the runtime. It also starts a goroutine that waits until the runtime exits and then reaps the
// runtime.
func (s *Stack) launch() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the runtime's log: %w", err)
	}
	defer log.Close()
	cmd := s.containerdCommand()
	if s.isCRIO() {
		cmd = s.crioCommand()
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.Program(), err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait() // the exit status is not needed
	}()
	owner, err := reservation.FindProcess(cmd.Process.Pid)
	if err == nil {
		s.Daemon = owner
		s.process, err = openProcess(owner)
	}
	if err != nil {
		return fmt.Errorf("starting %s: %w; its log %s ends with: %s", s.Program(), err, s.logFile(), s.logTail())
	}
	s.process.reaped = reaped
	return s.saveState()
}

// containerdCommand returns the command that starts containerd. The PATH makes containerd find
// the shim in the same directory.
func (s *Stack) containerdCommand() *exec.Cmd {
	cmd := exec.Command(s.Tools.Containerd, "--config", configIn(s.Dir, s.Tools.Flavor))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(s.Tools.Containerd)+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd
}

// openProcess opens the pidfd of a process. The error is fs.ErrNotExist if the process has
// exited.
func openProcess(owner reservation.Owner) (*process, error) {
	fd, err := unix.PidfdOpen(owner.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("opening process %d of the stack: %w", owner.PID, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("opening process %d of the stack: %w", owner.PID, err)
	}
	p := &process{fd: os.NewFile(uintptr(fd), "pidfd"), pid: owner.PID}
	if !owner.IsAlive() { // owner has exited, and the pidfd may be that of a later process
		p.close()
		return nil, fmt.Errorf("opening process %d of the stack: %w", owner.PID, fs.ErrNotExist)
	}
	return p, nil
}

// signal sends a signal. It is not an error if the process has exited.
func (p *process) signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(int(p.fd.Fd()), sig, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", unix.SignalName(sig), p.pid, err)
	}
	return nil
}

// wait waits until the process has exited and, if it is a child of this process, has been
// reaped.
func (p *process) wait(ctx context.Context) error {
	for {
		// Poll needs a timeout, because otherwise the loop could not check ctx.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd.Fd()), Events: unix.POLLIN}}, int((50 * time.Millisecond).Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the exit of process %d: %w", p.pid, err)
		}
		if n > 0 {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the exit of process %d: %w", p.pid, ctx.Err())
		}
	}
	if p.reaped != nil {
		<-p.reaped
	}
	return nil
}

// terminate sends sig. If the process has not exited when the duration grace has passed, terminate
// kills the process.
func (p *process) terminate(ctx context.Context, sig unix.Signal, grace time.Duration) error {
	if err := p.signal(sig); err != nil {
		return err
	}
	graceful, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.wait(graceful) == nil {
		return nil
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		return err
	}
	return p.wait(ctx)
}

// close closes the pidfd. It ignores errors.
func (p *process) close() { _ = p.fd.Close() }
