package render

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// files returns the cgroup files of a memory protection with these values.
func files(low, least, high string) map[string]string {
	return map[string]string{"memory.min": least, "memory.low": low, "memory.high": high}
}

// TestMemoryQoS checks the memory protection of a container and of its pod on a host with 4 GiB of
// memory that is not reserved.
func TestMemoryQoS(t *testing.T) {
	tiered, throttled := MemoryQoS{ReservesRequests: true}, MemoryQoS{ThrottlingFactor: 0.9}
	both := MemoryQoS{ReservesRequests: true, ThrottlingFactor: 0.5}
	const none = "max"
	for name, tt := range map[string]struct {
		qos            MemoryQoS
		own            v1.ResourceRequirements
		pod            *v1.ResourceRequirements
		container, all map[string]string
	}{
		"default":                      {MemoryQoS{}, amounts("", "", "1Gi", "2Gi"), nil, files("0", "0", none), files("0", "0", none)},
		"burstable":                    {tiered, amounts("", "", "1Gi", "2Gi"), nil, files("1073741824", "0", none), files("1073741824", "0", none)},
		"guaranteed":                   {tiered, amounts("1", "1", "1Gi", "1Gi"), nil, files("0", "1073741824", none), files("0", "1073741824", none)},
		"best effort":                  {both, v1.ResourceRequirements{}, nil, files("0", "0", "2147483648"), files("0", "0", none)},
		"throttled below the limit":    {throttled, amounts("", "", "1Gi", "2Gi"), nil, files("0", "0", "2040107008"), files("0", "0", none)},
		"throttled without a request":  {throttled, amounts("", "", "0", "1Gi"), nil, files("0", "0", "966365184"), files("0", "0", none)},
		"throttled without a limit":    {throttled, amounts("", "", "1Gi", ""), nil, files("0", "0", "3972841472"), files("0", "0", none)},
		"guaranteed is not throttled":  {both, amounts("1", "1", "1Gi", "1Gi"), nil, files("0", "1073741824", none), files("0", "1073741824", none)},
		"less than a page to throttle": {throttled, amounts("", "", "4096", "5000"), nil, files("0", "0", none), files("0", "0", none)},
		"request of the whole node":    {throttled, amounts("", "", "4Gi", ""), nil, files("0", "0", none), files("0", "0", none)},
		"limit of the pod": {both, amounts("", "", "1Gi", ""), new(amounts("", "", "2Gi", "3Gi")),
			files("1073741824", "0", none), files("2147483648", "0", "2684354560")},
		"limit of the pod and of the container": {both, amounts("", "", "1Gi", "2Gi"), new(amounts("", "", "2Gi", "3Gi")),
			files("1073741824", "0", "1610612736"), files("2147483648", "0", "2684354560")},
		"guaranteed by the resources of the pod": {both, amounts("", "", "1Gi", ""), new(amounts("1", "1", "2Gi", "2Gi")),
			files("0", "1073741824", none), files("0", "2147483648", none)},
		"cpu of the pod": {both, amounts("", "", "1Gi", "2Gi"), new(amounts("1", "2", "", "")),
			files("1073741824", "0", "1610612736"), files("1073741824", "0", "1610612736")},
	} {
		t.Run(name, func(t *testing.T) {
			tt.qos.UnreservedMemory = 4 << 30
			n := Node{UsesCgroupV2: true, MemoryQoS: tt.qos, Capacity: Resources{Memory: 5 << 30}, Allocatable: Resources{Memory: 3 << 30}}
			pod := &v1.Pod{Spec: v1.PodSpec{Resources: tt.pod, Containers: []v1.Container{{Name: "c", Resources: tt.own}}}}
			got := ContainerResources(n, pod, &pod.Spec.Containers[0]).Unified
			delete(got, "memory.oom.group")
			if diff := cmp.Diff(tt.container, got); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
			p := &manifest.Pod{UID: "u", Object: pod}
			if diff := cmp.Diff(tt.all, PodCgroup(p, n).Protection.Files()); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			n.UsesCgroupV2 = false
			if got := ContainerResources(n, pod, &pod.Spec.Containers[0]).Unified; len(got) > 0 || PodCgroup(p, n).Protection != nil {
				t.Errorf("cgroup v1: got %v and %v, want nothing", got, PodCgroup(p, n).Protection)
			}
		})
	}
}

// TestMemoryQoS_PageSize checks that memory.high is a multiple of the page size.
func TestMemoryQoS_PageSize(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: amounts("", "", "0", "1000000")}}}}
	for page, want := range map[int64]string{0: "897024", 4096: "897024", 65536: "851968"} {
		n := Node{UsesCgroupV2: true, PageSize: page, MemoryQoS: MemoryQoS{ThrottlingFactor: 0.9}}
		if got := ContainerResources(n, pod, &pod.Spec.Containers[0]).Unified["memory.high"]; got != want {
			t.Errorf("pages of %d bytes: got %s, want %s", page, got, want)
		}
	}
}

// TestWithLimitsAtLeast_MemoryProtection checks the memory protection of a cgroup during a resize.
// Each of its values is the higher of the values for the former size and for the new size.
func TestWithLimitsAtLeast_MemoryProtection(t *testing.T) {
	small, large := Cgroup{Protection: &MemoryProtection{Low: 1, High: 5}}, Cgroup{Protection: &MemoryProtection{Low: 3, High: unthrottled}}
	for _, got := range []Cgroup{small.WithLimitsAtLeast(large), large.WithLimitsAtLeast(small)} {
		if want := files("3", "0", "max"); !maps.Equal(got.Protection.Files(), want) {
			t.Errorf("memory protection during a resize: got %v, want %v", got.Protection.Files(), want)
		}
	}
	if small.Protection.High != 5 || (Cgroup{}).WithLimitsAtLeast(small).Protection != nil {
		t.Error("WithLimitsAtLeast changed its receiver, or added a memory protection to a cgroup without one; want neither")
	}
}

// TestQOSCgroups_MemoryProtection checks the protection of the cgroup of all pods, and of the
// cgroups of the QoS classes.
func TestQOSCgroups_MemoryProtection(t *testing.T) {
	sum := QOSRequests{}
	for _, r := range []v1.ResourceRequirements{amounts("1", "1", "1Gi", "1Gi"), amounts("", "", "2Gi", ""), amounts("500m", "", "1Gi", ""), {}} {
		sum = sum.Add(NewQOSRequests(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: r}}}}))
	}
	if want := (QOSRequests{BurstableMilliCPU: 500, BurstableMemory: 3 << 30, GuaranteedMemory: 1 << 30}); sum != want {
		t.Fatalf("sum of the requests: got %+v, want %+v", sum, want)
	}
	if got := sum.Sub(sum); got != (QOSRequests{}) {
		t.Errorf("sum of the requests minus itself: got %+v, want the zero value", got)
	}
	for name, tt := range map[string]struct {
		node Node
		want []*MemoryProtection
	}{
		"cgroup v1": {Node{MemoryQoS: MemoryQoS{ReservesRequests: true}}, []*MemoryProtection{nil, nil, nil}},
		"tiered":    {Node{UsesCgroupV2: true, MemoryQoS: MemoryQoS{ReservesRequests: true}}, []*MemoryProtection{{Min: 4 << 30, Low: 3 << 30}, {Low: 3 << 30}, nil}},
		"none":      {Node{UsesCgroupV2: true, MemoryQoS: MemoryQoS{ThrottlingFactor: 0.9}}, []*MemoryProtection{{}, {}, nil}},
	} {
		var got []*MemoryProtection
		for _, c := range QOSCgroups(tt.node, sum) {
			got = append(got, c.Protection)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// An administrator may have set memory.high of these cgroups, so podd does not change it.
	if _, set := (MemoryProtection{}).Files()["memory.high"]; set {
		t.Error("got a value of memory.high, want none")
	}
}
