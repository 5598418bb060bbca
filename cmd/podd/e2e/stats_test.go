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

// about is within 5 percent.
func about(got, want float64) bool { return math.Abs(got-want) <= want/20 }

// row is the value of the metric of a name with all of the labels, each written
// as in the text.
func row(text, name string, labels ...string) (float64, error) {
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
		return 0, fmt.Errorf("%s%v is there %d times", name, labels, len(found))
	}
	return found[0], nil
}

// summary asks for one pod's.
func (d *daemon) summary(c *client, query, pod string) (*api.Summary, *api.PodStats) {
	d.t.Helper()
	status, text := c.ask("GET", "/stats/summary"+query, "")
	var s api.Summary
	if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
		d.t.Fatalf("summary: %d %.200s, %v", status, text, err)
	}
	for i := range s.Pods {
		if s.Pods[i].PodRef.Name == d.full(pod) {
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

// TestStats: a pod that works and holds memory is seen as the kernel counts it,
// in the summary and in the metrics of every port; what ended is not seen.
func TestStats(t *testing.T) {
	t.Parallel()
	readOnly, cadvisor := freePort(t), freePort(t)
	d := newDaemon(t, shared, "--read-only-port", strconv.Itoa(readOnly), "--cadvisor-port", strconv.Itoa(cadvisor))
	d.api = freePort(t)
	d.start()
	const held, written = 64 << 20, 8 << 20
	main := needs(shell("main", fmt.Sprintf(
		"head -c %d /dev/zero >/memory/x; head -c %d /dev/zero >/disk/x; head -c %d /dev/zero >/x; seq 20000; trap 'exit 0' TERM; : >/trace/ready; while :; do :; done",
		held, written, written)), "100m", "200m", "128Mi")
	main.ReadinessProbe = every(executes("ls /trace/ready"))
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
			usec, _, _ := strings.Cut(strings.TrimPrefix(d.below(cgroup, "", "", "cpu.stat"), "usage_usec "), "\n")
			n, _ := strconv.ParseFloat(usec, 64)
			return n * 1000
		}
		n, _ := strconv.ParseFloat(d.below(cgroup, "cpuacct", "cpuacct.usage", ""), 64)
		return n
	}
	before := counter()
	_, first := d.summary(c, "?only_cpu_and_memory=true", "busy")
	if first.Network != nil || first.EphemeralStorage != nil {
		t.Error("processor and memory alone were asked for")
	}
	s := containerStats(first, "main")
	if s == nil || containerStats(first, "short") == nil || s.CPU == nil || s.CPU.UsageNanoCores == nil || s.Memory == nil {
		t.Fatalf("the summary lacks something: %+v", first)
	}
	if n := float64(*s.CPU.UsageCoreNanoSeconds); n < before || n > counter() {
		t.Errorf("it used %v ns, want %v to %v", n, before, counter())
	}
	d.eventually("the rate is that between two summaries", func() error {
		_, second := d.summary(c, "?only_cpu_and_memory=true", "busy")
		last, now := s, containerStats(second, "main")
		passed := now.CPU.Time.Sub(last.CPU.Time.Time).Seconds()
		if passed < 2 { // the text has whole seconds
			return fmt.Errorf("%v s have passed", passed)
		}
		s = now
		want := float64(*now.CPU.UsageCoreNanoSeconds-*last.CPU.UsageCoreNanoSeconds) / passed
		if got := float64(*now.CPU.UsageNanoCores); got > 0.25e9 || got < want/2 {
			return fmt.Errorf("%v ns a second, want about %v", got, want)
		}
		return nil
	})
	var whole *api.PodStats
	var node *api.Summary
	d.eventually("what it holds is seen", func() error {
		node, whole = d.summary(c, "", "busy")
		s := containerStats(whole, "main")
		if s == nil || s.Rootfs == nil || s.Rootfs.UsedBytes == nil || *s.Rootfs.UsedBytes < written {
			return fmt.Errorf("no layer yet: %+v", s)
		}
		return nil
	})
	s = containerStats(whole, "main")
	if got := float64(*s.Memory.WorkingSetBytes); got < held || !about(got, workingSet(d, cgroup)) {
		t.Errorf("its working set is %v, want %v", got, workingSet(d, cgroup))
	}
	if got := float64(*whole.Memory.WorkingSetBytes); !about(got, workingSet(d, at)) {
		t.Errorf("the pod's working set is %v, want %v", got, workingSet(d, at))
	}
	if got := float64(*s.Memory.AvailableBytes + *s.Memory.WorkingSetBytes); got != 128<<20 {
		t.Errorf("its limit is %v", got)
	}
	if got := float64(*s.Rootfs.UsedBytes); !about(got, written) {
		t.Errorf("its layer has %v", got)
	}
	if got := *s.Logs.UsedBytes; got < 100<<10 {
		t.Errorf("its logs have %v", got)
	}
	volumes := map[string]float64{}
	for _, v := range whole.VolumeStats {
		volumes[v.Name] = float64(*v.UsedBytes)
	}
	if !about(volumes["memory"], held) || !about(volumes["disk"], written) {
		t.Errorf("volumes: %v", volumes)
	}
	if got := float64(*whole.EphemeralStorage.UsedBytes); got < 2*written || got > 2.2*written {
		t.Errorf("on disk it has %v", got)
	}
	if whole.Network == nil || whole.Network.Name != "eth0" || whole.ProcessStats == nil || *whole.ProcessStats.ProcessCount < 2 {
		t.Errorf("network %+v, processes %+v", whole.Network, whole.ProcessStats)
	}
	if n := node.Node; n.NodeName != d.host || n.CPU == nil || n.Fs == nil || n.Runtime.ImageFs == nil || *n.Runtime.ImageFs.UsedBytes == 0 || *n.Rlimit.NumOfRunningProcesses == 0 {
		t.Errorf("the node: %+v", n)
	}

	var metrics string
	main0 := []string{`container="main"`, `pod="` + d.full("busy") + `"`, `namespace="default"`}
	base := d.client("http://127.0.0.1:"+strconv.Itoa(readOnly), nil)
	alone := d.client("http://127.0.0.1:"+strconv.Itoa(cadvisor), nil)
	for name, text := range map[string]string{
		"resource": page(t, c, "/metrics/resource"), "cadvisor": page(t, c, "/metrics/cadvisor"),
		"read-only": page(t, base, "/metrics/cadvisor"), "read-only resource": page(t, base, "/metrics/resource"),
		"own": page(t, alone, "/metrics"),
	} {
		cpu, err := row(text, "container_cpu_usage_seconds_total", main0...)
		if err != nil || cpu*1e9 < before || cpu*1e9 > counter() {
			t.Errorf("%s: %v s, %v", name, cpu, err)
		}
		memory, err := row(text, "container_memory_working_set_bytes", main0...)
		if err != nil || !about(memory, workingSet(d, cgroup)) {
			t.Errorf("%s: %v bytes, %v", name, memory, err)
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
		if _, err := row(metrics, want[0], want[1:]...); err != nil {
			t.Error(err)
		}
	}

	d.tellPods("go")
	d.eventually("what ended vanishes", func() error {
		_, p := d.summary(c, "", "busy")
		text := page(t, c, "/metrics/cadvisor") + page(t, c, "/metrics/resource")
		if containerStats(p, "main") == nil || containerStats(p, "short") != nil || strings.Contains(text, `container="short"`) {
			return fmt.Errorf("%d containers, in the metrics: %v", len(p.Containers), strings.Contains(text, `container="short"`))
		}
		return nil
	})
}

func page(t testing.TB, c *client, path string) string {
	t.Helper()
	status, text := c.ask(http.MethodGet, path, "")
	if status != 200 {
		t.Errorf("%s: %d %.200s", path, status, text)
	}
	return text
}

// workingSet is that of a cgroup, as it is now.
func workingSet(d *daemon, at string) float64 {
	d.t.Helper()
	used, _ := strconv.ParseFloat(d.below(at, "memory", "memory.usage_in_bytes", "memory.current"), 64)
	key := "total_inactive_file "
	if cgroups.IsCgroup2UnifiedMode() {
		key = "inactive_file "
	}
	for line := range strings.Lines(d.below(at, "memory", "memory.stat", "memory.stat")) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			idle, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			used -= idle
		}
	}
	return used
}
