package stats

import (
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"
)

func TestRate(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(seconds float64, total uint64) reading {
		return reading{began.Add(time.Duration(seconds * 1e9)), total}
	}
	for name, test := range map[string]struct {
		from, to reading
		want     int64 // -1 means unknown
	}{
		"half a core":            {at(0, 0), at(10, 5e9), 500e6},
		"four cores":             {at(0, 1e9), at(0.5, 3e9), 4e9},
		"idle":                   {at(0, 7), at(10, 7), 0},
		"counter was reset":      {at(0, 7), at(10, 6), -1},
		"no time passed":         {at(3, 7), at(3, 8), -1},
		"the clock was set back": {at(3, 7), at(2, 8), -1},
		"longest window":         {at(0, 0), at(120, 120e9), 1e9},
		"window too long":        {at(0, 0), at(121, 120e9), -1},
	} {
		got := cpuRate(test.from, test.to)
		if test.want < 0 && got != nil || test.want >= 0 && (got == nil || *got != uint64(test.want)) {
			t.Errorf("%s: got %v, want %d", name, got, test.want)
		}
	}
}

func TestSince(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(seconds int, total uint64) reading {
		return reading{began.Add(time.Duration(seconds) * time.Second), total}
	}
	made := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	for name, test := range map[string]struct {
		last  reading
		known bool
		made  time.Time
		now   reading
		want  reading
		ok    bool
	}{
		"has a reading":          {at(10, 5), true, made(0), at(20, 9), at(10, 5), true},
		"created since":          {reading{}, false, made(15), at(20, 9), at(15, 0), true},
		"old, without a reading": {reading{}, false, made(-500), at(20, 9), reading{}, false},
		"unknown age":            {reading{}, false, time.Time{}, at(20, 9), reading{}, false},
		"recreated":              {at(10, 5), true, made(15), at(20, 9), at(15, 0), true},
		"counter was reset":      {at(10, 50), true, made(-500), at(20, 9), reading{}, false},
	} {
		if got, ok := baseReading(test.last, test.known, test.made, test.now); got != test.want || ok != test.ok {
			t.Errorf("%s: got reading %v, ok: %t; want reading %v, ok: %t", name, got, ok, test.want, test.ok)
		}
	}
}

func cgroupAt(name string, at time.Time, total uint64) *Cgroup {
	return &Cgroup{Info: &model.ContainerInfo{
		ContainerReference: model.ContainerReference{Name: name},
		Stats:              []*model.ContainerStats{{Timestamp: at, Cpu: &model.CpuStats{Usage: model.CpuUsage{Total: total}}, Memory: &model.MemoryStats{}}},
	}}
}

// TestReadings checks that rates are computed from the previous sample, and only for cgroups that this sample
// contains. A sample that comes too soon after the previous one must not replace it.
func TestReadings(t *testing.T) {
	var r readings
	began := time.Unix(1000, 0)
	if !r.isOutdated(began) {
		t.Error("isOutdated without readings: got false, want true")
	}
	take := func(after time.Duration, node, own uint64) *Sample {
		at := began.Add(after)
		s := &Sample{At: at, Node: cgroupAt("/", at, node)}
		if own > 0 {
			s.OwnCgroup = cgroupAt("/own", at, own)
		}
		r.setRates(s)
		return s
	}
	want := func(what string, c *Cgroup, want int64) {
		t.Helper()
		if want < 0 && c.NanoCores != nil || want >= 0 && (c.NanoCores == nil || *c.NanoCores != uint64(want)) {
			t.Errorf("rate of %s: got %v, want %d (-1: none)", what, c.NanoCores, want)
		}
	}
	want("the node in the first sample", take(0, 1e9, 1e9).Node, -1)
	s := take(time.Second, 3e9, 1.5e9)
	want("the node in the second sample", s.Node, 2e9)
	want("the own cgroup in the second sample", s.OwnCgroup, 0.5e9)
	want("the node in a sample that comes too soon", take(1100*time.Millisecond, 3.1e9, 2e9).Node, 1e9)
	s = take(2*time.Second, 4e9, 0)
	want("the node in the next sample, since the second sample", s.Node, 1e9)
	want("the own cgroup, which was not in the previous sample", take(3*time.Second, 5e9, 9e9).OwnCgroup, -1)
	if r.isOutdated(began.Add(time.Minute)) || !r.isOutdated(began.Add(time.Hour)) {
		t.Errorf("isOutdated: got %t after a minute and %t after an hour; want false and true", r.isOutdated(began.Add(time.Minute)), r.isOutdated(began.Add(time.Hour)))
	}
}
