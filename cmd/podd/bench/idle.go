package main

import (
	"context"
	"fmt"
	"time"
)

// quiet is how long podd has nothing to do before it is looked at.
const quiet = 10 * time.Second

// idleOne measures a podd that has one pod and nothing to do.
func (b *bench) idleOne(ctx context.Context) error {
	if err := b.daemon.begin(ctx); err != nil {
		return err
	}
	pods := b.pods(1)
	if _, _, err := b.apply(ctx, pods); err != nil {
		return err
	}
	if err := b.watchIdle(ctx, 1); err != nil {
		return err
	}
	if err := b.withdraw(ctx, pods); err != nil {
		return err
	}
	return b.daemon.end()
}

// residents are the goals of memory by number of pods.
var residents = map[int]float64{1: 25e6, 100: 32e6}

// watchIdle looks at podd, which has n pods and nothing to do.
func (b *bench) watchIdle(ctx context.Context, n int) error {
	if err := rest(ctx, quiet); err != nil {
		return err
	}
	pid := b.daemon.cmd.Process.Pid
	before, err := cpu(pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := rest(ctx, b.Idle); err != nil {
		return err
	}
	after, err := cpu(pid)
	if err != nil {
		return err
	}
	used := 100 * float64(after-before) / float64(time.Since(begin))
	m, err := memoryOf(pid)
	if err != nil {
		return err
	}
	of := fmt.Sprintf("%d pods", n)
	if n == 1 {
		of = "1 pod"
	}
	b.table.add(row{name: "RSS, " + of, unit: megabytes, podd: samples{m.resident}, goal: goal{plus: residents[n]}})
	b.table.add(row{name: "  of it RssAnon, " + of, unit: megabytes, podd: samples{m.anonymous}})
	b.table.add(row{name: "idle CPU, " + of, unit: percent, podd: samples{used}, goal: goal{plus: 0.5}})
	return nil
}
