package main

import (
	"context"
	"fmt"
	"time"
)

// A runtimeProcess is the process of a container runtime.
type runtimeProcess interface {
	// Program returns the name of the program.
	Program() string
	// WaitForExit waits until the process has exited.
	WaitForExit(ctx context.Context) error
	// Restart starts the runtime if it is not running, and waits until it is ready.
	Restart(ctx context.Context) error
}

// restartInterval is the minimum interval between two starts of the runtime.
const restartInterval = 5 * time.Second

// superviseRuntime starts the runtime again whenever it exits, until ctx is done. It passes what happens
// to the function print.
func superviseRuntime(ctx context.Context, r runtimeProcess, print func(line string)) {
	for r.WaitForExit(ctx) == nil {
		print(fmt.Sprintf("! %s has exited; starting it again", r.Program()))
		startTime := time.Now()
		switch err := r.Restart(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			print(fmt.Sprintf("! %v; trying again in %s", err, restartInterval))
		default:
			print(fmt.Sprintf("+ %s is running again", r.Program()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(startTime.Add(restartInterval))):
		}
	}
}
