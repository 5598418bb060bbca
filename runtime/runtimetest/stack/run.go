package stack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Restart starts containerd, if it does not run, and waits until its runtime
// and network are ready, at most a minute. Pods that ran on are still there.
func (s *Stack) Restart(ctx context.Context) error {
	if s.Running() {
		return nil
	}
	if err := s.halt(ctx, unix.SIGKILL); err != nil { // it died by itself
		return err
	}
	begin := time.Now()
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("waiting for containerd: %w; the end of %s: %s", err, s.LogFile(), s.logTail())
	}
	s.Took.Ready = time.Since(begin)
	return nil
}

// Stop ends containerd as an upgrade would. Pods run on.
func (s *Stack) Stop(ctx context.Context) error { return s.halt(ctx, unix.SIGTERM) }

// Kill ends containerd as a crash would. Pods run on.
func (s *Stack) Kill(ctx context.Context) error { return s.halt(ctx, unix.SIGKILL) }

func (s *Stack) halt(ctx context.Context, sig unix.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.end(ctx, sig, 10*time.Second); err != nil {
		return fmt.Errorf("ending containerd: %w", err)
	}
	s.process.close()
	s.process = nil
	return nil
}

// logTail is the end of containerd's log, for errors.
func (s *Stack) logTail() string {
	data, err := os.ReadFile(s.LogFile())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data[max(0, len(data)-1500):]))
}
