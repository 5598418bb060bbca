package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon"
	"podd/cmd/podd/internal/dynconfig"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/lockfile"
	"podd/cmd/podd/internal/logging"
	"podd/cmd/podd/internal/runonce"
	"podd/cmd/podd/internal/wiring"
)

// minTrial is the minimum of --dynamic-config-trial. In a shorter time, podd may not have noticed that the
// runtime is unreachable.
const minTrial = 20 * time.Second

// defaultTrial is the default of --dynamic-config-trial.
const defaultTrial = 10 * time.Minute

// runCmd is the verb "podd run", which is the default if the command line contains no verb.
type runCmd struct {
	config.Flags
	Files   []string      `arg:"" optional:"" name:"file" help:"With --runonce: manifests to run instead of those of the sources. Use - for stdin." complete:"file"`
	Env     []string      `group:"With --runonce" short:"e" sep:"none" placeholder:"K=V" help:"Environment variable to set in every container. May be repeated."`
	EnvFile []string      `group:"With --runonce" sep:"none" placeholder:"FILE" help:"Read environment variables from a file, one K=V per line. May be repeated."`
	Timeout time.Duration `group:"With --runonce" placeholder:"DURATION" help:"Stop the pods and exit with code 124 after this duration."`
	Report  string        `group:"With --runonce" placeholder:"FILE" help:"Write the result to a file as JUnit (.xml) or JSON (.json)."`
}

// KubeletFlags returns the flags of "podd run". parse adds the flags that only the kubelet has.
func (c *runCmd) KubeletFlags() *config.Flags { return &c.Flags }

// Validate returns an error for a negative timeout. Without --runonce, it also returns an error for
// arguments and flags that need --runonce. Package commandline calls Validate after parsing.
func (c *runCmd) Validate(*kong.Context) error {
	once := c.RunOnce != nil && *c.RunOnce
	switch {
	case c.DynamicConfigDir == "" && c.DynamicConfigTrial != defaultTrial:
		return errors.New("--dynamic-config-trial needs --dynamic-config-dir")
	case c.DynamicConfigDir != "" && c.DynamicConfigTrial < minTrial:
		return fmt.Errorf("--dynamic-config-trial: %s is too short; must be at least %s", c.DynamicConfigTrial, minTrial)
	case c.DynamicConfigDir != "" && once:
		return errors.New("--dynamic-config-dir cannot be used together with --runonce")
	case c.Timeout < 0:
		return fmt.Errorf("--timeout: %s is negative", c.Timeout)
	case once:
		return nil
	case len(c.Files) > 0:
		return fmt.Errorf("%q: file arguments need --runonce; to run a file and apply its changes, use --pod-manifest-path", c.Files[0])
	case len(c.Env)+len(c.EnvFile) > 0:
		return errors.New("-e and --env-file need --runonce")
	case c.Timeout != 0 || c.Report != "":
		return errors.New("--timeout and --report need --runonce")
	}
	return nil
}

// Run runs pods until ctx is done or, with --runonce, until the run has ended. Without --runonce,
// the pods keep running after podd has stopped.
func (c *runCmd) Run(ctx context.Context, s iostreams.Streams) error {
	if c.DynamicConfigDir != "" {
		return c.runDynamic(ctx, s)
	}
	cfg, warnings, err := config.LoadForHost(c.Flags)
	if err != nil || cfg.RunOnce {
		logging.WriteWarnings(s.Err, &cfg.Logging, warnings)
	}
	switch {
	case err != nil && c.RunOnce != nil && *c.RunOnce:
		return exit.NewError(exit.Internal, err)
	case err != nil:
		return err
	case cfg.RunOnce:
		once := runonce.Command{Files: c.Files, Env: c.Env, EnvFiles: c.EnvFile, Timeout: c.Timeout, ReportPath: c.Report}
		return once.Run(ctx, &cfg, s)
	}
	return daemon.Run(ctx, daemon.Options{Config: &cfg, Warnings: warnings, Version: thisVersion().Version, Stdout: s.Out, Stderr: s.Err})
}

// runDynamic runs pods until ctx is done, and follows changes of the configuration.
func (c *runCmd) runDynamic(ctx context.Context, s iostreams.Streams) error {
	version := thisVersion().Version
	log, _ := logging.New(logging.Streams{Errors: s.Err}, &config.Logging{LogFormat: "text"}, slog.LevelInfo)
	lock := lockfile.Options{Path: c.LockFile, ExitOnContention: c.ExitOnLockContention, Log: log}
	return wiring.IgnoreCanceled(lockfile.Hold(ctx, lock, func(ctx context.Context) error {
		return dynconfig.Run(ctx, dynconfig.Options{Flags: c.Flags, Version: version,
			Start: func(ctx context.Context, cfg *config.Config, warnings []config.Warning, link *dynconfig.Link) error {
				return daemon.Run(ctx, daemon.Options{Config: cfg, Warnings: warnings, Version: version, Link: link, Stdout: s.Out, Stderr: s.Err})
			},
		})
	}))
}
