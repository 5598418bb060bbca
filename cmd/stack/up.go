package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

type upCmd struct {
	Dir     string       `default:".run" help:"Directory with the files of the runtime and of podd."`
	Runtime tools.Flavor `env:"RUNTIME" default:"containerd" enum:"containerd,debian,crio" help:"Runtime: containerd (pinned version), debian (containerd 1.6 of Debian) or crio (CRI-O in $$CRIO_DIR or the PATH)."`
}

// Run starts the stack. If the stack is already running, Run prints a message.
func (u upCmd) Run(ctx context.Context) error {
	s, err := stack.Open(u.Dir, slog.Default())
	if errors.Is(err, fs.ErrNotExist) {
		return u.startStack(ctx)
	}
	if err != nil {
		return err
	}
	if s.Tools.Flavor != u.Runtime {
		return fmt.Errorf("starting runtime %s in %s: this directory already contains the runtime %s with its pods; run \"make stop\" first", u.Runtime, u.Dir, s.Tools.Flavor)
	}
	if err := s.Restart(ctx); err != nil {
		return err
	}
	printStep("up", describeStack(s), 0)
	return nil
}

// startStack starts a stack that keeps running when this process exits.
func (u upCmd) startStack(ctx context.Context) error {
	s, err := stack.Start(ctx, stack.Options{Dir: u.Dir, Flavor: u.Runtime, Masquerade: true, Detach: true, Log: slog.Default()})
	if err != nil {
		return err
	}
	printTools(s.Tools, s.Durations)
	printStep("up", describeStack(s), 0)
	return nil
}

// describeStack describes the runtime and what it uses outside its directory.
func describeStack(s *stack.Stack) string {
	return fmt.Sprintf("%s on %s; outside of %s it uses only the bridge %s with the subnet %s", s.Program(), relativePath(s.Socket()), relativePath(s.Dir), s.Reservation.Bridge(), s.Reservation.Subnet)
}

type buildCmd struct {
	Runtime tools.Flavor `env:"RUNTIME" default:"containerd" enum:"containerd,debian,crio" help:"Runtime: containerd (pinned version), debian (containerd 1.6 of Debian) or crio (CRI-O in $$CRIO_DIR or the PATH)."`
}

// Run builds the missing programs and test images.
func (b buildCmd) Run(ctx context.Context) error {
	set, err := tools.Ensure(ctx, tools.Options{Flavor: b.Runtime, Log: slog.Default()})
	if err != nil {
		return err
	}
	printTools(set, stack.StepDurations{})
	return nil
}

// printTools prints the versions of the programs and the durations of the steps.
func printTools(set tools.Set, took stack.StepDurations) {
	runtime := "containerd " + set.Versions.Containerd
	if set.Flavor == tools.CRIO {
		runtime = "CRI-O " + set.Versions.CRIO
	}
	printStep("stack", fmt.Sprintf("%s, runc %s, CNI plugins", runtime, set.Versions.Runc), set.ProgramsTook+took.Ready)
	what := "busybox, web, pause built"
	if took.Images > 0 {
		what += " and loaded"
	}
	printStep("images", what, set.ImagesTook+took.Images)
}

// printStep prints a step and its right-aligned duration. It prints no duration if took is zero.
func printStep(step, what string, took time.Duration) {
	if took == 0 {
		fmt.Printf("%-8s%s\n", step, what)
		return
	}
	fmt.Printf("%-8s%-60s%7s\n", step, what, formatDuration(took))
}

// formatDuration formats a duration in tenths of a second or, from ten seconds, in seconds.
func formatDuration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%.0fs", d.Seconds())
}

// relativePath returns path relative to the working directory if path is below that directory.
// Otherwise it returns path unchanged.
func relativePath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
