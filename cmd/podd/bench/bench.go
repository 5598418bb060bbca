package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/cmd/podd/e2e/harness"
	"podd/cmd/podd/e2e/kubelet"
	"podd/runtime/runtimetest/stack"
)

// bench contains the state that all parts of the measurement share. It is not safe for
// concurrent use.
type bench struct {
	options
	dir         string
	stack       *stack.Stack
	bareRunner  *bareRunner
	daemon      *daemon
	starts      *startRecorder
	tasks       *taskWatcher
	calls       *callCounter
	cluster     *cluster // nil until the cluster is started
	table       table
	podsCreated int // number of pods that newPods has returned; the name of a pod contains its number
}

// newBench starts the runtime, and prepares podd and the bare CRI calls (the floor). The caller must
// call close, which stops and removes everything.
func newBench(ctx context.Context, o options) (b *bench, err error) {
	b = &bench{options: o, dir: o.Keep}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "podd-"); err != nil {
			return b, err
		}
	}
	if b.calls, err = newCallCounter(); err != nil {
		return b, err
	}
	printProgress("stack", "starting containerd and loading images")
	b.stack, err = stack.Start(ctx, stack.Options{
		Dir: filepath.Join(b.dir, "s"), Masquerade: true, Config: b.calls.containerdConfig(), Log: slog.Default(),
	})
	if err != nil {
		return b, err
	}
	if b.starts, err = newStartRecorder(filepath.Join(b.dir, "started")); err != nil {
		return b, err
	}
	if b.tasks, err = newTaskWatcher(filepath.Join(b.stack.Dir, tasksDir)); err != nil {
		return b, err
	}
	if b.bareRunner, err = newBareRunner(ctx, b); err != nil {
		return b, err
	}
	if b.Podd == "" {
		printProgress("podd", "building")
		b.Podd = filepath.Join(b.dir, "podd")
		if err := harness.BuildPodd(ctx, b.Podd); err != nil {
			return b, err
		}
	}
	if b.daemon, err = newDaemon(b); err != nil {
		return b, err
	}
	info, err := os.Stat(b.Podd)
	if err != nil {
		return b, err
	}
	b.table.add(row{name: "binary", unit: megabytes, podd: samples{float64(info.Size())}})
	return b, nil
}

// close stops everything that newBench has started, also after an error of newBench.
func (b *bench) close() error {
	var errs []error
	if b.daemon != nil {
		errs = append(errs, b.daemon.stop())
	}
	if b.bareRunner != nil {
		errs = append(errs, b.bareRunner.client.Close())
	}
	if b.tasks != nil {
		errs = append(errs, b.tasks.close())
	}
	if b.starts != nil {
		errs = append(errs, b.starts.close())
	}
	if b.stack != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		errs = append(errs, b.stack.Destroy(ctx))
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.close())
	}
	if b.daemon != nil {
		kubelet.Unmount(b.daemon.dir) // podd has mounts if it was stopped before it removed its pods
	}
	if b.Keep == "" && b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// printProgress prints a line on standard error.
func printProgress(what, text string) { fmt.Fprintf(os.Stderr, "%-8s%s\n", what, text) }

// sleep waits for d, so that the host finishes the work of the previous round. It returns an
// error if ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
