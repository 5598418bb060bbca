//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// isNear reports whether got differs from want by at most 5 percent.
func isNear(got, want float64) bool { return math.Abs(got-want) <= want/20 }

// metricValue returns the value of the metric with this name and all of the labels. A label is written
// as in the Prometheus text format: name="value".
func metricValue(text, name string, labels ...string) (float64, error) {
	var found []float64
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		end := strings.LastIndex(rest, "}") + 1
		has := true
		for _, l := range labels {
			has = has && strings.Contains(rest[:end], l)
		}
		if has {
			v, err := strconv.ParseFloat(strings.Fields(rest[end:])[0], 64)
			if err != nil {
				return 0, err
			}
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%s%v: got %d samples, want 1", name, labels, len(found))
	}
	return found[0], nil
}

// summary requests /stats/summary, and returns the response and the statistics of a pod in it.
func (d *daemon) summary(c *client, query, pod string) (*api.Summary, *api.PodStats) {
	d.t.Helper()
	status, text := c.request("GET", "/stats/summary"+query, "")
	var s api.Summary
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
		d.t.Fatalf("/stats/summary: got status %d, body %.200s, error %v; want status 200 and JSON", status, text, err)
	}
	for i := range s.Pods {
		if s.Pods[i].PodRef.Name == d.podName(pod) {
			return &s, &s.Pods[i]
		}
	}
	return &s, &api.PodStats{}
}

func containerStats(p *api.PodStats, name string) *api.ContainerStats {
	for i := range p.Containers {
		if p.Containers[i].Name == name {
			return &p.Containers[i]
		}
	}
	return nil
}

// TestStats compares the summary and the metrics on all ports with the kernel's counters, for a pod that
// uses the processor, memory and disk. A container that has exited must not be in the statistics.
func TestStats(t *testing.T) {
	t.Parallel()
	readOnly, cadvisor := freePort(t), freePort(t)
	d := newDaemon(t, shared, "--read-only-port", strconv.Itoa(readOnly), "--cadvisor-port", strconv.Itoa(cadvisor))
	d.api = freePort(t)
	d.start()
	const held, written = 64 << 20, 8 << 20
	main := withResources(shell("main", fmt.Sprintf(
		"head -c %d /dev/zero >/memory/x; head -c %d /dev/zero >/disk/x; head -c %d /dev/zero >/x; seq 20000; trap 'exit 0' TERM; : >/trace/ready; while :; do :; done",
		held, written, written)), "100m", "200m", "128Mi")
	// A startup probe ends when it has succeeded. Later probes would use memory of the container while
	// the test compares the numbers.
	main.StartupProbe = probeEverySecond(execHandler("ls /trace/ready"))
	main.StartupProbe.FailureThreshold = 600
	p := d.pod("busy", main, shell("short", "until [ -e /trace/go ]; do sleep 0.1; done"))
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	withVolume(p, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("96Mi"))}})
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.apply(p)
	pod := d.untilApplied("busy").Pod
	at := "kubepods/burstable/pod" + string(pod.UID)
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	cgroup := at + "/" + d.on.CgroupName(id)
	c := d.admin()

	counter := func() float64 {
		if cgroups.IsCgroup2UnifiedMode() {
			usec, _, _ := strings.Cut(strings.TrimPrefix(d.cgroupFile(cgroup, "", "", "cpu.stat"), "usage_usec "), "\n")
			n, _ := strconv.ParseFloat(usec, 64)
			return n * 1000
		}
		n, _ := strconv.ParseFloat(d.cgroupFile(cgroup, "cpuacct", "cpuacct.usage", ""), 64)
		return n
	}
	before := counter()
	_, first := d.summary(c, "?only_cpu_and_memory=true", "busy")
	if first.Network != nil || first.EphemeralStorage != nil {
		t.Errorf("summary with only_cpu_and_memory: got network %+v and ephemeral storage %+v, want neither", first.Network, first.EphemeralStorage)
	}
	s := containerStats(first, "main")
	if s == nil || containerStats(first, "short") == nil || s.CPU == nil || s.CPU.UsageNanoCores == nil || s.Memory == nil {
		t.Fatalf("summary: got the pod %+v, want both containers, and the CPU and memory of main", first)
	}
	if n := float64(*s.CPU.UsageCoreNanoSeconds); n < before || n > counter() {
		t.Errorf("processor time of the container: got %v ns, want %v to %v", n, before, counter())
	}
	d.eventually("the CPU usage is near the increase of the processor time per second between two summaries", func() error {
		_, second := d.summary(c, "?only_cpu_and_memory=true", "busy")
		last, now := s, containerStats(second, "main")
		passed := now.CPU.Time.Sub(last.CPU.Time.Time).Seconds()
		if passed < 2 { // the rate of a shorter time is not exact enough, because times in the summary are whole seconds
			return fmt.Errorf("time between the two samples: got %v s, want 2 or more", passed)
		}
		s = now
		want := float64(*now.CPU.UsageCoreNanoSeconds-*last.CPU.UsageCoreNanoSeconds) / passed
		if got := float64(*now.CPU.UsageNanoCores); got > 0.25e9 || got < want/2 {
			return fmt.Errorf("CPU usage: got %v ns per second, want at least half of %v (the increase of the processor time) and at most 0.25e9", got, want)
		}
		return nil
	})
	var whole *api.PodStats
	var node *api.Summary
	d.eventually("the summary contains the usage of the writable layer", func() error {
		node, whole = d.summary(c, "", "busy")
		s := containerStats(whole, "main")
		if s == nil || s.Rootfs == nil || s.Rootfs.UsedBytes == nil || *s.Rootfs.UsedBytes < written {
			return fmt.Errorf("got statistics %+v, want a writable layer of at least %d bytes", s, written)
		}
		return nil
	})
	s = containerStats(whole, "main")
	if got := float64(*s.Memory.WorkingSetBytes); got < held || !isNear(got, workingSet(d, cgroup)) {
		t.Errorf("working set of the container: got %v, want %v", got, workingSet(d, cgroup))
	}
	if got := float64(*whole.Memory.WorkingSetBytes); !isNear(got, workingSet(d, at)) {
		t.Errorf("working set of the pod: got %v, want %v", got, workingSet(d, at))
	}
	if got := float64(*s.Memory.AvailableBytes + *s.Memory.WorkingSetBytes); got != 128<<20 {
		t.Errorf("sum of available memory and working set of the container: got %v bytes, want 128 MiB (the memory limit)", got)
	}
	if got := float64(*s.Rootfs.UsedBytes); !isNear(got, written) {
		t.Errorf("writable layer: got %v bytes, want about 8 MiB", got)
	}
	if got := *s.Logs.UsedBytes; got < 100<<10 {
		t.Errorf("logs: got %v bytes, want 100 KiB or more", got)
	}
	volumes := map[string]float64{}
	for _, v := range whole.VolumeStats {
		volumes[v.Name] = float64(*v.UsedBytes)
	}
	if !isNear(volumes["memory"], held) || !isNear(volumes["disk"], written) {
		t.Errorf("volumes: got %v bytes, want about 64 MiB in memory and about 8 MiB on disk", volumes)
	}
	if got := float64(*whole.EphemeralStorage.UsedBytes); got < 2*written || got > 2.2*written {
		t.Errorf("ephemeral storage of the pod: got %v bytes, want 16 MiB to 17.6 MiB", got)
	}
	if whole.Network == nil || whole.Network.Name != "eth0" || whole.ProcessStats == nil || *whole.ProcessStats.ProcessCount < 2 {
		t.Errorf("pod: got network %+v and processes %+v, want eth0 and 2 or more processes", whole.Network, whole.ProcessStats)
	}
	if n := node.Node; n.NodeName != d.host || n.CPU == nil || n.Fs == nil || n.Runtime.ImageFs == nil || *n.Runtime.ImageFs.UsedBytes == 0 || *n.Rlimit.NumOfRunningProcesses == 0 {
		t.Errorf("node: got %+v, want its name, CPU, file system, used image file system and running processes", n)
	}

	var metrics string
	main0 := []string{`container="main"`, `pod="` + d.podName("busy") + `"`, `namespace="default"`}
	base := d.client("http://127.0.0.1:"+strconv.Itoa(readOnly), nil)
	alone := d.client("http://127.0.0.1:"+strconv.Itoa(cadvisor), nil)
	for name, text := range map[string]string{
		"resource": getPage(t, c, "/metrics/resource"), "cadvisor": getPage(t, c, "/metrics/cadvisor"),
		"read-only": getPage(t, base, "/metrics/cadvisor"), "read-only resource": getPage(t, base, "/metrics/resource"),
		"own": getPage(t, alone, "/metrics"),
	} {
		cpu, err := metricValue(text, "container_cpu_usage_seconds_total", main0...)
		if err != nil || cpu*1e9 < before || cpu*1e9 > counter() {
			t.Errorf("metrics of endpoint %s: got processor time %v s, error %v; want the usage of the cgroup (%v to %v ns)", name, cpu, err, before, counter())
		}
		memory, err := metricValue(text, "container_memory_working_set_bytes", main0...)
		if err != nil || !isNear(memory, workingSet(d, cgroup)) {
			t.Errorf("metrics of endpoint %s: got working set %v bytes, error %v; want about %v", name, memory, err, workingSet(d, cgroup))
		}
		if name == "cadvisor" {
			metrics = text
		}
	}
	for _, want := range [][]string{
		{"container_network_receive_bytes_total", `interface="eth0"`, main0[1]},
		{"container_spec_memory_limit_bytes", main0[0], `name="` + id + `"`},
		{"container_cpu_cfs_periods_total", main0[0]},
		{"container_oom_events_total", main0[0]},
		{"container_last_seen", main0[0]},
		{"container_start_time_seconds", main0[0]},
		{"container_memory_working_set_bytes", `id="/"`},
		{"container_memory_working_set_bytes", `container=""`, main0[1], `name=""`},
		{"machine_cpu_cores"}, {"machine_memory_bytes"},
	} {
		if _, err := metricValue(metrics, want[0], want[1:]...); err != nil {
			t.Error(err)
		}
	}

	d.touch("go")
	d.eventually("the exited container is not in the statistics", func() error {
		_, p := d.summary(c, "", "busy")
		text := getPage(t, c, "/metrics/cadvisor") + getPage(t, c, "/metrics/resource")
		if containerStats(p, "main") == nil || containerStats(p, "short") != nil || strings.Contains(text, `container="short"`) {
			return fmt.Errorf("got %d containers in the summary, container short in the metrics: %t; want 1 container (main), container short in the metrics: false", len(p.Containers), strings.Contains(text, `container="short"`))
		}
		return nil
	})
}

func getPage(t testing.TB, c *client, path string) string {
	t.Helper()
	status, text := c.request(http.MethodGet, path, "")
	if status != 200 {
		t.Errorf("GET %s: got status %d, body %.200s; want status 200", path, status, text)
	}
	return text
}

// workingSet returns the current working set of a cgroup.
func workingSet(d *daemon, at string) float64 {
	d.t.Helper()
	used, _ := strconv.ParseFloat(d.cgroupFile(at, "memory", "memory.usage_in_bytes", "memory.current"), 64)
	key := "total_inactive_file "
	if cgroups.IsCgroup2UnifiedMode() {
		key = "inactive_file "
	}
	for line := range strings.Lines(d.cgroupFile(at, "memory", "memory.stat", "memory.stat")) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			idle, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			used -= idle
		}
	}
	return used
}
