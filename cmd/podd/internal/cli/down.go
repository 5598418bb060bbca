package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// DownCmd is the podd down command.
type DownCmd struct {
	client.Flags
	Timeout time.Duration `placeholder:"DURATION" help:"The length of time to wait before giving up. Default: until all pods have stopped."`
}

// Help describes how to replace podd with a kubelet.
func (c *DownCmd) Help() string {
	return `To replace podd with a kubelet:

    podd down && systemctl stop podd && systemctl start kubelet

Without "podd down", the kubelet runs some static pods twice: it computes its own UIDs for the pods of files and URLs, and starts these pods before it stops pods with unknown UIDs. This affects a pod that podd ran before any kubelet did, or whose manifest has changed since a kubelet ran the pod. It does not affect pods with a metadata.uid in their manifest, pods of a kubelet that podd took over with --adopt, or the pods of a cluster.`
}

// Run stops all pods of the running podd and returns when all have stopped.
func (c *DownCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	waitCtx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	t := stopProgress{startTime: time.Now()}
	err = p.StopPods(waitCtx, func(d *server.StopProgress) { io.WriteString(s.Err, t.add(d)) })
	if err == nil {
		fmt.Fprintf(s.Err, "podd: %s\n", t.summary(downNotice))
	} else if isTimeout(ctx, err) {
		return t.timeoutError()
	}
	return err
}

// stopProgress counts the pods that have stopped.
type stopProgress struct {
	startTime time.Time
	stopped   int
	remaining []server.Key
}

// add applies a progress report and returns a line for every pod that has stopped and for every new
// problem.
func (t *stopProgress) add(d *server.StopProgress) string {
	t.stopped, t.remaining = t.stopped+len(d.Stopped), d.Remaining
	var b strings.Builder
	for _, k := range d.Stopped {
		fmt.Fprintf(&b, "%s stopped after %s\n", k, printer.FormatDuration(time.Since(t.startTime)))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "%s does not stop: %s\n", p.Pod, printer.Escape(p.Reason))
	}
	return b.String()
}

// downNotice describes the state of podd after podd down.
const downNotice = "; podd keeps running, but starts no pods until it is restarted"

// summary returns the number of stopped pods, followed by notice.
func (t *stopProgress) summary(notice string) string {
	if t.stopped == 0 {
		return "no pods to stop" + notice
	}
	return printer.FormatCount(t.stopped, "pod") + " stopped in " + printer.FormatDuration(time.Since(t.startTime)) + notice
}

// timeoutError returns the error for an expired --timeout.
func (t *stopProgress) timeoutError() error {
	names := "pods"
	if len(t.remaining) > 0 {
		names = joinKeys(t.remaining, "and")
	}
	return fmt.Errorf("timed out after %s waiting for %s to stop; podd continues to stop them; run \"podd ps\" for their state", printer.FormatDuration(time.Since(t.startTime)), names)
}
