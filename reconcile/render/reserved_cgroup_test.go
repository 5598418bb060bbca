package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestReservedCgroup_Limits(t *testing.T) {
	all := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("1Gi"), "pid": resource.MustParse("100"),
	}
	v2 := Node{UsesCgroupV2: true}
	cpus := Node{CPUs: "0-3"}
	huge := Node{HugePageSizes: []string{"2MB", "1GB"}}
	noPages := []*cri.HugepageLimit{{PageSize: "2MB"}, {PageSize: "1GB"}}
	for name, tt := range map[string]struct {
		node     Node
		reserved ReservedCgroup
		want     Cgroup
	}{
		"all resources": {
			Node{}, ReservedCgroup{Path: "/kube", Resources: all},
			Cgroup{Path: "/kube", CPUShares: 512, Memory: 1 << 30, Pids: 100},
		},
		"compressible resources only": {
			Node{}, ReservedCgroup{Path: "/kube", Resources: all, CompressibleOnly: true},
			Cgroup{Path: "/kube", CPUShares: 512},
		},
		"huge pages cannot be reserved": {
			huge, ReservedCgroup{Path: "/kube", Resources: all},
			Cgroup{Path: "/kube", CPUShares: 512, Memory: 1 << 30, Pids: 100, HugePages: noPages},
		},
		"huge pages with compressible resources only": {
			huge, ReservedCgroup{Path: "/kube", Resources: all, CompressibleOnly: true},
			Cgroup{Path: "/kube", CPUShares: 512, HugePages: noPages},
		},
		"CPUs of the host": {
			cpus, ReservedCgroup{Path: "/kube", Resources: all},
			Cgroup{Path: "/kube", CPUShares: 512, CPUs: "0-3", Memory: 1 << 30, Pids: 100},
		},
		"CPUs of the host with compressible resources only": {
			cpus, ReservedCgroup{Path: "/kube", Resources: all, CompressibleOnly: true},
			Cgroup{Path: "/kube", CPUShares: 512, CPUs: "0-3"},
		},
		"no resources with limits": {
			Node{}, ReservedCgroup{Path: "/kube", Resources: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")}},
			Cgroup{Path: "/kube"},
		},
		"cpu of 0": {
			Node{}, ReservedCgroup{Path: "/kube", Resources: v1.ResourceList{v1.ResourceCPU: resource.MustParse("0")}},
			Cgroup{Path: "/kube", CPUShares: 2},
		},
		"protected memory": {
			v2, ReservedCgroup{Path: "/kube", Resources: all, ProtectsMemory: true},
			Cgroup{Path: "/kube", CPUShares: 512, Memory: 1 << 30, Pids: 100, Protection: &MemoryProtection{Min: 1 << 30, Low: unchanged}},
		},
		"protected memory with cgroup v1": {
			Node{}, ReservedCgroup{Path: "/kube", Resources: all, ProtectsMemory: true},
			Cgroup{Path: "/kube", CPUShares: 512, Memory: 1 << 30, Pids: 100},
		},
		"protected memory with compressible resources only": {
			v2, ReservedCgroup{Path: "/kube", Resources: all, ProtectsMemory: true, CompressibleOnly: true},
			Cgroup{Path: "/kube", CPUShares: 512},
		},
	} {
		if diff := cmp.Diff(tt.want, tt.reserved.Limits(tt.node), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReservedCgroup_Path(t *testing.T) {
	for _, tt := range []struct{ path, cgroupfs, systemd string }{
		{"/kube", "/kube", "/kube.slice"},
		{"kube/", "/kube", "/kube.slice"},
		{"/runtime/kube", "/runtime/kube", "/kube.slice"},
		{"/system.slice", "/system.slice", "/system.slice"},
		{"/system.slice/system-kube.slice", "/system.slice/system-kube.slice", "/system.slice/system-kube.slice"},
		{"system-kube_a", "/system-kube_a", "/system.slice/system-kube_a.slice"},
	} {
		for driver, want := range map[string]string{"cgroupfs": tt.cgroupfs, "systemd": tt.systemd} {
			got := ReservedCgroup{Path: tt.path}.Limits(Node{CgroupDriver: driver})
			if got.Path != want || got.UsesSystemd != (driver == "systemd") {
				t.Errorf("path %s with driver %s: got path %s and UsesSystemd %t, want path %s and UsesSystemd %t", tt.path, driver, got.Path, got.UsesSystemd, want, driver == "systemd")
			}
		}
	}
}

// TestMemoryProtection_Unchanged checks that podd does not write memory.low of a cgroup if the value
// is unchanged, because podd did not create that cgroup.
func TestMemoryProtection_Unchanged(t *testing.T) {
	want := map[string]string{"memory.min": "8192"}
	if diff := cmp.Diff(want, MemoryProtection{Min: 8192, Low: unchanged}.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
