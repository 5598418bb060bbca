package nodestatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/eviction/pressure"
)

// kubeletThresholds are the kubelet's default thresholds.
var kubeletThresholds = pressure.Policy{
	Thresholds: []pressure.Threshold{
		{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 100 << 20}},
		{Signal: pressure.NodefsAvailable, Limit: pressure.Limit{Share: .1}}, {Signal: pressure.NodefsInodesFree, Limit: pressure.Limit{Share: .05}},
		{Signal: pressure.ImagefsAvailable, Limit: pressure.Limit{Share: .15}}, {Signal: pressure.ImagefsInodesFree, Limit: pressure.Limit{Share: .05}},
	},
	TransitionPeriod: 5 * time.Minute,
}

// setLimit replaces the limit of the hard threshold of a signal.
func setLimit(p *pressure.Policy, s pressure.Signal, l pressure.Limit) {
	p.Thresholds = append([]pressure.Threshold{{Signal: s, Limit: l}}, p.Thresholds...)
}

// TestPressureConditions checks each threshold. The base case has exactly the required amounts.
func TestPressureConditions(t *testing.T) {
	enough := observations{
		memory: observation{1 << 30, 100 << 20}, pids: observation{1000, 0},
		disk:   diskObservation{bytes: observation{100, 10}, inodes: observation{100, 5}},
		images: diskObservation{bytes: observation{100, 15}, inodes: observation{100, 5}},
	}
	const memory, disk, pids = v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure
	for name, test := range map[string]struct {
		change func(*observations, *pressure.Policy)
		want   v1.NodeConditionType
	}{
		"exact thresholds": {func(*observations, *pressure.Policy) {}, ""},
		"memory":           {func(r *observations, _ *pressure.Policy) { r.memory.available-- }, memory},
		"disk":             {func(r *observations, _ *pressure.Policy) { r.disk.bytes.available-- }, disk},
		"disk inodes":      {func(r *observations, _ *pressure.Policy) { r.disk.inodes.available-- }, disk},
		"images":           {func(r *observations, _ *pressure.Policy) { r.images.bytes.available-- }, disk},
		"inodes of images": {func(r *observations, _ *pressure.Policy) { r.images.inodes.available-- }, disk},
		"unknown disks": {func(r *observations, _ *pressure.Policy) {
			r.disk, r.images = diskObservation{}, diskObservation{}
		}, ""},
		"unknown disk with an absolute threshold": {func(r *observations, p *pressure.Policy) {
			r.disk = diskObservation{}
			setLimit(p, pressure.NodefsAvailable, pressure.Limit{Amount: 1})
		}, ""},
		"very large disk":      {func(r *observations, _ *pressure.Policy) { r.disk.bytes = observation{1 << 56, 1 << 55} }, ""},
		"full very large disk": {func(r *observations, _ *pressure.Policy) { r.disk.bytes = observation{1 << 56, 1 << 50} }, disk},
		"relative threshold of memory": {func(r *observations, p *pressure.Policy) {
			setLimit(p, pressure.MemoryAvailable, pressure.Limit{Share: .25})
		}, memory},
		"absolute threshold of the disk": {func(r *observations, p *pressure.Policy) {
			setLimit(p, pressure.NodefsAvailable, pressure.Limit{Amount: 11})
		}, disk},
		"exact absolute threshold of the disk": {func(r *observations, p *pressure.Policy) {
			setLimit(p, pressure.NodefsAvailable, pressure.Limit{Amount: 10})
		}, ""},
		"processes": {func(r *observations, p *pressure.Policy) {
			setLimit(p, pressure.PIDAvailable, pressure.Limit{Amount: 1})
		}, pids},
		"relative threshold of processes": {func(r *observations, p *pressure.Policy) {
			setLimit(p, pressure.PIDAvailable, pressure.Limit{Share: .01})
			r.pids.available = 8
		}, pids},
		"no thresholds": {func(r *observations, p *pressure.Policy) {
			*r, *p = observations{memory: observation{capacity: 1}, disk: diskObservation{bytes: observation{capacity: 1}}}, pressure.Policy{}
		}, ""},
	} {
		r, p := enough, kubeletThresholds
		test.change(&r, &p)
		for kind, is := range r.pressureConditions(p) {
			if is != (kind == test.want) {
				t.Errorf("%s: got %s %v, want %v", name, kind, is, !is)
			}
		}
	}
}

// TestPressures_Transition checks that pressure is published for the transition period
// after it has ended.
func TestPressures_Transition(t *testing.T) {
	began := time.Unix(1000, 0)
	p := pressureTracker{policy: pressure.Policy{Thresholds: kubeletThresholds.Thresholds[:1], TransitionPeriod: 30 * time.Second}}
	for _, step := range []struct {
		after     time.Duration
		available int64
		want      bool
	}{{0, 1 << 30, false}, {10 * time.Second, 1, true}, {39 * time.Second, 1 << 30, true}, {40 * time.Second, 1 << 30, false}} {
		shown := p.update(observations{memory: observation{1 << 31, step.available}}, began.Add(step.after))
		if got := shown[v1.NodeMemoryPressure]; got != step.want {
			t.Errorf("after %s: got %v, want %v", step.after, got, step.want)
		}
	}
}
