//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

func needs(c v1.Container, cpuRequest, cpuLimit, memory string) v1.Container {
	q := resource.MustParse
	c.Resources = v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: q(cpuRequest), v1.ResourceMemory: q(memory)},
		Limits:   v1.ResourceList{v1.ResourceCPU: q(cpuLimit), v1.ResourceMemory: q(memory)},
	}
	return c
}

// below reads a file of a cgroup under podd's own.
func (d *daemon) below(at, controller, v1File, v2File string) string {
	d.t.Helper()
	file := filepath.Join("/sys/fs/cgroup", controller, d.cgroup(), at, v1File)
	if cgroups.IsCgroup2UnifiedMode() {
		file = filepath.Join("/sys/fs/cgroup", d.cgroup(), at, v2File)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func wants(got, v1, v2 string) error {
	want := v1
	if cgroups.IsCgroup2UnifiedMode() {
		want = v2
	}
	if got != want {
		return fmt.Errorf("it is %s, want %s", got, want)
	}
	return nil
}

func machineMemory(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestCgroups: a pod is limited as a whole, a class has what its pods ask for,
// and all together have what the node is not to keep.
func TestCgroups(t *testing.T) {
	t.Parallel()
	d := begin(t, "--pod-max-pids=64", "--system-reserved=memory=1Gi")
	d.apply(
		d.pod("web", needs(shell("a", serve("a")), "100m", "200m", "32Mi"), needs(shell("b", serve("b")), "50m", "100m", "16Mi")),
		d.pod("idle", shell("a", serve("idle"))),
	)
	web := d.untilApplied("web")
	idle := d.untilApplied("idle")
	pod := "kubepods/burstable/pod" + string(web.Pod.UID)
	for _, tt := range []struct{ at, controller, v1File, v2File, want1, want2 string }{
		{pod, "cpu", "cpu.shares", "cpu.weight", "153", "6"},
		{pod, "cpu", "cpu.cfs_quota_us", "cpu.max", "30000", "30000 100000"},
		{pod, "memory", "memory.limit_in_bytes", "memory.max", strconv.Itoa(48 << 20), strconv.Itoa(48 << 20)},
		{pod, "pids", "pids.max", "pids.max", "64", "64"},
		{"kubepods/besteffort/pod" + string(idle.Pod.UID), "cpu", "cpu.shares", "cpu.weight", "2", "1"},
		{"kubepods/besteffort", "cpu", "cpu.shares", "cpu.weight", "2", "1"},
	} {
		if err := wants(d.below(tt.at, tt.controller, tt.v1File, tt.v2File), tt.want1, tt.want2); err != nil {
			t.Errorf("%s of %s: %v", tt.v1File, tt.at, err)
		}
	}
	weight := func() string { return d.below("kubepods/burstable", "cpu", "cpu.shares", "cpu.weight") }
	d.eventually("the class has the shares of web", func() error { return wants(weight(), "153", "6") })
	whole, err := strconv.ParseInt(d.below("kubepods", "memory", "memory.limit_in_bytes", "memory.max"), 10, 64)
	if memory := machineMemory(t); err != nil || whole >= memory || whole < memory-2<<30 {
		t.Errorf("all pods together have %d of %d bytes, %v", whole, memory, err)
	}
	d.remove("web")
	d.untilGone("web")
	d.eventually("the class has no shares", func() error { return wants(weight(), "2", "1") })
}

// TestFullNode: a pod that the node has no room for is rejected, and runs when
// another one leaves.
func TestFullNode(t *testing.T) {
	t.Parallel()
	d := begin(t, "--eviction-hard=memory.available<0%", "--system-reserved=memory="+strconv.FormatInt(machineMemory(t)-256<<20, 10))
	d.apply(d.pod("first", needs(shell("a", serve("first")), "1m", "1", "192Mi")))
	d.untilApplied("first")
	d.apply(d.pod("second", needs(shell("a", serve("second")), "1m", "1", "128Mi")))
	d.untilPod("is rejected", "second", func(p *server.PodView) error {
		return wants(p.Pod.Status.Reason, "OutOfmemory", "OutOfmemory")
	})
	d.remove("first")
	d.untilApplied("second")
}

// TestPodResources: what a pod has for all of its containers bounds each that has
// nothing of its own; pages that the node has none of are asked for in vain.
func TestPodResources(t *testing.T) {
	t.Parallel()
	d := begin(t)
	p := d.pod("web", shell("a", serve("web")))
	p.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("300m"), v1.ResourceMemory: resource.MustParse("64Mi"),
	}}
	huge := d.pod("huge", needs(shell("a", serve("huge")), "1m", "1", "16Mi"))
	pages := v1.ResourceName(v1.ResourceHugePagesPrefix + "64Ki") // a size of no amd64
	for _, list := range []v1.ResourceList{huge.Spec.Containers[0].Resources.Limits, huge.Spec.Containers[0].Resources.Requests} {
		list[pages] = resource.MustParse("64Ki")
	}
	d.apply(p, huge)
	d.untilApplied("web")
	pid := d.runs("web", "a").PID
	if got := cgroupValue(t, pid, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(64<<20) {
		t.Errorf("the container's memory limit is %s", got)
	}
	if got := cgroupValue(t, pid, "cpu", "cpu.cfs_quota_us", "cpu.max"); got != "30000" && got != "30000 100000" {
		t.Errorf("the container's cpu quota is %s", got)
	}
	d.untilPod("is rejected", "huge", func(p *server.PodView) error {
		want := "OutOf" + string(pages)
		return wants(p.Pod.Status.Reason, want, want)
	})
}

// TestOverhead: what a runtime class takes is added to the pod's cgroup.
func TestOverhead(t *testing.T) {
	t.Parallel()
	d := begin(t, "--runtime-class=boxed=runc")
	p := d.pod("web", needs(shell("a", serve("a")), "100m", "200m", "32Mi"))
	p.Spec.RuntimeClassName = new("boxed")
	p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("50m"), v1.ResourceMemory: resource.MustParse("16Mi")}
	d.apply(p)
	at := "kubepods/burstable/pod" + string(d.untilApplied("web").Pod.UID)
	for _, tt := range []struct{ controller, v1File, v2File, want1, want2 string }{
		{"cpu", "cpu.shares", "cpu.weight", "153", "6"},
		{"cpu", "cpu.cfs_quota_us", "cpu.max", "25000", "25000 100000"},
		{"memory", "memory.limit_in_bytes", "memory.max", strconv.Itoa(48 << 20), strconv.Itoa(48 << 20)},
	} {
		if err := wants(d.below(at, tt.controller, tt.v1File, tt.v2File), tt.want1, tt.want2); err != nil {
			t.Errorf("%s: %v", tt.v1File, err)
		}
	}
}

// TestEphemeralStorage: a pod that has more on disk than its containers may ends,
// whatever it wrote there; one that asks for more than the disk has never starts.
func TestEphemeralStorage(t *testing.T) {
	t.Parallel()
	d := begin(t)
	limited := func(name, script, limit string) v1.Container {
		c := shell(name, script)
		c.Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(limit)}
		return c
	}
	const write = "head -c 8388608 /dev/zero >"
	layer := d.pod("layer", limited("main", write+"/x; "+serve("layer"), "4Mi"), limited("other", serve("other"), "1Gi"))
	volume := d.pod("volume", limited("main", write+"/disk/x; "+serve("volume"), "4Mi"))
	withVolume(volume, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	logs := d.pod("logs", limited("main", "head -c 6291456 /dev/zero | base64; "+serve("logs"), "4Mi"))
	vast := d.pod("vast", limited("main", serve("vast"), "1Ei"))
	small := d.pod("small", limited("main", serve("small"), "64Mi"))
	d.apply(layer, volume, logs, vast, small)
	pod := "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
	for name, want := range map[string]string{
		"layer": `Container main exceeded its local ephemeral storage limit "4Mi". `, "volume": pod, "logs": pod,
	} {
		d.untilPod("is evicted", name, func(p *server.PodView) error {
			s := p.Pod.Status
			if s.Phase != v1.PodFailed || s.Reason != "Evicted" || !strings.HasPrefix(s.Message, want) {
				return fmt.Errorf("%s %s: %s", s.Phase, s.Reason, s.Message)
			}
			return nil
		})
	}
	d.untilPod("is rejected", "vast", func(p *server.PodView) error {
		return wants(p.Pod.Status.Reason, "OutOfephemeral-storage", "OutOfephemeral-storage")
	})
	if small := d.untilApplied("small"); small.Pod.Status.Phase != v1.PodRunning {
		t.Errorf("small is %s: %s", small.Pod.Status.Phase, small.Pod.Status.Message)
	}
}
