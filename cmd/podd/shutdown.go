package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"podd/server"
)

// ShutdownCmd is podd shutdown.
type ShutdownCmd struct {
	Client
	Grace  time.Duration `placeholder:"DURATION" help:"What all pods together get, in place of the configured shutdownGracePeriod."`
	Cancel bool          `help:"The machine does not go down after all: run the pods again."`
}

// Help is what the machine's own way down has to do with it.
func (c *ShutdownCmd) Help() string {
	return `With shutdownGracePeriod in its configuration podd has systemd's logind wait, and does this by itself. Elsewhere have podd's unit file do it, but not when podd alone is stopped:

    ExecStop=/bin/sh -c 'systemctl is-system-running | grep -q stopping && exec podd shutdown || :'
    TimeoutStopSec=5min

No pod starts until the machine has booted, or podd shutdown --cancel. With the systemd cgroup driver only logind's way is orderly: systemd ends containers itself.`
}

// Validate refuses what makes no sense.
func (c *ShutdownCmd) Validate() error {
	switch {
	case c.Grace < 0:
		return fmt.Errorf("--grace: %s is negative", c.Grace)
	case c.Cancel && c.Grace > 0:
		return errors.New("--grace is of no use with --cancel")
	}
	return nil
}

// Run ends every pod of the podd that answers and returns when all have ended.
func (c *ShutdownCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if c.Cancel {
		if err = p.resume(ctx); err == nil {
			fmt.Fprintln(s.Err, "podd: the shutdown is cancelled; pods run again")
		}
		return err
	}
	t := toll{begin: time.Now()}
	err = p.shutdown(ctx, c.Grace, func(d *server.Down) { io.WriteString(s.Err, t.add(d)) })
	if err == nil {
		fmt.Fprintf(s.Err, "podd: %s\n", t.summary(staysOut))
	}
	return err
}

// staysOut is what podd does after all have ended.
const staysOut = "; none is started until the machine has booted, or podd shutdown --cancel"
