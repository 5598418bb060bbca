package stack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Restart starts the runtime if it is not running, and waits at most a minute until the runtime
// and its network are ready. Pods keep running.
func (s *Stack) Restart(ctx context.Context) error {
	if s.Running() {
		return nil
	}
	if err := s.halt(ctx, unix.SIGKILL); err != nil { // it exited by itself
		return err
	}
	begin := time.Now()
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("waiting for %s: %w; end of %s: %s", s.Program(), err, s.logFile(), s.logTail())
	}
	s.Took.Ready = time.Since(begin)
	return nil
}

// Stop stops the runtime as an upgrade would. Pods keep running.
func (s *Stack) Stop(ctx context.Context) error { return s.halt(ctx, unix.SIGTERM) }

// Kill kills the runtime as a crash would. Pods keep running.
func (s *Stack) Kill(ctx context.Context) error { return s.halt(ctx, unix.SIGKILL) }

// Pause stops the runtime's process, so that it does not respond until Resume.
func (s *Stack) Pause() error { return s.process.signal(unix.SIGSTOP) }

// Resume continues a paused runtime.
func (s *Stack) Resume() error { return s.process.signal(unix.SIGCONT) }

func (s *Stack) halt(ctx context.Context, sig unix.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.end(ctx, sig, 10*time.Second); err != nil {
		return fmt.Errorf("stopping %s: %w", s.Program(), err)
	}
	s.process.close()
	s.process = nil
	return nil
}

// logTail returns the end of the runtime's log, for errors.
func (s *Stack) logTail() string {
	data, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data[max(0, len(data)-1500):]))
}
