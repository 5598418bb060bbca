package pressure

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

var began = time.Unix(1000, 0)

// oneDisk is the layout of a node with one file system.
var oneDisk = Layout{1, 1, 1}

// available returns an observation of each signal with a capacity of 1000.
func available(amounts map[Signal]int64) Observations {
	o := Observations{Signals: map[Signal]Observation{}, Layout: oneDisk}
	for s, n := range amounts {
		o.Signals[s] = Observation{1000, n}
	}
	return o
}

// TestDecide checks the decisions of a sequence of observations. Each step is one call of Decide.
func TestDecide(t *testing.T) {
	hard := Threshold{Signal: MemoryAvailable, Limit: Limit{Amount: 100}, MinReclaim: Limit{Amount: 50}}
	soft := Threshold{Signal: MemoryAvailable, Limit: Limit{Share: .2}, GracePeriod: 30 * time.Second}
	disk := Threshold{Signal: NodefsAvailable, Limit: Limit{Share: .1}}
	type step struct {
		after     time.Duration // since the beginning
		available int64         // of memory.available; -1 means that it is not observed
		want      string
	}
	for name, test := range map[string]struct {
		thresholds []Threshold
		steps      []step
	}{
		"hard threshold": {[]Threshold{hard}, []step{
			{0, 100, "none"},
			{10 * time.Second, 99, "due memory.available 100/99; MemoryPressure; wake 1m10s"},
			{20 * time.Second, 120, "due memory.available 100/120; MemoryPressure; wake 1m20s"}, // the minimum reclaim is missing
			{30 * time.Second, 150, "none; MemoryPressure; wake 1m20s"},
			{79 * time.Second, 120, "none; MemoryPressure; wake 1m20s"}, // not less than the limit
			{80 * time.Second, 150, "none"},
		}},
		"soft threshold": {[]Threshold{soft}, []step{
			{0, 199, "met memory.available 200/199; MemoryPressure; wake 30s"},
			{10 * time.Second, 200, "none; MemoryPressure; wake 1m0s"}, // the grace period begins again
			{20 * time.Second, 10, "met memory.available 200/10; MemoryPressure; wake 50s"},
			{49 * time.Second, 10, "met memory.available 200/10; MemoryPressure; wake 50s"},
			{50 * time.Second, 20, "due memory.available 200/20; MemoryPressure; wake 1m50s"},
			{60 * time.Second, 200, "none; MemoryPressure; wake 1m50s"},
		}},
		"hard threshold before soft threshold": {[]Threshold{hard, soft}, []step{
			{0, 150, "met memory.available 200/150; MemoryPressure; wake 30s"},
			{30 * time.Second, 90, "due memory.available 100/90, memory.available 200/90; MemoryPressure; wake 1m30s"},
		}},
		"not observed": {[]Threshold{soft, hard}, []step{
			{0, 150, "met memory.available 200/150; MemoryPressure; wake 30s"},
			{20 * time.Second, -1, "none; MemoryPressure; wake 1m20s"},
			{30 * time.Second, 150, "due memory.available 200/150; MemoryPressure; wake 1m30s"},
		}},
		"never observed":           {[]Threshold{hard}, []step{{0, -1, "none"}}},
		"signal without threshold": {[]Threshold{disk}, []step{{0, 0, "none"}}},
	} {
		var s State
		for i, step := range test.steps {
			o := available(map[Signal]int64{MemoryAvailable: step.available})
			if step.available < 0 {
				delete(o.Signals, MemoryAvailable)
			}
			d := Decide(Policy{Thresholds: test.thresholds, TransitionPeriod: time.Minute}, s, o, began.Add(step.after))
			if got := describe(d); got != step.want {
				t.Errorf("%s, step %d:\n got %s\nwant %s", name, i, got, step.want)
			}
			s = d.State
		}
	}
}

// describe returns a line for a decision.
func describe(d Decision) string {
	list := func(all []MetThreshold) string {
		var texts []string
		for _, m := range all {
			texts = append(texts, fmt.Sprintf("%s %d/%d", m.Signal, m.Quantity, m.Available))
		}
		return strings.Join(texts, ", ")
	}
	text := "none"
	switch {
	case len(d.Due) > 0:
		text = "due " + list(d.Due)
	case len(d.Met) > 0:
		text = "met " + list(d.Met)
	}
	for _, kind := range d.Conditions.Types() {
		text += "; " + string(kind)
	}
	if !d.WakeAt.IsZero() {
		text += "; wake " + d.WakeAt.Sub(began).String()
	}
	return text
}

// TestDecide_Signals checks the order of the due thresholds, and their conditions, for each layout.
func TestDecide_Signals(t *testing.T) {
	var p Policy
	low := map[Signal]int64{}
	for _, s := range slices.Backward(Signals) {
		low[s] = 1
		if s != ContainerfsAvailable && s != ContainerfsInodesFree {
			p.Thresholds = append(p.Thresholds, Threshold{Signal: s, Limit: Limit{Share: .1}})
		}
	}
	d := Decide(p, State{}, available(low), began)
	var due []Signal
	for _, m := range d.Due {
		due = append(due, m.Signal)
	}
	if !slices.Equal(due, Signals) {
		t.Errorf("due: got %v, want %v", due, Signals)
	}
	if d.Conditions != (Conditions{true, true, true}) {
		t.Errorf("conditions: got %+v, want all", d.Conditions)
	}
	for layout, want := range map[Layout]float32{oneDisk: .1, {1, 2, 2}: .2, {1, 2, 1}: .1, {1, 1, 2}: .1, {1, 2, 3}: .1} {
		p := Policy{Thresholds: []Threshold{{Signal: NodefsAvailable, Limit: Limit{Share: .1}}, {Signal: ImagefsAvailable, Limit: Limit{Share: .2}}}}
		for _, threshold := range p.effectiveThresholds(layout) {
			if threshold.Signal == ContainerfsAvailable && threshold.Limit.Share != want {
				t.Errorf("%+v: limit of containerfs: got %v, want %v", layout, threshold.Limit.Share, want)
			}
		}
	}
}

// TestDecide_Urgency checks that memory comes before other resources, and that otherwise a hard
// threshold comes before a soft threshold of another signal, because the pod that is evicted because of
// a soft threshold may need its whole grace period.
func TestDecide_Urgency(t *testing.T) {
	threshold := func(s Signal, grace time.Duration) Threshold {
		return Threshold{Signal: s, Limit: Limit{Share: .1}, GracePeriod: grace}
	}
	p := Policy{Thresholds: []Threshold{
		threshold(AllocatableMemoryAvailable, 0), threshold(PIDAvailable, 0), threshold(ImagefsInodesFree, 0),
		threshold(MemoryAvailable, time.Minute), threshold(NodefsAvailable, time.Minute),
	}}
	o := Observations{Signals: map[Signal]Observation{}, Layout: oneDisk}
	for _, s := range []Signal{MemoryAvailable, AllocatableMemoryAvailable, NodefsAvailable, ImagefsInodesFree, PIDAvailable} {
		o.Signals[s] = Observation{1000, 1}
	}
	d := Decide(p, Decide(p, State{}, o, began).State, o, began.Add(time.Minute))
	var got []Signal
	for _, m := range d.Due {
		got = append(got, m.Signal)
	}
	want := []Signal{AllocatableMemoryAvailable, MemoryAvailable, ImagefsInodesFree, PIDAvailable, NodefsAvailable}
	if !slices.Equal(got, want) {
		t.Errorf("due: got %v, want %v", got, want)
	}
}

func TestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit               Limit
		capacity, available int64
		want                bool
	}{
		"below":            {Limit{Amount: 100}, 1000, 99, true},
		"equal":            {Limit{Amount: 100}, 1000, 100, false},
		"share":            {Limit{Share: .1}, 1000, 99, true},
		"equal share":      {Limit{Share: .1}, 1000, 100, false},
		"unknown capacity": {Limit{Amount: 100}, 0, 0, false},
		"no limit":         {Limit{}, 1000, 0, false},
		"very large disk":  {Limit{Share: .1}, 1 << 56, 1 << 50, true},
		"huge amount":      {Limit{Amount: 1<<63 - 1}, 1 << 60, 1 << 60, true},
	} {
		if got := test.limit.IsCrossed(test.capacity, test.available); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		threshold := Threshold{Limit: test.limit, MinReclaim: Limit{Amount: 1<<63 - 1}}
		if o := (Observation{test.capacity, test.available}); test.want && threshold.IsResolved(o) {
			t.Errorf("%s: IsResolved: got true, want false while the limit is crossed", name)
		}
	}
}

// TestDecide_Laws checks properties of decisions about random observations.
func TestDecide_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		var s State
		now := began
		metSince := map[Threshold]time.Time{} // by the observations only
		lastMet := map[v1.NodeConditionType]time.Time{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			o := drawObservations(t)
			before := State{maps.Clone(s.metSince), slices.Clone(s.unresolved), maps.Clone(s.lastMetAt)}
			d := Decide(p, s, o, now)
			if again := Decide(p, s, o, now); !reflect.DeepEqual(d, again) {
				t.Fatalf("equal inputs: got different decisions %+v and %+v", d, again)
			}
			if !reflect.DeepEqual(before, s) {
				t.Fatalf("Decide modified the previous state: got %+v, want %+v", s, before)
			}
			checkDue(t, d, o)
			for _, threshold := range p.effectiveThresholds(o.Layout) {
				if threshold.Limit.IsCrossed(o.Signals[threshold.Signal].Capacity, o.Signals[threshold.Signal].Available) {
					if _, ok := metSince[threshold]; !ok {
						metSince[threshold] = now
					}
					lastMet[threshold.Signal.Condition()] = now
					isDue := slices.ContainsFunc(d.Due, func(m MetThreshold) bool { return m.Threshold == threshold })
					if now.Sub(metSince[threshold]) >= threshold.GracePeriod && !isDue {
						t.Fatalf("threshold %s, which is met since %s: got not due, want due after its grace period", threshold, now.Sub(metSince[threshold]))
					}
				} else if _, observed := o.Signals[threshold.Signal]; observed {
					delete(metSince, threshold)
				}
			}
			for kind, last := range lastMet {
				if now.Sub(last) < p.TransitionPeriod && !d.Conditions.Has(kind) {
					t.Fatalf("condition %s: got false %s after its threshold was met, want true until the transition period ends", kind, now.Sub(last))
				}
			}
			for _, kind := range d.Conditions.Types() {
				if _, ever := lastMet[kind]; !ever {
					t.Fatalf("condition %s: got true, want false because no threshold was ever met", kind)
				}
			}
			if !d.WakeAt.IsZero() && !d.WakeAt.After(now) {
				t.Fatalf("got wake time %s, want one after now (%s)", d.WakeAt, now)
			}
			s = d.State
		}
	})
}

// checkDue checks that each due threshold is observed, met including the minimum reclaim, and in the
// list Met.
func checkDue(t *rapid.T, d Decision, o Observations) {
	for _, m := range d.Due {
		observed, ok := o.Signals[m.Signal]
		if !ok || m.IsResolved(observed) || m.Available != observed.Available {
			t.Fatalf("due threshold: got %+v with observation %+v; want one that is met and has the observed amount", m, observed)
		}
		if !slices.Contains(d.Met, m) {
			t.Fatalf("due threshold %+v: got it missing in Met, want it there", m)
		}
		if !d.Conditions.Has(m.Signal.Condition()) {
			t.Fatalf("due threshold %+v: got its condition false, want true", m)
		}
	}
	rank := func(m MetThreshold) (n int) {
		if m.Signal.Resource() != v1.ResourceMemory {
			n += 2 * len(Signals)
		}
		if !m.IsHard() {
			n += len(Signals)
		}
		return n + slices.Index(Signals, m.Signal)
	}
	if !slices.IsSortedFunc(d.Due, func(a, b MetThreshold) int { return rank(a) - rank(b) }) {
		t.Fatalf("due thresholds: got %+v, want memory first, hard thresholds before soft thresholds, and then the order of Signals", d.Due)
	}
}

func drawPolicy(t *rapid.T) Policy {
	p := Policy{TransitionPeriod: rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(t, "transition period")}
	for _, s := range []Signal{MemoryAvailable, NodefsAvailable, ImagefsInodesFree, PIDAvailable} {
		for _, grace := range []time.Duration{0, time.Minute} {
			if rapid.Bool().Draw(t, "threshold") {
				p.Thresholds = append(p.Thresholds, Threshold{
					Signal: s, Limit: Limit{Amount: rapid.Int64Range(1, 500).Draw(t, "limit")}, GracePeriod: grace,
					MinReclaim: Limit{Amount: rapid.SampledFrom([]int64{0, 100}).Draw(t, "reclaim")},
				})
			}
		}
	}
	return p
}

func drawObservations(t *rapid.T) Observations {
	o := Observations{Signals: map[Signal]Observation{}, Layout: Layout{1, 1, 1}}
	for _, s := range Signals {
		if rapid.IntRange(0, 5).Draw(t, "observed") > 0 {
			o.Signals[s] = Observation{1000, rapid.Int64Range(0, 1000).Draw(t, "available")}
		}
	}
	return o
}
