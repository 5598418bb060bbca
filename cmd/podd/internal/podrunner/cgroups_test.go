package podrunner

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/reconcile/render"
)

// TestNewCgroupCreator checks that the cgroup of the QoS class BestEffort gets the lowest CPU weight
// before the cgroup of a pod of this class is created, and that no other cgroup of a QoS class changes.
func TestNewCgroupCreator(t *testing.T) {
	on := render.Node{CgroupRoot: "/ci"}
	failed := errors.New("no cgroups")
	for name, tt := range map[string]struct {
		pod     render.Cgroup
		failing string // the cgroup that cannot be created
		want    []render.Cgroup
	}{
		"best effort": {
			pod:  render.Cgroup{Path: "/ci/kubepods/besteffort/podu", CPUShares: 2},
			want: []render.Cgroup{{Path: "/ci/kubepods/besteffort", CPUShares: 2}, {Path: "/ci/kubepods/besteffort/podu", CPUShares: 2}},
		},
		"best effort, systemd": {
			pod: render.Cgroup{Path: "/ci.slice/ci-kubepods.slice/ci-kubepods-besteffort.slice/ci-kubepods-besteffort-podu.slice", UsesSystemd: true, CPUShares: 2},
			want: []render.Cgroup{
				{Path: "/ci.slice/ci-kubepods.slice/ci-kubepods-besteffort.slice", UsesSystemd: true, CPUShares: 2},
				{Path: "/ci.slice/ci-kubepods.slice/ci-kubepods-besteffort.slice/ci-kubepods-besteffort-podu.slice", UsesSystemd: true, CPUShares: 2},
			},
		},
		"class cannot be created": {
			pod:     render.Cgroup{Path: "/ci/kubepods/besteffort/podu"},
			failing: "/ci/kubepods/besteffort",
			want:    []render.Cgroup{{Path: "/ci/kubepods/besteffort", CPUShares: 2}},
		},
		"burstable": {
			pod:  render.Cgroup{Path: "/ci/kubepods/burstable/podu", CPUShares: 512},
			want: []render.Cgroup{{Path: "/ci/kubepods/burstable/podu", CPUShares: 512}},
		},
		"guaranteed": {
			pod:  render.Cgroup{Path: "/ci/kubepods/podu", CPUShares: 512},
			want: []render.Cgroup{{Path: "/ci/kubepods/podu", CPUShares: 512}},
		},
	} {
		var created []render.Cgroup
		err := newCgroupCreator(on, func(c render.Cgroup) error {
			created = append(created, c)
			if c.Path == tt.failing {
				return failed
			}
			return nil
		})(tt.pod)
		if (err != nil) != (tt.failing != "") {
			t.Errorf("%s: got error %v, want one: %t", name, err, tt.failing != "")
		}
		if diff := cmp.Diff(tt.want, created); diff != "" {
			t.Errorf("%s: created cgroups (-want +got):\n%s", name, diff)
		}
	}
}
