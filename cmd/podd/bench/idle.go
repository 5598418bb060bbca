package main

import (
	"context"
	"fmt"
	"time"
)

// idleTime is the time for which podd is idle before a measurement.
const idleTime = 10 * time.Second

// measureIdleOnePod measures an idle podd with one pod.
func (b *bench) measureIdleOnePod(ctx context.Context) error {
	i, err := b.measureIdlePods(ctx, 1)
	if err == nil {
		b.reportIdle(i, 1)
	}
	return err
}

// measureIdlePods starts podd with n pods, measures it while it is idle, and stops it.
func (b *bench) measureIdlePods(ctx context.Context, n int) (i idleUsage, err error) {
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return i, err
	}
	pods := b.newPods(n)
	if _, _, err := b.startPods(ctx, pods); err != nil {
		return i, err
	}
	if i, err = b.measureIdle(ctx, b.daemon.cmd.Process.Pid); err != nil {
		return i, err
	}
	if err := b.removePods(ctx, pods); err != nil {
		return i, err
	}
	return i, b.daemon.stop()
}

// measureProbes measures a podd with twenty exec probes per second. Two hundred pods with one probe
// each cause this number of probes, because the default period is ten seconds.
func (b *bench) measureProbes(ctx context.Context) error {
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return err
	}
	pods := b.newPodsWithFields(20, probedEverySecond)
	if _, _, err := b.startPods(ctx, pods); err != nil {
		return err
	}
	i, err := b.measureIdle(ctx, b.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	b.table.add(row{name: "CPU, 20 exec probes per second", unit: percent, podd: samples{i.cpuPercent}, goal: goal{offset: 6}})
	if err := b.removePods(ctx, pods); err != nil {
		return err
	}
	return b.daemon.stop()
}

// memoryGoals contains the maximum memory of podd, by number of pods. The zero value means no
// goal.
var memoryGoals = map[int]memory{
	1:   {anonymous: 9e6, resident: 33e6},
	100: {anonymous: 14e6, resident: 38e6, peak: 45e6},
}

// reportIdle adds the usage of an idle podd with n pods to the table.
func (b *bench) reportIdle(i idleUsage, n int) {
	of := podCount(n)
	limit := memoryGoals[n]
	b.table.add(row{name: "RssAnon, " + of, unit: megabytes, podd: samples{i.anonymous}, goal: goal{offset: limit.anonymous}})
	b.table.add(row{name: "RSS, " + of, unit: megabytes, podd: samples{i.resident}, goal: goal{offset: limit.resident}})
	b.table.add(row{name: "peak RSS, " + of, unit: megabytes, podd: samples{i.peak}, goal: goal{offset: limit.peak}})
	b.table.add(row{name: "idle CPU, " + of, unit: percent, podd: samples{i.cpuPercent}, goal: goal{offset: 0.5}})
}

// podCount formats a number of pods.
func podCount(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

type idleUsage struct {
	memory
	cpuPercent float64 // percent of a CPU
}

// sampleInterval is the interval between measurements of memory. One measurement is not
// representative, because garbage collections change the size of the heap.
const sampleInterval = time.Second

// measureIdle measures an idle process. The values of memory are medians, except the peak, which is
// the maximum since the start of the process.
func (b *bench) measureIdle(ctx context.Context, pid int) (i idleUsage, err error) {
	if err := sleep(ctx, idleTime); err != nil {
		return i, err
	}
	startCPU, err := cpuTime(pid)
	if err != nil {
		return i, err
	}
	var resident, anonymous samples
	startTime := time.Now()
	for time.Since(startTime) < b.Idle {
		if err := sleep(ctx, sampleInterval); err != nil {
			return i, err
		}
		m, err := readMemory(pid)
		if err != nil {
			return i, err
		}
		resident, anonymous, i.peak = append(resident, m.resident), append(anonymous, m.anonymous), m.peak
	}
	endCPU, err := cpuTime(pid)
	if err != nil {
		return i, err
	}
	i.cpuPercent = 100 * float64(endCPU-startCPU) / float64(time.Since(startTime))
	i.resident, i.anonymous = resident.median(), anonymous.median()
	return i, nil
}
