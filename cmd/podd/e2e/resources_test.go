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

	"podd/reconcile/node"
	"podd/server"
)

func withResources(c v1.Container, cpuRequest, cpuLimit, memory string) v1.Container {
	q := resource.MustParse
	c.Resources = v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: q(cpuRequest), v1.ResourceMemory: q(memory)},
		Limits:   v1.ResourceList{v1.ResourceCPU: q(cpuLimit), v1.ResourceMemory: q(memory)},
	}
	return c
}

// cgroupFile returns the content of a file in a cgroup below the daemon's cgroup: v1File in the
// controller's hierarchy with cgroup v1, and v2File with cgroup v2.
func (d *daemon) cgroupFile(at, controller, v1File, v2File string) string {
	d.t.Helper()
	file := filepath.Join("/sys/fs/cgroup", controller, d.parentCgroup(), at, v1File)
	if cgroups.IsCgroup2UnifiedMode() {
		file = filepath.Join("/sys/fs/cgroup", d.parentCgroup(), at, v2File)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// checkCgroupValue returns an error unless got equals the parameter v1 on a host with cgroup v1, or the
// parameter v2 on a host with cgroup v2.
func checkCgroupValue(got, v1, v2 string) error {
	want := v1
	if cgroups.IsCgroup2UnifiedMode() {
		want = v2
	}
	if got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

// hostMemory returns the memory of the host in bytes.
func hostMemory(t testing.TB) int64 {
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

// TestCgroups checks the limits of a pod's cgroup, the CPU weight of the cgroup of a QoS class, and the
// memory limit of the cgroup of all pods.
func TestCgroups(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--pod-max-pids=64", "--system-reserved=memory=1Gi")
	d.apply(
		d.pod("web", withResources(shell("a", serve("a")), "100m", "200m", "32Mi"), withResources(shell("b", serve("b")), "50m", "100m", "16Mi")),
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
		if err := checkCgroupValue(d.cgroupFile(tt.at, tt.controller, tt.v1File, tt.v2File), tt.want1, tt.want2); err != nil {
			t.Errorf("cgroup %s: value of %s (cgroup v1) or %s (cgroup v2): %v", tt.at, tt.v1File, tt.v2File, err)
		}
	}
	weight := func() string { return d.cgroupFile("kubepods/burstable", "cpu", "cpu.shares", "cpu.weight") }
	d.eventually("the cgroup of Burstable pods has the CPU weight of pod web", func() error { return checkCgroupValue(weight(), "153", "6") })
	whole, err := strconv.ParseInt(d.cgroupFile("kubepods", "memory", "memory.limit_in_bytes", "memory.max"), 10, 64)
	if memory := hostMemory(t); err != nil || whole >= memory || whole < memory-2<<30 {
		t.Errorf("memory limit of all pods: got %d bytes, error %v; want less than the host's memory of %d bytes, but at most 2 GiB less", whole, err, memory)
	}
	d.remove("web")
	d.untilGone("web")
	d.eventually("the cgroup of Burstable pods has the minimal CPU weight", func() error { return checkCgroupValue(weight(), "2", "1") })
}

// TestFullNode checks that podd rejects a pod if the node has too little memory for it, and starts this
// pod when another pod is removed.
func TestFullNode(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--eviction-hard=memory.available<0%", "--system-reserved=memory="+strconv.FormatInt(hostMemory(t)-256<<20, 10))
	d.apply(d.pod("first", withResources(shell("a", serve("first")), "1m", "1", "192Mi")))
	d.untilApplied("first")
	d.apply(d.pod("second", withResources(shell("a", serve("second")), "1m", "1", "128Mi")))
	d.untilPod("is rejected", "second", func(p *server.PodView) error {
		return checkCgroupValue(p.Pod.Status.Reason, "OutOfmemory", "OutOfmemory")
	})
	d.remove("first")
	d.untilApplied("second")
}

// TestPodsPerCore checks that podsPerCore limits the number of pods on the node.
func TestPodsPerCore(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--pods-per-core=1")
	for i := range node.CountCPUs() {
		name := fmt.Sprintf("pod%d", i)
		d.apply(d.pod(name, shell("a", serve(name))))
		d.untilApplied(name)
	}
	d.apply(d.pod("excess", shell("a", serve("excess"))))
	d.untilPod("is rejected", "excess", func(p *server.PodView) error {
		return checkCgroupValue(p.Pod.Status.Reason, "OutOfpods", "OutOfpods")
	})
	d.remove("pod0")
	d.untilApplied("excess")
}

// TestCPUQuota checks the CPU quotas of a container and its pod if --cpu-cfs-quota-period is not the
// default, and if --cpu-cfs-quota=false disables quotas.
func TestCPUQuota(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]struct{ v1, v2 string }{
		"--cpu-cfs-quota-period=20ms": {"4000", "4000 20000"},
		"--cpu-cfs-quota=false":       {"-1", "max 100000"},
	} {
		d := startDaemon(t, flag)
		d.apply(d.pod("web", withResources(shell("a", serve("a")), "100m", "200m", "32Mi")))
		pod := "kubepods/burstable/pod" + string(d.untilApplied("web").Pod.UID)
		if err := checkCgroupValue(d.cgroupFile(pod, "cpu", "cpu.cfs_quota_us", "cpu.max"), want.v1, want.v2); err != nil {
			t.Errorf("with %s: quota of the pod: %v", flag, err)
		}
		if err := checkCgroupValue(cgroupValue(t, d.container("web", "a").PID, "cpu", "cpu.cfs_quota_us", "cpu.max"), want.v1, want.v2); err != nil {
			t.Errorf("with %s: quota of the container: %v", flag, err)
		}
	}
}

// TestOOMScoreAdj checks that podd sets its own oom_score_adj. The test raises the value, because podd
// may lack the capability CAP_SYS_RESOURCE, without which it cannot lower the value.
func TestOOMScoreAdj(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--oom-score-adj=500")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.proc.pid()))
	if got := strings.TrimSpace(string(text)); err != nil || got != "500" {
		t.Errorf("oom_score_adj of podd: got %q, error %v; want 500", got, err)
	}
}

// TestPodResources checks that a pod-level limit applies to containers without limits, and that
// a pod that requests huge pages of an unsupported size is rejected.
func TestPodResources(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("a", serve("web")))
	p.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("300m"), v1.ResourceMemory: resource.MustParse("64Mi"),
	}}
	huge := d.pod("huge", withResources(shell("a", serve("huge")), "1m", "1", "16Mi"))
	pages := v1.ResourceName(v1.ResourceHugePagesPrefix + "64Ki") // not supported on amd64
	for _, list := range []v1.ResourceList{huge.Spec.Containers[0].Resources.Limits, huge.Spec.Containers[0].Resources.Requests} {
		list[pages] = resource.MustParse("64Ki")
	}
	d.apply(p, huge)
	d.untilApplied("web")
	pid := d.container("web", "a").PID
	if got := cgroupValue(t, pid, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(64<<20) {
		t.Errorf("memory limit of the container: got %s bytes, want 64 MiB", got)
	}
	if got := cgroupValue(t, pid, "cpu", "cpu.cfs_quota_us", "cpu.max"); got != "30000" && got != "30000 100000" {
		t.Errorf("CPU quota of the container: got %s, want 30000", got)
	}
	d.untilPod("is rejected", "huge", func(p *server.PodView) error {
		want := "OutOf" + string(pages)
		return checkCgroupValue(p.Pod.Status.Reason, want, want)
	})
}

// TestOverhead checks that the overhead of a runtime class is added to the pod's cgroup.
func TestOverhead(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--runtime-class=boxed=runc")
	p := d.pod("web", withResources(shell("a", serve("a")), "100m", "200m", "32Mi"))
	p.Spec.RuntimeClassName = new("boxed")
	p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("50m"), v1.ResourceMemory: resource.MustParse("16Mi")}
	d.apply(p)
	at := "kubepods/burstable/pod" + string(d.untilApplied("web").Pod.UID)
	for _, tt := range []struct{ controller, v1File, v2File, want1, want2 string }{
		{"cpu", "cpu.shares", "cpu.weight", "153", "6"},
		{"cpu", "cpu.cfs_quota_us", "cpu.max", "25000", "25000 100000"},
		{"memory", "memory.limit_in_bytes", "memory.max", strconv.Itoa(48 << 20), strconv.Itoa(48 << 20)},
	} {
		if err := checkCgroupValue(d.cgroupFile(at, tt.controller, tt.v1File, tt.v2File), tt.want1, tt.want2); err != nil {
			t.Errorf("cgroup of the pod: value of %s (cgroup v1) or %s (cgroup v2): %v", tt.v1File, tt.v2File, err)
		}
	}
}

// TestEphemeralStorage checks that podd evicts pods that exceed their storage limits. The pods write to
// a writable layer, an emptyDir volume or a log. podd must reject a pod that requests more storage than
// the disk has.
func TestEphemeralStorage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
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
				return fmt.Errorf("got phase %s, reason %q and message %q, want Failed, Evicted and a message that begins with %q", s.Phase, s.Reason, s.Message, want)
			}
			return nil
		})
	}
	d.untilPod("is rejected", "vast", func(p *server.PodView) error {
		return checkCgroupValue(p.Pod.Status.Reason, "OutOfephemeral-storage", "OutOfephemeral-storage")
	})
	if small := d.untilApplied("small"); small.Pod.Status.Phase != v1.PodRunning {
		t.Errorf("pod small, which is within its limit: got phase %s (message %q), want Running", small.Pod.Status.Phase, small.Pod.Status.Message)
	}
}
