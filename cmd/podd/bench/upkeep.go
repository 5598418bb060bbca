package main

import "context"

// upkeepPods is the number of pods of an idle node whose upkeep is measured.
const upkeepPods = 10

// upkeepFlags make podd observe everything that can become short, without any shortage.
var upkeepFlags = []string{
	"--eviction-hard", "memory.available<1Mi,nodefs.available<1Mi,nodefs.inodesFree<1,imagefs.available<1Mi,imagefs.inodesFree<1,pid.available<1",
	"--image-gc-high-threshold", "99", "--image-gc-low-threshold", "98", "--maximum-dead-containers", "100",
}

// noUpkeepFlags make podd observe nothing that can become short, and remove no image and no container.
var noUpkeepFlags = []string{
	"--eviction-hard", "memory.available<0%,nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%,imagefs.inodesFree<0%,pid.available<0%",
	"--image-gc-high-threshold", "100", "--maximum-dead-containers", "-1",
}

// measureUpkeep compares an idle podd that evicts pods and removes images and containers with a podd that
// does not. Rounds of both alternate.
func (b *bench) measureUpkeep(ctx context.Context) error {
	defer func() { b.daemon.extraFlags = nil }()
	var cpu, anonymous [2]samples // without and with upkeep
	for range b.Rounds {
		for i, flags := range [][]string{noUpkeepFlags, upkeepFlags} {
			b.daemon.extraFlags = flags
			usage, err := b.measureIdlePods(ctx, upkeepPods)
			if err != nil {
				return err
			}
			cpu[i], anonymous[i] = append(cpu[i], usage.cpuPercent), append(anonymous[i], usage.anonymous)
		}
	}
	b.table.add(row{name: "idle CPU with upkeep (bare: without)", unit: percent, bare: cpu[0], podd: cpu[1], goal: goal{factor: 1, offset: 0.1}})
	b.table.add(row{name: "RssAnon with upkeep (bare: without)", unit: megabytes, bare: anonymous[0], podd: anonymous[1], goal: goal{factor: 1, offset: 2e6}})
	return nil
}
