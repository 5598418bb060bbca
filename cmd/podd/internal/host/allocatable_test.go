package host

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/render"
)

// kubeletDefaults are the kubelet's default eviction thresholds of memory and disk.
var kubeletDefaults = hardThresholds(pressure.MemoryAvailable, pressure.Limit{Amount: 100 << 20}, pressure.NodefsAvailable, pressure.Limit{Share: .1})

// hardThresholds returns a policy with a hard threshold for each pair of a signal and a limit.
func hardThresholds(pairs ...any) (p pressure.Policy) {
	for i := 0; i < len(pairs); i += 2 {
		p.Thresholds = append(p.Thresholds, pressure.Threshold{Signal: pairs[i].(pressure.Signal), Limit: pairs[i+1].(pressure.Limit)})
	}
	return p
}

// TestAllocatable checks that reservations and eviction thresholds reduce the allocatable
// resources, and that only reservations that are enforced reduce the limit of all pods.
func TestAllocatable(t *testing.T) {
	const gib = 1 << 30
	reserved := func(cpu, memory, disk, pids string) v1.ResourceList {
		return v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory),
			v1.ResourceEphemeralStorage: resource.MustParse(disk), "pid": resource.MustParse(pids),
		}
	}
	node := render.Resources{MilliCPU: 4000, Memory: 8 * gib, EphemeralStorage: 101430960 << 10, Pids: 30000}
	for name, test := range map[string]struct {
		capacity  render.Resources
		reserved  v1.ResourceList
		policy    pressure.Policy
		hugePages int64            // bytes
		want      render.Resources // allocatable resources of the node
		limit     render.Resources // limit of all pods
		err       string           // part of the error; "" if there is none
	}{
		// The kubelet reports 93478772582 bytes of allocatable ephemeral storage for a disk of this size.
		"defaults": {
			node, nil, kubeletDefaults, 0,
			render.Resources{MilliCPU: 4000, Memory: 8*gib - 100<<20, EphemeralStorage: 93478772582, Pids: 30000}, node, "",
		},
		"no thresholds": {node, nil, pressure.Policy{}, 0, node, node, ""},
		"reservations, thresholds and huge pages": {
			node, reserved("500m", "1Gi", "1Gi", "100"), hardThresholds(pressure.MemoryAvailable, pressure.Limit{Share: .25}, pressure.NodefsAvailable, pressure.Limit{Amount: gib}), gib,
			render.Resources{MilliCPU: 3500, Memory: 4 * gib, EphemeralStorage: 101430960<<10 - 2*gib, Pids: 29900},
			render.Resources{MilliCPU: 3500, Memory: 7 * gib, EphemeralStorage: 101430960<<10 - gib, Pids: 29900}, "",
		},
		"thresholds of other signals": {
			node, nil, hardThresholds(pressure.PIDAvailable, pressure.Limit{Amount: 9}, pressure.ImagefsAvailable, pressure.Limit{Share: .5}, pressure.NodefsInodesFree, pressure.Limit{Share: .5}), 0,
			node, node, "",
		},
		"unknown disk size": {
			render.Resources{MilliCPU: 1000, Memory: gib}, nil, hardThresholds(pressure.NodefsAvailable, pressure.Limit{Amount: gib}), 0,
			render.Resources{MilliCPU: 1000, Memory: gib}, render.Resources{MilliCPU: 1000, Memory: gib}, "",
		},
		"no memory left": {
			capacity: render.Resources{MilliCPU: 1000, Memory: 100 << 20}, policy: kubeletDefaults,
			err: "evictionHard (memory.available 100 MiB) and huge pages (0 MiB) take all of the node's 1 CPUs or 100 MiB",
		},
		"no disk space left": {
			capacity: node, policy: hardThresholds(pressure.NodefsAvailable, pressure.Limit{Amount: 1 << 50}),
			err: "evictionHard (nodefs.available 1073741824 MiB) take all of the disk's ",
		},
	} {
		got, err := computeAllocatable(test.capacity, test.reserved, test.policy, test.hugePages)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got error %v, want one that contains %q", name, err, test.err)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s: got allocatable resources %+v, error %v; want %+v", name, got, err, test.want)
		}
		cfg := &config.Resources{Reserved: test.reserved, Eviction: test.policy, EnforceReserved: true}
		if got := podsLimit(cfg, test.capacity); got != test.limit {
			t.Errorf("%s: limit of all pods: got %+v, want %+v", name, got, test.limit)
		}
	}
	cfg := &config.Resources{Reserved: reserved("500m", "1Gi", "1Gi", "100"), Eviction: kubeletDefaults}
	if got := podsLimit(cfg, node); got != node {
		t.Errorf("without EnforceReserved: got limit of all pods %+v, want the capacity %+v", got, node)
	}
	huge := render.Resources{MilliCPU: 4000, Memory: 1 << 50, EphemeralStorage: 1 << 50} // more than the huge pages of this host
	with, err := Allocatable(cfg, huge)
	cfg.IgnoreEvictionInAllocatable = true
	without, ignoreErr := Allocatable(cfg, huge)
	if err != nil || ignoreErr != nil || without.Memory-with.Memory != 100<<20 {
		t.Errorf("with IgnoreEvictionInAllocatable: got %d bytes of memory (errors %v and %v), want 100 MiB more than %d bytes", without.Memory, ignoreErr, err, with.Memory)
	}
}
