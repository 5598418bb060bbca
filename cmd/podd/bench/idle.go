package main

import (
	"context"
	"fmt"
	"time"
)

// quiet is how long podd is idle before a measurement.
const quiet = 10 * time.Second

// idleOne measures an idle podd with one pod.
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

// memoryGoals contains the maximum memory of podd, by number of pods. The zero value means no
// goal.
var memoryGoals = map[int]memory{
	1:   {anonymous: 9e6, resident: 33e6},
	100: {anonymous: 14e6, resident: 38e6, peak: 45e6},
}

// watchIdle measures an idle podd with n pods.
func (b *bench) watchIdle(ctx context.Context, n int) error {
	i, err := b.idle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	of := pods(n)
	max := memoryGoals[n]
	b.table.add(row{name: "RssAnon, " + of, unit: megabytes, podd: samples{i.anonymous}, goal: goal{plus: max.anonymous}})
	b.table.add(row{name: "RSS, " + of, unit: megabytes, podd: samples{i.resident}, goal: goal{plus: max.resident}})
	b.table.add(row{name: "peak RSS, " + of, unit: megabytes, podd: samples{i.peak}, goal: goal{plus: max.peak}})
	b.table.add(row{name: "idle CPU, " + of, unit: percent, podd: samples{i.cpu}, goal: goal{plus: 0.5}})
	return nil
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// idle is the resource usage of an idle process.
type idle struct {
	memory
	cpu float64 // percent of a CPU
}

// sampleInterval is the interval between measurements of memory. One measurement is not
// representative, because garbage collections change the size of the heap.
const sampleInterval = time.Second

// idle measures an idle process. Memory is the median, except that the peak is the maximum since
// the start of the process.
func (b *bench) idle(ctx context.Context, pid int) (i idle, err error) {
	if err := rest(ctx, quiet); err != nil {
		return i, err
	}
	before, err := cpu(pid)
	if err != nil {
		return i, err
	}
	var resident, anonymous samples
	begin := time.Now()
	for time.Since(begin) < b.Idle {
		if err := rest(ctx, sampleInterval); err != nil {
			return i, err
		}
		m, err := memoryOf(pid)
		if err != nil {
			return i, err
		}
		resident, anonymous, i.peak = append(resident, m.resident), append(anonymous, m.anonymous), m.peak
	}
	after, err := cpu(pid)
	if err != nil {
		return i, err
	}
	i.cpu = 100 * float64(after-before) / float64(time.Since(begin))
	i.resident, i.anonymous = resident.median(), anonymous.median()
	return i, nil
}
