package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// adaptive is the value of --parallel-starts with which podd chooses the number of parallel
// starts.
const adaptive = 0

// measureLimits compares the number of parallel starts that podd chooses with fixed numbers, for
// each of the --sizes.
func (b *bench) measureLimits(ctx context.Context) error {
	for _, n := range b.Sizes {
		if err := b.measureLimitsForBurst(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// measureLimitsForBurst measures bursts of n pods, with each limit on the number of parallel starts.
// Each round measures every limit once, so that other load on the host affects all limits equally.
func (b *bench) measureLimitsForBurst(ctx context.Context, n int) error {
	defer func() { b.daemon.extraFlags = nil }()
	times := map[int]samples{} // by limit
	for range b.Rounds {
		for _, limit := range append([]int{adaptive}, b.Limits...) {
			b.daemon.extraFlags = []string{"--parallel-starts", strconv.Itoa(limit)}
			p, err := b.timePoddBurst(ctx, n, false, false)
			if err != nil {
				return err
			}
			times[limit] = append(times[limit], p.startSeconds)
		}
	}
	best := fastestLimit(times)
	for _, limit := range b.Limits {
		b.table.add(row{name: fmt.Sprintf("starting %d pods, %d at a time", n, limit), unit: seconds, podd: times[limit]})
	}
	b.table.add(row{
		name: fmt.Sprintf("starting %d pods, podd's own number (bare: %d at a time)", n, best), unit: seconds,
		bare: times[best], podd: times[adaptive], goal: goal{factor: 1.05},
	})
	return nil
}

// fastestLimit returns the fixed limit with the lowest median. times contains the seconds of all
// rounds by limit.
func fastestLimit(times map[int]samples) int {
	fixedLimits := slices.DeleteFunc(slices.Sorted(maps.Keys(times)), func(limit int) bool { return limit == adaptive })
	return slices.MinFunc(fixedLimits, func(x, y int) int {
		if times[x].median() < times[y].median() {
			return -1
		}
		return 1
	})
}
