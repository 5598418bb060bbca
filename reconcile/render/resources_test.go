package render

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"podd/manifest"
)

var always = v1.ContainerRestartPolicyAlways

// amounts returns resource requirements; "" means that an amount is not set.
func amounts(cpuRequest, cpuLimit, memRequest, memLimit string) v1.ResourceRequirements {
	r := v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
	put := func(list v1.ResourceList, name v1.ResourceName, text string) {
		if text != "" {
			list[name] = resource.MustParse(text)
		}
	}
	put(r.Requests, v1.ResourceCPU, cpuRequest)
	put(r.Limits, v1.ResourceCPU, cpuLimit)
	put(r.Requests, v1.ResourceMemory, memRequest)
	put(r.Limits, v1.ResourceMemory, memLimit)
	return r
}

// TestShares checks the CPU shares that result from CPU requests.
func TestShares(t *testing.T) {
	for _, tt := range []struct{ milli, want int64 }{
		{0, 2}, {1, 2}, {2, 2}, {100, 102}, {250, 256}, {1000, 1024}, {256000, 262144}, {999999, 262144}, {math.MaxInt64, 262144},
	} {
		if got := cpuShares(tt.milli); got != tt.want {
			t.Errorf("shares(%d): got %d, want %d", tt.milli, got, tt.want)
		}
	}
}

// TestSumContainers checks the requests of a pod that result from the requests of its containers.
func TestSumContainers(t *testing.T) {
	c := func(name, cpu string, sidecar bool) v1.Container {
		c := v1.Container{Name: name, Resources: amounts(cpu, "", "", "")}
		if sidecar {
			c.RestartPolicy = &always
		}
		return c
	}
	tests := []struct {
		name string
		init []v1.Container
		want string
	}{
		{"regular containers only", nil, "300m"},
		{"small init container", []v1.Container{c("i", "200m", false)}, "300m"},
		{"large init container", []v1.Container{c("i", "1", false)}, "1"},
		{"largest init container, not the sum", []v1.Container{c("i", "1", false), c("j", "2", false)}, "2"},
		{"sidecar adds to regular containers", []v1.Container{c("s", "500m", true)}, "800m"},
		{"sidecar adds to later init containers", []v1.Container{c("s", "500m", true), c("i", "1", false)}, "1500m"},
		{"sidecar does not add to earlier init containers", []v1.Container{c("i", "1", false), c("s", "500m", true)}, "1"},
	}
	for _, tt := range tests {
		pod := &v1.Pod{Spec: v1.PodSpec{
			InitContainers: tt.init,
			Containers:     []v1.Container{c("a", "100m", false), c("b", "200m", false)},
		}}
		want := resource.MustParse(tt.want)
		if got := manifest.ContainerRequests(&pod.Spec)[v1.ResourceCPU]; got.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", tt.name, got.String(), tt.want)
		}
	}
}

// TestOOMScoreAdj checks the OOM score adjustment for QoS classes, priorities and requests.
func TestOOMScoreAdj(t *testing.T) {
	const memory = 4 << 30
	burst := amounts("", "", "1Gi", "")
	pod := func(r ...v1.ResourceRequirements) *v1.Pod {
		p := &v1.Pod{}
		for _, r := range r {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "c", Resources: r})
		}
		return p
	}
	critical := pod(v1.ResourceRequirements{})
	critical.Spec.PriorityClassName = "system-node-critical"
	cluster := pod(v1.ResourceRequirements{})
	cluster.Spec.PriorityClassName = "system-cluster-critical"
	tests := []struct {
		name   string
		pod    *v1.Pod
		memory int64
		want   int64
	}{
		{"best effort", pod(v1.ResourceRequirements{}), memory, 1000},
		{"guaranteed", pod(amounts("1", "1", "1Gi", "1Gi")), memory, -997},
		{"node critical", critical, memory, -997},
		{"cluster critical", cluster, memory, 1000},
		{"a quarter of the memory of the node", pod(burst), memory, 750},
		{"no memory requested", pod(amounts("1", "", "", "")), memory, 999},
		{"all memory of the node", pod(amounts("", "", "4Gi", "")), memory, 3},
		{"more than the memory of the node", pod(amounts("", "", "40Gi", "")), memory, 3},
		{"more than the memory of any node", pod(amounts("", "", "8Ei", "")), memory, 3},
		{"node with huge memory", pod(amounts("", "", "2Ei", "")), 4 << 60, 500},
		{"memory of the node unknown", pod(burst), 0, 999},
	}
	for _, tt := range tests {
		if got := oomScoreAdj(tt.pod, &tt.pod.Spec.Containers[0], tt.memory); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestOOMScoreAdj_Sidecars checks that a sidecar is not killed before the regular containers.
func TestOOMScoreAdj_Sidecars(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{
			{Name: "small", RestartPolicy: &always, Resources: amounts("", "", "1Mi", "")},
			{Name: "big", RestartPolicy: &always, Resources: amounts("", "", "3Gi", "")},
			{Name: "init", Resources: amounts("", "", "1Mi", "")},
		},
		Containers: []v1.Container{
			{Name: "a", Resources: amounts("", "", "1Gi", "")},
			{Name: "b", Resources: amounts("", "", "2Gi", "")},
		},
	}}
	for name, want := range map[string]int64{"small": 750, "big": 250, "init": 1000 - 0, "a": 750, "b": 500} {
		if name == "init" {
			want = 999 // 1Mi is less than a thousandth of the memory, so it does not change the score
		}
		if got := oomScoreAdj(pod, findContainer(&pod.Spec, name), 4<<30); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// TestOOMScoreAdj_Bounds checks the bounds for burstable pods.
func TestOOMScoreAdj_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(rapid.Int64Min(1).Draw(t, "request"), resource.BinarySI)},
		}}}}}
		got := oomScoreAdj(pod, &pod.Spec.Containers[0], rapid.Int64().Draw(t, "memory"))
		if got < 3 || got > 999 {
			t.Fatalf("got %d, want 3 to 999", got)
		}
	})
}

// TestHugePages checks that the limits contain every size of huge pages that the node has.
func TestHugePages(t *testing.T) {
	limits := v1.ResourceList{
		"hugepages-2Mi":   resource.MustParse("64Mi"),
		"hugepages-bogus": resource.MustParse("1Mi"),
		"memory":          resource.MustParse("1Gi"),
	}
	got := hugePages([]string{"2MB", "1GB"}, limits)
	if len(got) != 2 || got[0].PageSize != "2MB" || got[0].Limit != 64<<20 || got[1].PageSize != "1GB" || got[1].Limit != 0 {
		t.Errorf("got %v, want 2MB=64Mi and 1GB=0", got)
	}
}

// TestContainerResources_Variants checks resources without requests, and both cgroup versions.
func TestContainerResources_Variants(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: amounts("", "500m", "", "64Mi")}}}}
	c := &pod.Spec.Containers[0]
	r := ContainerResources(Node{UsesCgroupV2: true, SupportsSwapLimits: true}, pod, c)
	if r.CpuShares != 512 || r.CpuQuota != 50000 || r.CpuPeriod != 100000 || r.MemoryLimitInBytes != 64<<20 {
		t.Errorf("limit without a request: got %v, want 512 shares, a quota of 50000 per 100000 µs and 64Mi", r)
	}
	if r.Unified["memory.oom.group"] != "1" || r.Unified["memory.swap.max"] != "0" || r.MemorySwapLimitInBytes != 0 {
		t.Errorf("cgroup v2: got %v, want memory.oom.group 1, memory.swap.max 0 and no MemorySwapLimitInBytes", r)
	}
	r = ContainerResources(Node{UsesCgroupV2: true, SupportsSwapLimits: true, SingleProcessOOMKill: true}, pod, c)
	if _, isSet := r.Unified["memory.oom.group"]; isSet || r.Unified["memory.swap.max"] != "0" {
		t.Errorf("cgroup v2 with singleProcessOOMKill: got %v, want no memory.oom.group and memory.swap.max 0", r)
	}
	r = ContainerResources(Node{SupportsSwapLimits: true}, pod, c)
	if len(r.Unified) != 0 || r.MemorySwapLimitInBytes != 64<<20 {
		t.Errorf("cgroup v1: got %v, want MemorySwapLimitInBytes of 64Mi and no files of cgroup v2", r)
	}
}

// TestSwapShare checks shares on a host with 4 GiB of memory and 2 GiB of swap.
func TestSwapShare(t *testing.T) {
	host := Node{UsesCgroupV2: true, SupportsSwapLimits: true, SwapBytes: 2 << 30, Capacity: Resources{Memory: 4 << 30}}
	none := host
	none.SwapBytes = 0
	for name, tt := range map[string]struct {
		node     Node
		priority int32
		own      v1.ResourceRequirements
		want     string
	}{
		"a quarter of the memory": {host, 0, amounts("", "", "1Gi", ""), "536870912"},
		"with a limit":            {host, 0, amounts("", "", "1Gi", "2Gi"), "536870912"},
		"rounded down":            {host, 0, amounts("", "", "3", ""), "1"},
		"all memory":              {host, 0, amounts("", "", "4Gi", ""), "2147483648"},
		"more than all memory":    {host, 0, amounts("", "", "5Gi", ""), "0"},
		"high priority":           {host, 1999999999, amounts("", "", "1Gi", ""), "536870912"},
		"critical priority":       {host, 2000000000, amounts("", "", "1Gi", ""), "0"},
		"request equals limit":    {host, 0, amounts("1", "2", "1Gi", "1Gi"), "0"},
		"only cpu requested":      {host, 0, amounts("1", "", "", ""), "0"},
		"limit without a request": {host, 0, amounts("", "", "0", "1Gi"), "0"},
		"best effort":             {host, 0, v1.ResourceRequirements{}, "0"},
		"guaranteed":              {host, 0, amounts("1", "1", "1Gi", "1Gi"), "0"},
		"node without swap":       {none, 0, amounts("", "", "1Gi", ""), "0"},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Priority: &tt.priority, Containers: []v1.Container{{Name: "c", Resources: tt.own}}}}
		if got := ContainerResources(tt.node, pod, &pod.Spec.Containers[0]).Unified["memory.swap.max"]; got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	v1Host := host
	v1Host.UsesCgroupV2 = false
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: amounts("", "", "1Gi", "2Gi")}}}}
	if r := ContainerResources(v1Host, pod, &pod.Spec.Containers[0]); r.MemorySwapLimitInBytes != 2<<30 || len(r.Unified) > 0 {
		t.Errorf("cgroup v1: got %v, want MemorySwapLimitInBytes of 2Gi and no files of cgroup v2", r)
	}
}

// TestContainerResources_PodLimits checks that containers without limits get shares of the
// limits of the pod.
func TestContainerResources_PodLimits(t *testing.T) {
	whole := amounts("1", "2", "1Gi", "2Gi")
	pod := &v1.Pod{Spec: v1.PodSpec{Resources: &whole, Containers: []v1.Container{
		{Name: "bare"}, {Name: "own", Resources: amounts("", "500m", "256Mi", "")},
	}}}
	r := ContainerResources(Node{Capacity: Resources{Memory: 4 << 30}}, pod, &pod.Spec.Containers[0])
	// The pod requests 1Gi, of which container own requests 256Mi. Each of the two containers gets half
	// of the other 768Mi.
	if r.CpuQuota != 200000 || r.MemoryLimitInBytes != 2<<30 || r.OomScoreAdj != 1000-1000*384/4096 {
		t.Errorf("container without limits: got %v, want the limits of the pod and the OOM score of 384Mi", r)
	}
	r = ContainerResources(Node{Capacity: Resources{Memory: 4 << 30}}, pod, &pod.Spec.Containers[1])
	if r.CpuQuota != 50000 || r.MemoryLimitInBytes != 2<<30 || r.OomScoreAdj != 1000-1000*640/4096 {
		t.Errorf("container with a CPU limit: got %v, want its own quota, the memory limit of the pod and the OOM score of 640Mi", r)
	}
	if s := sandboxResources(Node{}, pod); s.CpuShares != 1024 || s.CpuQuota != 200000 || s.MemoryLimitInBytes != 2<<30 {
		t.Errorf("sandbox: got %v, want the shares and limits of the pod", s)
	}
}

// TestContainerResources_ZeroLimits checks that a limit of 0 of cpu or memory is no limit, so that the limit of
// the pod applies, but that a limit of 0 of huge pages replaces the limit of the pod.
func TestContainerResources_ZeroLimits(t *testing.T) {
	whole := amounts("1", "2", "1Gi", "2Gi")
	whole.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
	zero := v1.Container{Name: "zero", Resources: amounts("", "0", "", "0")}
	zero.Resources.Limits["hugepages-2Mi"] = resource.MustParse("0")
	pod := &v1.Pod{Spec: v1.PodSpec{Resources: &whole, Containers: []v1.Container{{Name: "bare"}, zero}}}
	n := Node{Capacity: Resources{Memory: 4 << 30}, HugePageSizes: []string{"2MB"}}
	for i, wantPages := range []uint64{4 << 20, 0} {
		c := &pod.Spec.Containers[i]
		r := ContainerResources(n, pod, c)
		if r.CpuQuota != 200000 || r.MemoryLimitInBytes != 2<<30 || r.HugepageLimits[0].Limit != wantPages {
			t.Errorf("container %s: got %v, want the CPU and memory limits of the pod, and huge pages of %d bytes", c.Name, r, wantPages)
		}
	}
}
