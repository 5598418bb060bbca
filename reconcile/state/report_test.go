package state

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// TestReport_Equal checks that reports differ if a fact differs that a reader uses. For example, the metrics count
// the containers in the runtime, and the ranking of pods for eviction uses their allocated sizes.
func TestReport_Equal(t *testing.T) {
	report := func(containers ...runtime.Container) *Report {
		return &Report{Observed: []runtime.Incarnation{{Containers: containers}}}
	}
	r := report(runtime.Container{ID: "a", State: runtime.Running})
	sized := func(cpu string) []*manifest.Pod {
		return []*manifest.Pod{{UID: "u", Object: &v1.Pod{}, ContainerHashes: map[string]manifest.ContainerHash{"main": {Resources: cpu}}}}
	}
	r.ReservedVersions = sized("cpu=1")
	with := func(change func(*Report)) *Report {
		later := *r
		change(&later)
		return &later
	}
	for name, test := range map[string]struct {
		later *Report
		want  bool
	}{
		"same": {with(func(l *Report) {
			l.Observed = report(runtime.Container{ID: "a", State: runtime.Running, Message: "other"}).Observed
		}), true},
		"exited":   {with(func(l *Report) { l.Observed = report(runtime.Container{ID: "a", State: runtime.Exited}).Observed }), false},
		"replaced": {with(func(l *Report) { l.Observed = report(runtime.Container{ID: "b", State: runtime.Running}).Observed }), false},
		"another container": {with(func(l *Report) {
			l.Observed = report(runtime.Container{ID: "a", State: runtime.Running}, runtime.Container{ID: "b", State: runtime.Exited}).Observed
		}), false},
		"no sandbox":        {with(func(l *Report) { l.Observed = nil }), false},
		"other plugin":      {with(func(l *Report) { l.VolumePlugins = map[string]string{"data": "kubernetes.io/nfs"} }), false},
		"same size":         {with(func(l *Report) { l.ReservedVersions = sized("cpu=1") }), true},
		"other size":        {with(func(l *Report) { l.ReservedVersions = sized("cpu=2") }), false},
		"also another size": {with(func(l *Report) { l.ReservedVersions = append(sized("cpu=1"), sized("cpu=2")...) }), false},
		"in its source":     {with(func(l *Report) { l.IsInSource = true }), false},
	} {
		if got := r.Equal(test.later); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
