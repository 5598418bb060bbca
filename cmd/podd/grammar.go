package main

import (
	"errors"
	"fmt"
	"time"

	"podd/cmd/podd/internal/config"
)

// RunCmd is podd run, and podd alone.
type RunCmd struct {
	config.Flags
	Files   []string      `arg:"" optional:"" name:"file" help:"With --runonce: manifests to run instead of the sources'; - is stdin." complete:"file"`
	Env     []string      `group:"With --runonce" short:"e" sep:"none" placeholder:"K=V" help:"Variable for every container; repeatable."`
	EnvFile []string      `group:"With --runonce" sep:"none" placeholder:"FILE" help:"Variables, one K=V a line; repeatable."`
	Timeout time.Duration `group:"With --runonce" placeholder:"DURATION" help:"End the run with code 124 when it takes longer."`
	Report  string        `group:"With --runonce" placeholder:"FILE" help:"Write the result as JUnit (.xml) or JSON (.json)."`
}

func (c *RunCmd) kubelet() *config.Flags { return &c.Flags }

// Validate refuses what only a run to completion understands.
func (c *RunCmd) Validate() error {
	once := c.RunOnce != nil && *c.RunOnce
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("--timeout: %s is negative", c.Timeout)
	case once:
		return nil
	case len(c.Files) > 0:
		return fmt.Errorf("%q: files are run with --runonce; to run and follow them, use --pod-manifest-path", c.Files[0])
	case len(c.Env)+len(c.EnvFile) > 0:
		return errors.New("-e and --env-file need --runonce")
	case c.Timeout != 0 || c.Report != "":
		return errors.New("--timeout and --report need --runonce")
	}
	return nil
}

// PlanCmd is podd plan; it takes podd run's flags, to find the same sources
// and runtime. Beside a podd that runs, its sources are those.
type PlanCmd struct {
	config.Flags
	Targets []string `arg:"" optional:"" name:"pod|file" help:"Pods by name, or manifests: what these would change if podd read them too. Every pod of the sources when none is named." complete:"pod,file"`
}

// VolumeCmd is podd volume; it takes podd run's flags, to know what is wanted where
// no podd runs.
type VolumeCmd struct {
	config.Flags
	Action string   `arg:"" enum:"ls,rm" help:"ls lists them, rm removes the named ones."`
	Output string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"With ls: json or yaml."`
	Claims []string `arg:"" optional:"" name:"claim" help:"Claims, as NAMESPACE/NAME, or NAME in default." complete:"claim"`
}

func (c *VolumeCmd) kubelet() *config.Flags { return &c.Flags }

// Validate refuses what would remove nothing.
func (c *VolumeCmd) Validate() error {
	if c.Action == "rm" && len(c.Claims) == 0 {
		return errors.New("name what to remove; podd volume ls lists the claims")
	}
	if c.Action == "rm" && c.Output != "" {
		return errors.New("-o is of podd volume ls")
	}
	return nil
}

func (c *PlanCmd) kubelet() *config.Flags { return &c.Flags }
