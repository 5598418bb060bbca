package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestNodeStart checks that each step of the start of the node is measured once, and only if podd has
// created the Node.
func TestNodeStart(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	attempt, registration, ready := nodeStartCounts.RecordRegistrationAttempt, nodeStartCounts.RecordRegistration, nodeStartCounts.RecordNodeReady
	type step struct {
		record func(nodeStartCounts, time.Time)
		at     int64
	}
	for _, test := range []struct {
		name   string
		booted time.Time
		steps  []step
		want   []float64 // in the order of nodeStartCounts.collectors
	}{
		{"nothing", at(10), nil, []float64{0, 0, 0, 0, 0}},
		{"attempt", at(10), []step{{attempt, 40}}, []float64{0, 0, 0, 0, 0}},
		{"Node of another process", at(10), []step{{ready, 50}}, []float64{0, 0, 0, 0, 0}},
		{"another client created the Node", at(10), []step{{attempt, 40}, {ready, 50}}, []float64{0, 0, 0, 0, 0}},
		{"registered", at(10), []step{{attempt, 40}, {attempt, 41}, {registration, 43}}, []float64{10, 20, 3, 0, 0}},
		{"ready", at(10), []step{{attempt, 40}, {registration, 43}, {ready, 50}}, []float64{10, 20, 3, 7, 40}},
		{"again", at(10), []step{{attempt, 40}, {registration, 43}, {ready, 50}, {registration, 60}, {ready, 70}}, []float64{10, 20, 3, 7, 40}},
		{"unknown boot", time.Time{}, []step{{attempt, 40}, {registration, 43}, {ready, 50}}, []float64{0, 20, 3, 7, 0}},
	} {
		c := newNodeStartCounts(test.booted, at(20))
		for _, s := range test.steps {
			s.record(c, at(s.at))
		}
		var got []float64
		for _, one := range c.collectors() {
			r := prometheus.NewRegistry()
			r.MustRegister(one)
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, families[0].Metric[0].GetGauge().GetValue())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}
