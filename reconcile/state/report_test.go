package state

import (
	"testing"

	"podd/runtime"
)

// TestReport_Equal checks that reports with different containers or states of containers differ, because the
// metrics count the containers in the runtime.
func TestReport_Equal(t *testing.T) {
	report := func(containers ...runtime.Container) *Report {
		return &Report{Observed: []runtime.Incarnation{{Containers: containers}}}
	}
	r := report(runtime.Container{ID: "a", State: runtime.Running})
	for name, test := range map[string]struct {
		later *Report
		want  bool
	}{
		"same":              {report(runtime.Container{ID: "a", State: runtime.Running, Message: "other"}), true},
		"exited":            {report(runtime.Container{ID: "a", State: runtime.Exited}), false},
		"replaced":          {report(runtime.Container{ID: "b", State: runtime.Running}), false},
		"another container": {report(runtime.Container{ID: "a", State: runtime.Running}, runtime.Container{ID: "b", State: runtime.Exited}), false},
		"no sandbox":        {&Report{}, false},
		"other plugin":      {&Report{Observed: r.Observed, VolumePlugins: map[string]string{"data": "kubernetes.io/nfs"}}, false},
	} {
		if got := r.Equal(test.later); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
