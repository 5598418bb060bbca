package nodestatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
)

// kubeletThresholds are the kubelet's default thresholds.
var kubeletThresholds = config.PressureThresholds{
	Memory: config.Threshold{Amount: 100 << 20},
	Nodefs: config.Threshold{Share: .1}, NodefsInodes: config.Threshold{Share: .05},
	Imagefs: config.Threshold{Share: .15}, ImagefsInodes: config.Threshold{Share: .05},
	TransitionPeriod: 5 * time.Minute,
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
		change func(*observations, *config.PressureThresholds)
		want   v1.NodeConditionType
	}{
		"exact thresholds": {func(*observations, *config.PressureThresholds) {}, ""},
		"memory":           {func(r *observations, _ *config.PressureThresholds) { r.memory.available-- }, memory},
		"disk":             {func(r *observations, _ *config.PressureThresholds) { r.disk.bytes.available-- }, disk},
		"disk inodes":      {func(r *observations, _ *config.PressureThresholds) { r.disk.inodes.available-- }, disk},
		"images":           {func(r *observations, _ *config.PressureThresholds) { r.images.bytes.available-- }, disk},
		"inodes of images": {func(r *observations, _ *config.PressureThresholds) { r.images.inodes.available-- }, disk},
		"unknown disks": {func(r *observations, _ *config.PressureThresholds) {
			r.disk, r.images = diskObservation{}, diskObservation{}
		}, ""},
		"unknown disk with an absolute threshold": {func(r *observations, p *config.PressureThresholds) {
			r.disk = diskObservation{}
			p.Nodefs = config.Threshold{Amount: 1}
		}, ""},
		"very large disk":                      {func(r *observations, _ *config.PressureThresholds) { r.disk.bytes = observation{1 << 56, 1 << 55} }, ""},
		"full very large disk":                 {func(r *observations, _ *config.PressureThresholds) { r.disk.bytes = observation{1 << 56, 1 << 50} }, disk},
		"relative threshold of memory":         {func(r *observations, p *config.PressureThresholds) { p.Memory = config.Threshold{Share: .25} }, memory},
		"absolute threshold of the disk":       {func(r *observations, p *config.PressureThresholds) { p.Nodefs = config.Threshold{Amount: 11} }, disk},
		"exact absolute threshold of the disk": {func(r *observations, p *config.PressureThresholds) { p.Nodefs = config.Threshold{Amount: 10} }, ""},
		"processes":                            {func(r *observations, p *config.PressureThresholds) { p.Pids = config.Threshold{Amount: 1} }, pids},
		"relative threshold of processes": {func(r *observations, p *config.PressureThresholds) {
			p.Pids = config.Threshold{Share: .01}
			r.pids.available = 8
		}, pids},
		"no thresholds": {func(r *observations, p *config.PressureThresholds) {
			*r, *p = observations{memory: observation{capacity: 1}, disk: diskObservation{bytes: observation{capacity: 1}}}, config.PressureThresholds{}
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
	p := pressureTracker{thresholds: config.PressureThresholds{Memory: kubeletThresholds.Memory, TransitionPeriod: 30 * time.Second}}
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
