package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/config"
)

// kubelets are the thresholds of a kubelet that is told of none.
var kubelets = config.Pressure{
	Memory: config.Threshold{Amount: 100 << 20},
	Nodefs: config.Threshold{Share: .1}, NodefsInodes: config.Threshold{Share: .05},
	Imagefs: config.Threshold{Share: .15}, ImagefsInodes: config.Threshold{Share: .05},
	Transition: 5 * time.Minute,
}

// TestUnder: each threshold, and the last amount that is enough.
func TestUnder(t *testing.T) {
	enough := room{
		memory: stock{1 << 30, 100 << 20}, pids: stock{1000, 0},
		disk:   diskRoom{bytes: stock{100, 10}, inodes: stock{100, 5}},
		images: diskRoom{bytes: stock{100, 15}, inodes: stock{100, 5}},
	}
	const memory, disk, pids = v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure
	for name, test := range map[string]struct {
		change func(*room, *config.Pressure)
		want   v1.NodeConditionType
	}{
		"enough":            {func(*room, *config.Pressure) {}, ""},
		"memory":            {func(r *room, _ *config.Pressure) { r.memory.left-- }, memory},
		"disk":              {func(r *room, _ *config.Pressure) { r.disk.bytes.left-- }, disk},
		"its inodes":        {func(r *room, _ *config.Pressure) { r.disk.inodes.left-- }, disk},
		"images":            {func(r *room, _ *config.Pressure) { r.images.bytes.left-- }, disk},
		"their inodes":      {func(r *room, _ *config.Pressure) { r.images.inodes.left-- }, disk},
		"no bound is known": {func(r *room, _ *config.Pressure) { r.disk, r.images = diskRoom{}, diskRoom{} }, ""},
		"nor of an amount":  {func(r *room, p *config.Pressure) { r.disk = diskRoom{}; p.Nodefs = config.Threshold{Amount: 1} }, ""},
		"a very large disk": {func(r *room, _ *config.Pressure) { r.disk.bytes = stock{1 << 56, 1 << 55} }, ""},
		"a full large disk": {func(r *room, _ *config.Pressure) { r.disk.bytes = stock{1 << 56, 1 << 50} }, disk},
		"a share of memory": {func(r *room, p *config.Pressure) { p.Memory = config.Threshold{Share: .25} }, memory},
		"an amount of disk": {func(r *room, p *config.Pressure) { p.Nodefs = config.Threshold{Amount: 11} }, disk},
		"one that is left":  {func(r *room, p *config.Pressure) { p.Nodefs = config.Threshold{Amount: 10} }, ""},
		"processes":         {func(r *room, p *config.Pressure) { p.Pids = config.Threshold{Amount: 1} }, pids},
		"a share of them":   {func(r *room, p *config.Pressure) { p.Pids = config.Threshold{Share: .01}; r.pids.left = 8 }, pids},
		"nothing has threshold": {func(r *room, p *config.Pressure) {
			*r, *p = room{memory: stock{whole: 1}, disk: diskRoom{bytes: stock{whole: 1}}}, config.Pressure{}
		}, ""},
	} {
		r, p := enough, kubelets
		test.change(&r, &p)
		for kind, is := range r.under(p) {
			if is != (kind == test.want) {
				t.Errorf("%s: %s is %v", name, kind, is)
			}
		}
	}
}

// TestTransition: pressure that is over is shown for as long as was set.
func TestTransition(t *testing.T) {
	began := time.Unix(1000, 0)
	p := pressures{by: config.Pressure{Memory: kubelets.Memory, Transition: 30 * time.Second}}
	for _, step := range []struct {
		after time.Duration
		left  int64
		want  bool
	}{{0, 1 << 30, false}, {10 * time.Second, 1, true}, {39 * time.Second, 1 << 30, true}, {40 * time.Second, 1 << 30, false}} {
		shown := p.see(room{memory: stock{1 << 31, step.left}}, began.Add(step.after))
		if got := shown[v1.NodeMemoryPressure]; got != step.want {
			t.Errorf("after %s: %v", step.after, got)
		}
	}
}
