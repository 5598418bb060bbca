package pressure

import (
	"math"
	"testing"
	"time"
)

func TestTimeToDiskPressure(t *testing.T) {
	const gib = 1 << 30
	limit := func(s Signal, amount int64) Threshold { return Threshold{Signal: s, Limit: Limit{Amount: amount}} }
	tests := []struct {
		name       string
		thresholds []Threshold
		signals    map[Signal]Observation
		layout     Layout
		want       time.Duration
		isLimited  bool
	}{
		{name: "no thresholds", signals: map[Signal]Observation{NodefsAvailable: {gib, 0}}},
		{name: "only memory", thresholds: []Threshold{limit(MemoryAvailable, 1)}, signals: map[Signal]Observation{MemoryAvailable: {gib, gib / 2}}},
		{name: "not observed", thresholds: []Threshold{limit(NodefsAvailable, 1)}},
		{
			name: "capacity unknown", thresholds: []Threshold{limit(NodefsAvailable, 1)},
			signals: map[Signal]Observation{NodefsAvailable: {0, gib}},
		},
		{
			name: "space", thresholds: []Threshold{limit(NodefsAvailable, gib)},
			signals: map[Signal]Observation{NodefsAvailable: {8 * gib, 3 * gib}}, want: 4 * time.Second, isLimited: true,
		},
		{
			name: "share", thresholds: []Threshold{{Signal: NodefsAvailable, Limit: Limit{Share: 0.25}}},
			signals: map[Signal]Observation{NodefsAvailable: {8 * gib, 3 * gib}}, want: 2 * time.Second, isLimited: true,
		},
		{
			name: "inodes", thresholds: []Threshold{limit(NodefsInodesFree, 50_000)},
			signals: map[Signal]Observation{NodefsInodesFree: {200_000, 100_000}}, want: time.Second, isLimited: true,
		},
		{
			name: "nearest threshold", thresholds: []Threshold{limit(NodefsAvailable, gib), limit(ImagefsAvailable, gib)},
			signals: map[Signal]Observation{NodefsAvailable: {8 * gib, 5 * gib}, ImagefsAvailable: {8 * gib, 2 * gib}}, want: 2 * time.Second, isLimited: true,
		},
		{
			name: "hard threshold next, because the soft one is met", thresholds: []Threshold{limit(NodefsAvailable, gib), {Signal: NodefsAvailable, Limit: Limit{Amount: 4 * gib}, GracePeriod: time.Minute}},
			signals: map[Signal]Observation{NodefsAvailable: {8 * gib, 3 * gib}}, want: 4 * time.Second, isLimited: true,
		},
		{
			name: "more space than a Duration can contain", thresholds: []Threshold{limit(NodefsAvailable, gib)},
			signals: map[Signal]Observation{NodefsAvailable: {math.MaxInt64, math.MaxInt64}}, want: time.Hour, isLimited: true,
		},
		{
			name: "all met", thresholds: []Threshold{limit(NodefsAvailable, gib)},
			signals: map[Signal]Observation{NodefsAvailable: {8 * gib, gib / 2}},
		},
		{
			name: "writable layers on another disk", thresholds: []Threshold{limit(ImagefsAvailable, gib)}, layout: Layout{1, 2, 2},
			signals: map[Signal]Observation{ContainerfsAvailable: {8 * gib, 2 * gib}}, want: 2 * time.Second, isLimited: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{Thresholds: tt.thresholds}
			got, isLimited := p.TimeToDiskPressure(Observations{Signals: tt.signals, Layout: tt.layout})
			if got != tt.want || isLimited != tt.isLimited {
				t.Errorf("got %v, %v; want %v, %v", got, isLimited, tt.want, tt.isLimited)
			}
		})
	}
}
