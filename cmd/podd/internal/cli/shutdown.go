package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/server"
)

// ShutdownCmd is the podd shutdown command.
type ShutdownCmd struct {
	client.Flags
	Grace  time.Duration `placeholder:"DURATION" help:"Time in which all pods must stop, instead of the configured shutdownGracePeriod."`
	Cancel bool          `help:"Cancel a pending shutdown and run the pods again."`
}

// Help describes podd shutdown on a host with systemd.
func (c *ShutdownCmd) Help() string {
	return `If podd's configuration file sets shutdownGracePeriod, podd delays the shutdown with an inhibitor lock of systemd-logind and stops the pods itself. Otherwise, add these lines to podd's unit file. They stop the pods when the node shuts down, but not when only podd is stopped:

    ExecStop=/bin/sh -c 'systemctl is-system-running | grep -q stopping && exec podd shutdown || :'
    TimeoutStopSec=5min

No pod starts before the next boot, unless you run "podd shutdown --cancel". With the systemd cgroup driver, set shutdownGracePeriod: without it, systemd stops the containers in no particular order.`
}

// Validate rejects flags that contradict each other.
func (c *ShutdownCmd) Validate(*kong.Context) error {
	switch {
	case c.Grace < 0:
		return fmt.Errorf("--grace: %s is negative", c.Grace)
	case c.Cancel && c.Grace > 0:
		return errors.New("--grace has no effect with --cancel")
	}
	return nil
}

// Run stops all pods of the running podd and returns when all have stopped. With --cancel, Run
// cancels a shutdown instead.
func (c *ShutdownCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	if c.Cancel {
		if err = p.CancelShutdown(ctx); err == nil {
			fmt.Fprintln(s.Err, "podd: shutdown cancelled; the pods start again")
		}
		return err
	}
	t := stopProgress{startTime: time.Now()}
	err = p.Shutdown(ctx, c.Grace, func(d *server.StopProgress) { io.WriteString(s.Err, t.add(d)) })
	if err == nil {
		fmt.Fprintf(s.Err, "podd: %s\n", t.summary(shutdownNotice))
	}
	return err
}

// shutdownNotice describes the state of podd after podd shutdown.
const shutdownNotice = "; no pod starts before the next boot, unless you run \"podd shutdown --cancel\""
