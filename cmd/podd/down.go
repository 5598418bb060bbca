package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"podd/server"
)

// DownCmd is podd down.
type DownCmd struct {
	Client
	Timeout time.Duration `placeholder:"DURATION" help:"Give up waiting after this long; without it, the pods' own grace is waited for."`
}

// Help is how a machine goes from podd to a kubelet.
func (c *DownCmd) Help() string {
	return `Before a kubelet is to have the machine, while podd runs:

    podd down && systemctl stop podd && systemctl start kubelet

A kubelet goes on with the pods that it ran before, which podd --adopt started anew under the UIDs it gave them, and with the cluster's pods. What podd ran first, or was edited since, would run twice: a kubelet gives pods of files and URLs UIDs of its own, and starts its own before it ends those that it does not know. A metadata.uid in the manifest spares that.`
}

// Run ends every pod of the podd that answers and returns when none is left.
func (c *DownCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithCancel(ctx)
	if c.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	t := toll{begin: time.Now()}
	err = p.down(limited, func(d *server.Down) { io.WriteString(s.Err, t.add(d)) })
	if err == nil {
		fmt.Fprintf(s.Err, "podd: %s\n", t.summary(staysDown))
	} else if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return t.late()
	}
	return err
}

// toll counts the pods that have ended.
type toll struct {
	begin time.Time
	ended int
	left  []server.Key
}

// add takes what podd told and returns a line for every pod gone.
func (t *toll) add(d *server.Down) string {
	t.ended, t.left = t.ended+len(d.Gone), d.Left
	var b strings.Builder
	for _, k := range d.Gone {
		fmt.Fprintf(&b, "%s stopped after %s\n", k, lasted(time.Since(t.begin)))
	}
	return b.String()
}

// staysDown is what podd does after all have ended.
const staysDown = "; podd goes on and starts nothing until it is started again"

// summary is the last line when all have ended, with what podd does then.
func (t *toll) summary(then string) string {
	if t.ended == 0 {
		return "no pods ran" + then
	}
	return plural(t.ended, "pod") + " stopped in " + lasted(time.Since(t.begin)) + then
}

// late is the error when the user's patience ended first.
func (t *toll) late() error {
	names := "the pods"
	if len(t.left) > 0 {
		names = joined(t.left)
	}
	return fmt.Errorf("waited %s, still stopping: %s; podd goes on, podd ps shows it", lasted(time.Since(t.begin)), names)
}
