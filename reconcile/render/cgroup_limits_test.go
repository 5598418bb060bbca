package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

func TestPodCgroup(t *testing.T) {
	c := func(r v1.ResourceRequirements) v1.Container { return v1.Container{Resources: r} }
	both := amounts("100m", "1", "64Mi", "128Mi")
	whole := amounts("1", "1", "128Mi", "128Mi")
	for name, tt := range map[string]struct {
		spec v1.PodSpec
		node Node
		want Cgroup
	}{
		"best effort": {
			v1.PodSpec{Containers: []v1.Container{c(v1.ResourceRequirements{})}}, Node{},
			Cgroup{Path: "/kubepods/besteffort/podu", CPUShares: 2},
		},
		"burstable, all limited": {
			v1.PodSpec{Containers: []v1.Container{c(both), c(both)}}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 204, CPUQuota: 200000, CPUPeriod: 100000, Memory: 256 << 20},
		},
		"burstable, one without limits": {
			v1.PodSpec{Containers: []v1.Container{c(both), c(amounts("250m", "", "", ""))}}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 358},
		},
		"burstable, an init container without a cpu limit": {
			v1.PodSpec{InitContainers: []v1.Container{c(amounts("", "", "", "64Mi"))}, Containers: []v1.Container{c(both)}}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 102, Memory: 128 << 20},
		},
		"burstable, one with limits of 0": {
			v1.PodSpec{Containers: []v1.Container{c(both), c(amounts("", "0", "", "0"))}}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 102},
		},
		"guaranteed": {
			v1.PodSpec{Containers: []v1.Container{c(whole)}}, Node{PodPIDsLimit: 64},
			Cgroup{Path: "/kubepods/podu", CPUShares: 1024, CPUQuota: 100000, CPUPeriod: 100000, Memory: 128 << 20, Pids: 64},
		},
		"systemd": {
			v1.PodSpec{Containers: []v1.Container{c(whole)}}, Node{CgroupDriver: "systemd"},
			Cgroup{Path: "/kubepods.slice/kubepods-podu.slice", UsesSystemd: true, CPUShares: 1024, CPUQuota: 100000, CPUPeriod: 100000, Memory: 128 << 20},
		},
		"limits of the pod": {
			v1.PodSpec{Resources: &both, Containers: []v1.Container{c(v1.ResourceRequirements{})}}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 102, CPUQuota: 100000, CPUPeriod: 100000, Memory: 128 << 20},
		},
		"overhead": {
			v1.PodSpec{
				Overhead:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("64Mi")},
				Containers: []v1.Container{c(amounts("1", "1", "", ""))},
			}, Node{},
			Cgroup{Path: "/kubepods/burstable/podu", CPUShares: 2048, CPUQuota: 200000, CPUPeriod: 100000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := PodCgroup(&manifest.Pod{UID: "u", Object: &v1.Pod{Spec: tt.spec}}, tt.node)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCgroup_WithLimitsAtLeast checks that a limit of 0, which means no limit, is higher than every
// other limit.
func TestCgroup_WithLimitsAtLeast(t *testing.T) {
	none := Cgroup{CPUShares: 2}
	low := Cgroup{CPUShares: 100, CPUQuota: 10_000, CPUPeriod: quotaPeriod, Memory: 64 << 20}
	high := Cgroup{CPUShares: 200, CPUQuota: 20_000, CPUPeriod: quotaPeriod, Memory: 128 << 20}
	for _, test := range []struct{ c, b, want Cgroup }{
		{low, high, high},
		{high, low, high},
		{low, none, Cgroup{CPUShares: 100}},
		{none, low, Cgroup{CPUShares: 100}},
		{none, none, none},
		{Cgroup{CPUQuota: 10_000, CPUPeriod: quotaPeriod}, Cgroup{Memory: 1 << 20}, Cgroup{}},
	} {
		if diff := cmp.Diff(test.want, test.c.WithLimitsAtLeast(test.b)); diff != "" {
			t.Errorf("%+v with the limits of %+v (-want +got):\n%s", test.c, test.b, diff)
		}
	}
}

// TestQOSCgroups checks the limits of the cgroup of all pods and of the QoS classes. The limit of huge pages,
// which an earlier kubelet may have set, must be removed.
func TestQOSCgroups(t *testing.T) {
	n := Node{CPUs: "0-3", AllPodsLimit: Resources{MilliCPU: 2000, Memory: 1 << 30, Pids: 1000}, HugePageSizes: []string{"2MB", "1GB"}}
	want := []Cgroup{
		{
			Path: "/kubepods", CPUShares: 2048, CPUs: "0-3", Memory: 1 << 30, Pids: 1000,
			HugePages: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 1 << 62}, {PageSize: "1GB", Limit: 1 << 62}},
		},
		{Path: "/kubepods/burstable", CPUShares: 512},
		{Path: "/kubepods/besteffort", CPUShares: 2},
	}
	if diff := cmp.Diff(want, QOSCgroups(n, QOSRequests{BurstableMilliCPU: 500}), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPeriodicQOSCgroups checks that podd restores all values of the QoS classes, but of the cgroup of
// all pods only the memory protection.
func TestPeriodicQOSCgroups(t *testing.T) {
	sum := QOSRequests{BurstableMilliCPU: 500, BurstableMemory: 2 << 20, GuaranteedMemory: 1 << 20}
	limit := Resources{MilliCPU: 2000, Memory: 1 << 30, Pids: 1000}
	bestEffort := Cgroup{Path: "/kubepods/besteffort", CPUShares: 2}
	for name, tt := range map[string]struct {
		node Node
		want []Cgroup
	}{
		"no cgroups of pods": {Node{WithoutPodCgroups: true}, nil},
		"cgroup v1":          {Node{CPUs: "0-3", AllPodsLimit: limit}, []Cgroup{{Path: "/kubepods/burstable", CPUShares: 512}, bestEffort}},
		"cgroup v2": {
			Node{CPUs: "0-3", AllPodsLimit: limit, UsesCgroupV2: true},
			[]Cgroup{{Path: "/kubepods/burstable", CPUShares: 512, Protection: &MemoryProtection{}}, bestEffort},
		},
		"protected memory": {
			Node{CPUs: "0-3", AllPodsLimit: limit, UsesCgroupV2: true, MemoryQoS: MemoryQoS{ReservesRequests: true}},
			[]Cgroup{
				{Path: "/kubepods", Protection: &MemoryProtection{Min: 3 << 20, Low: 2 << 20}},
				{Path: "/kubepods/burstable", CPUShares: 512, Protection: &MemoryProtection{Low: 2 << 20}}, bestEffort,
			},
		},
	} {
		if diff := cmp.Diff(tt.want, PeriodicQOSCgroups(tt.node, sum)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
