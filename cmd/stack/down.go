package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"podd/runtime/runtimetest/stack"
)

type downCmd struct {
	Dir string `default:".run" help:"Directory with the files of the runtime and of podd."`
}

// Run removes the stack. It succeeds if there is no stack.
func (d downCmd) Run(ctx context.Context) error {
	startTime := time.Now()
	s, err := stack.Open(d.Dir, slog.Default())
	if errors.Is(err, fs.ErrNotExist) {
		printStep("down", "no runtime in "+d.Dir, 0)
		return stack.Reap(ctx, slog.Default())
	}
	if err != nil {
		return err
	}
	p, err := newWorkDir(d.Dir)
	if err != nil {
		return err
	}
	p.cgroup = s.CgroupParent()
	lock, err := p.stopAndLock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.Restart(ctx); err != nil {
		return err
	}
	if err := p.removePods(ctx); err != nil {
		return err
	}
	if err := s.Destroy(ctx); err != nil {
		return err
	}
	if err := p.removeState(); err != nil {
		return err
	}
	printStep("down", fmt.Sprintf("pods, container runtime and network of %s removed; %s kept", relativePath(s.Dir), relativePath(p.manifestDir())), time.Since(startTime))
	return nil
}
