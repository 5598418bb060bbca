package stack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Restart starts the runtime if it is not running, and waits at most one minute until the runtime
// and its network are ready. Running pods are not affected.
func (s *Stack) Restart(ctx context.Context) error {
	if s.IsRunning() {
		return nil
	}
	if err := s.stopRuntime(ctx, unix.SIGKILL); err != nil { // stopRuntime resets the state of the runtime that has exited
		return err
	}
	begin := time.Now()
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.waitUntilReady(ctx); err != nil {
		return fmt.Errorf("waiting until %s is ready: %w; its log %s ends with: %s", s.Program(), err, s.logFile(), s.logTail())
	}
	s.Durations.Ready = time.Since(begin)
	return nil
}

// WaitForExit waits until the runtime has exited. It returns an error if ctx is done before that. It
// must not be called at the same time as a method that starts or stops the runtime.
func (s *Stack) WaitForExit(ctx context.Context) error {
	if s.process == nil {
		return nil
	}
	return s.process.wait(ctx)
}

// Stop stops the runtime with SIGTERM, as during an upgrade. Pods keep running.
func (s *Stack) Stop(ctx context.Context) error { return s.stopRuntime(ctx, unix.SIGTERM) }

// Kill kills the runtime with SIGKILL, as if it crashed. Pods keep running.
func (s *Stack) Kill(ctx context.Context) error { return s.stopRuntime(ctx, unix.SIGKILL) }

// Pause suspends the runtime's process, which does not respond until Resume is called.
func (s *Stack) Pause() error { return s.process.signal(unix.SIGSTOP) }

// Resume continues a runtime that Pause has suspended.
func (s *Stack) Resume() error { return s.process.signal(unix.SIGCONT) }

// stopRuntime stops the runtime with sig. It does nothing if the runtime has not been started.
func (s *Stack) stopRuntime(ctx context.Context, sig unix.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.terminate(ctx, sig, 10*time.Second); err != nil {
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
