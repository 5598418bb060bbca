package main

import (
	"context"
	"fmt"
	"time"
)

// burst contains the durations of one round with many pods, in seconds.
type burst struct {
	startSeconds                             float64 // from the start until all pods run
	taskRemovalSeconds                       float64 // from the beginning of the removal until no task exists
	removalSeconds                           float64 // from the beginning of the removal until everything is removed
	containerdStartCPU, containerdRemovalCPU float64 // CPU time of containerd during startSeconds and removalSeconds
	poddStartCPU, poddRemovalCPU             float64 // CPU time of podd during startSeconds and removalSeconds
}

func (b burst) String() string {
	return fmt.Sprintf("all running after %.2f s; on removal, no tasks after %.2f s and everything removed after %.2f s; CPU time of containerd: start %.2f s, removal %.2f s", b.startSeconds, b.taskRemovalSeconds, b.removalSeconds, b.containerdStartCPU, b.containerdRemovalCPU)
}

// measureBursts measures the start and removal of many pods at once.
func (b *bench) measureBursts(ctx context.Context) error {
	for _, n := range b.Sizes {
		if err := b.measureBurst(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// measureBurst measures the start and removal of n pods.
func (b *bench) measureBurst(ctx context.Context, n int) error {
	floors := map[int][]burst{} // by number of concurrent calls
	var poddBursts []burst
	concurrencies := b.Concurrency
	for round := range b.Rounds {
		for _, concurrency := range concurrencies {
			f, err := b.timeBareBurst(ctx, n, concurrency, round == 0 && concurrency == concurrencies[0])
			if err != nil {
				return err
			}
			floors[concurrency] = append(floors[concurrency], f)
		}
		isLast := round == b.Rounds-1
		p, err := b.timePoddBurst(ctx, n, round == 0, isLast && n == b.Sizes[len(b.Sizes)-1])
		if err != nil {
			return err
		}
		poddBursts = append(poddBursts, p)
		if round == 0 {
			concurrencies = []int{fastestConcurrency(floors, timeToRun), fastestConcurrency(floors, timeToNoTasks)}
			if concurrencies[0] == concurrencies[1] {
				concurrencies = concurrencies[:1]
			}
		}
	}
	b.addBurstRow(n, "starting %d pods: all running", timeToRun, floors, poddBursts, 1.15)
	b.addBurstRow(n, "removing %d pods: no tasks", timeToNoTasks, floors, poddBursts, 1.1)
	b.addBurstRow(n, "removing %d pods: everything removed", timeToFullRemoval, floors, poddBursts, 0)
	b.addBurstRow(n, "starting %d pods: CPU time of containerd", containerdStartCPU, floors, poddBursts, 0)
	b.addBurstRow(n, "removing %d pods: CPU time of containerd", containerdRemovalCPU, floors, poddBursts, 0)
	b.table.add(row{name: fmt.Sprintf("starting %d pods: CPU time of podd", n), unit: seconds, podd: valuesOf(poddBursts, func(b burst) float64 { return b.poddStartCPU })})
	b.table.add(row{name: fmt.Sprintf("removing %d pods: CPU time of podd", n), unit: seconds, podd: valuesOf(poddBursts, func(b burst) float64 { return b.poddRemovalCPU })})
	return nil
}

func timeToRun(b burst) float64            { return b.startSeconds }
func timeToNoTasks(b burst) float64        { return b.taskRemovalSeconds }
func timeToFullRemoval(b burst) float64    { return b.removalSeconds }
func containerdStartCPU(b burst) float64   { return b.containerdStartCPU }
func containerdRemovalCPU(b burst) float64 { return b.containerdRemovalCPU }

// valuesOf calls the function metric for each burst, and returns the results in the order of the
// bursts.
func valuesOf(bursts []burst, metric func(burst) float64) samples {
	var s samples
	for _, b := range bursts {
		s = append(s, metric(b))
	}
	return s
}

// fastestConcurrency returns the number of concurrent calls with the lowest median. floors contains
// the rounds for each number of concurrent calls. The function metric returns the value of a round.
func fastestConcurrency(floors map[int][]burst, metric func(burst) float64) int {
	best := 0
	for concurrency, bursts := range floors {
		if best == 0 || valuesOf(bursts, metric).median() < valuesOf(floors[best], metric).median() {
			best = concurrency
		}
	}
	return best
}

// addBurstRow adds a row that compares podd with bare CRI calls. For the bare CRI calls, it uses
// the rounds with the fastest number of concurrent calls. format is the name of the row with a %d
// for n.
func (b *bench) addBurstRow(n int, format string, metric func(burst) float64, floors map[int][]burst, podds []burst, factor float64) {
	// Omit each number of concurrent calls that was not measured in every round, because medians of
	// different numbers of rounds cannot be compared.
	complete := map[int][]burst{}
	for concurrency, bursts := range floors {
		if len(bursts) == b.Rounds {
			complete[concurrency] = bursts
		}
	}
	concurrency := fastestConcurrency(complete, metric)
	b.table.add(row{
		name: fmt.Sprintf(format+" (bare: %d concurrent calls)", n, concurrency), unit: seconds,
		bare: valuesOf(complete[concurrency], metric), podd: valuesOf(podds, metric), goal: goal{factor: factor},
	})
}

// timeBareBurst starts n pods with bare CRI calls, and removes the pods. The parameter concurrency is
// the maximum number of pods for which it makes calls at the same time. If printCalls is true, the
// table shows the number of calls.
func (b *bench) timeBareBurst(ctx context.Context, n, concurrency int, printCalls bool) (burst, error) {
	var f burst
	pods := b.newPods(n)
	barePods, err := b.bareRunner.render(pods)
	if err != nil {
		return f, err
	}
	count := b.startCallCount(ctx, n, printCalls)
	work := measureCPU(b.stack.Daemon.PID)
	startTime := time.Now()
	if err := b.bareRunner.start(ctx, barePods, concurrency); err != nil {
		return f, err
	}
	at, err := b.starts.waitFor(ctx, podNames(pods), startTime)
	if err != nil {
		return f, err
	}
	f.startSeconds, f.containerdStartCPU = at.Sub(startTime).Seconds(), work()
	if err := count(fmt.Sprintf("bare CRI calls, start of %d pods", n)); err != nil {
		return f, err
	}
	if err := sleep(ctx, burstRoundPause); err != nil {
		return f, err
	}
	work = measureCPU(b.stack.Daemon.PID)
	startTime = time.Now()
	if err := b.bareRunner.stop(ctx, barePods, concurrency); err != nil {
		return f, err
	}
	if at, err = b.tasks.waitEmpty(ctx); err != nil {
		return f, err
	}
	f.taskRemovalSeconds = at.Sub(startTime).Seconds()
	if err := b.bareRunner.remove(ctx, barePods, concurrency); err != nil {
		return f, err
	}
	f.removalSeconds, f.containerdRemovalCPU = time.Since(startTime).Seconds(), work()
	printProgress("round", fmt.Sprintf("%d pods with bare CRI calls, %d at a time: %s", n, concurrency, f))
	return f, sleep(ctx, burstRoundPause)
}

// timePoddBurst starts podd, lets it start n pods, and removes the pods. If measureIdle is true,
// it also measures podd while the pods run.
func (b *bench) timePoddBurst(ctx context.Context, n int, printCalls, measureIdle bool) (burst, error) {
	var p burst
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return p, err
	}
	pods := b.newPods(n)
	count := b.startCallCount(ctx, n, printCalls)
	work, poddCPU := measureCPU(b.stack.Daemon.PID), measureCPU(b.daemon.cmd.Process.Pid)
	startTime, at, err := b.startPods(ctx, pods)
	if err != nil {
		return p, err
	}
	p.startSeconds, p.containerdStartCPU, p.poddStartCPU = at.Sub(startTime).Seconds(), work(), poddCPU()
	if err := count(fmt.Sprintf("podd, start of %d pods", n)); err != nil {
		return p, err
	}
	if measureIdle && b.wants("idle") {
		i, err := b.measureIdle(ctx, b.daemon.cmd.Process.Pid)
		if err != nil {
			return p, err
		}
		b.reportIdle(i, n)
	} else if err := sleep(ctx, burstRoundPause); err != nil {
		return p, err
	}
	count = b.startCallCount(ctx, n, printCalls)
	work, poddCPU = measureCPU(b.stack.Daemon.PID), measureCPU(b.daemon.cmd.Process.Pid)
	taskTime, totalTime, err := b.timeRemoval(ctx, pods)
	if err != nil {
		return p, err
	}
	p.taskRemovalSeconds, p.removalSeconds = taskTime.Seconds(), totalTime.Seconds()
	p.containerdRemovalCPU, p.poddRemovalCPU = work(), poddCPU()
	if err := count(fmt.Sprintf("podd, removal of %d pods", n)); err != nil {
		return p, err
	}
	printProgress("round", fmt.Sprintf("%d pods with podd: %s; CPU time of podd: start %.2f s, removal %.2f s", n, p, p.poddStartCPU, p.poddRemovalCPU))
	if err := b.daemon.stop(); err != nil {
		return p, err
	}
	return p, sleep(ctx, burstRoundPause)
}

// startCallCount starts to count CRI calls. It returns a function that adds a line to the table, with
// the number of calls since startCallCount was called. If printCalls is false, startCallCount and the
// returned function do nothing.
func (b *bench) startCallCount(ctx context.Context, pods int, printCalls bool) func(operation string) error {
	if !printCalls {
		return func(string) error { return nil }
	}
	startCounts, err := b.calls.readCounts(ctx)
	return func(operation string) error {
		if err != nil {
			return err
		}
		endCounts, err := b.calls.readCounts(ctx)
		if err != nil {
			return err
		}
		b.table.addCallCounts(operation, subtractCounts(endCounts, startCounts), pods)
		return nil
	}
}
