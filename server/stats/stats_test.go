package stats

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/runtime/runtimetest/golden"
	"podd/server"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixed is a Meter that always returns the same data.
type fixed struct {
	err        error
	basic      bool // the argument of the last call of Summary
	containers map[string]*model.ContainerInfo
}

func (f *fixed) Usage(context.Context) (*server.Usage, error) { return nil, f.err }

func (f *fixed) Machine(context.Context) (*model.MachineInfo, error) {
	return &model.MachineInfo{NumCores: 4, NumPhysicalCores: 2, NumSockets: 1, MemoryCapacity: 8 << 30, BootID: "b", MachineID: "m", SystemUUID: "s"}, f.err
}

func (f *fixed) Containers(context.Context) (map[string]*model.ContainerInfo, error) {
	return f.containers, f.err
}

func (f *fixed) Summary(_ context.Context, basic bool) (*api.Summary, error) {
	f.basic = basic
	if f.err != nil {
		return nil, f.err
	}
	cpu := func(n uint64) *api.CPUStats {
		return &api.CPUStats{Time: metav1.NewTime(noon), UsageCoreNanoSeconds: new(n * 1e9)}
	}
	memory := func(n uint64) *api.MemoryStats {
		return &api.MemoryStats{Time: metav1.NewTime(noon), WorkingSetBytes: new(n << 20)}
	}
	swap := func(n uint64) *api.SwapStats {
		return &api.SwapStats{Time: metav1.NewTime(noon), SwapUsageBytes: new(n), SwapAvailableBytes: new(2 * n)}
	}
	return &api.Summary{
		Node: api.NodeStats{NodeName: "n1", CPU: cpu(100), Memory: memory(100), Swap: swap(100)},
		Pods: []api.PodStats{{
			PodRef: api.PodReference{Namespace: "default", Name: "web-n1", UID: "u1"}, CPU: cpu(20), Memory: memory(20), Swap: swap(20),
			Containers: []api.ContainerStats{
				{Name: "app", StartTime: metav1.NewTime(noon.Add(-1500 * time.Millisecond)), CPU: cpu(10), Memory: memory(10), Swap: swap(10)},
				{Name: "new"},
				{Name: "un\"us\\ual\n", CPU: cpu(1)},
			},
		}},
	}, nil
}

func newFixed() *fixed {
	labels := map[string]string{podNameLabel: "web-n1", podNamespaceLabel: "default"}
	of := func(name, id, image string, labels map[string]string, n uint64) *model.ContainerInfo {
		c := &model.ContainerInfo{
			ContainerReference: model.ContainerReference{Name: name, Id: id},
			Spec: model.ContainerSpec{
				CreationTime: noon.Add(-time.Hour), Labels: labels, Image: image,
				HasCpu: true, Cpu: model.CpuSpec{Limit: 102, Quota: 20000, Period: 100000},
				HasMemory: true, Memory: model.MemorySpec{Limit: n << 20, SwapLimit: 1 << 63}, HasProcesses: true, HasDiskIo: true,
			},
			Stats: []*model.ContainerStats{{
				Timestamp: noon,
				Cpu:       &model.CpuStats{Usage: model.CpuUsage{Total: n * 1e9, User: n * 6e8, System: n * 4e8}},
				Memory:    &model.MemoryStats{Usage: n << 10, WorkingSet: n << 9, RSS: n << 8, Cache: n},
				DiskIo:    &model.DiskIoStats{IoServiceBytes: []model.PerDiskStats{{Device: "/dev/sda", Stats: map[string]uint64{"Read": n, "Write": 2 * n}}}},
				Processes: &model.ProcessStats{ProcessCount: n}, OOMEvents: 1,
			}},
		}
		if id != "" {
			c.Aliases = []string{id, name}
		}
		return c
	}
	box := of("/kubepods/podu1/s1", "s1", "", labels, 2)
	box.Spec.HasNetwork = true
	box.Stats[0].Network = &model.NetworkStats{Interfaces: []model.InterfaceStats{
		{Name: "eth0", RxBytes: 11, TxBytes: 12}, {Name: "we\"ird\\", RxBytes: 13},
	}}
	node := of("/", "", "", nil, 100)
	node.Spec.HasFilesystem = true
	node.Stats[0].Filesystem = []model.FsStats{{Device: "/dev/sda1", Type: "vfs", Limit: 1000, Usage: 400, HasInodes: true, Inodes: 10, InodesFree: 4}}
	f := &fixed{containers: map[string]*model.ContainerInfo{}}
	app := map[string]string{podNameLabel: "web-n1", podNamespaceLabel: "default", containerNameLabel: "app"}
	for _, c := range []*model.ContainerInfo{
		node, of("/kubepods", "", "", nil, 50), of("/kubepods/podu1", "", "", labels, 20), box,
		of("/kubepods/podu1/c1", "c1", "web:1", app, 10),
	} {
		f.containers[c.Name] = c
	}
	return f
}

func request(m server.Meter, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	Handler(m).ServeHTTP(w, r)
	return w
}

// now matches values that differ between runs: timestamps and properties of the
// host.
var now = regexp.MustCompile(`(?m)^(container_last_seen\{.*\}|cadvisor_version_info\{).*$`)

// TestMetrics checks that the names, types, labels and timestamps of all metrics are those of the
// golden file.
func TestMetrics(t *testing.T) {
	for _, name := range []string{"resource", "cadvisor"} {
		w := request(newFixed(), "GET", "/metrics/"+name, "")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%s: got %d with header %s, want 200 and plain text", name, w.Code, w.Header())
		}
		got := now.ReplaceAllString(w.Body.String(), "$1 NOW")
		golden.Compare(t, filepath.Join("testdata", name+".txt"), got)
	}
}

// cadvisorNames are metrics of cAdvisor with names that violate rules of promlint.
var cadvisorNames = []string{"cadvisor_version_info", "container_fs_inodes_total", "container_memory_failcnt"}

func TestLint(t *testing.T) {
	for _, name := range []string{"resource", "cadvisor"} {
		problems, err := promlint.New(request(newFixed(), "GET", "/metrics/"+name, "").Body).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if !slices.Contains(cadvisorNames, p.Metric) {
				t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		status               int
		basic                bool
	}{
		{"GET", "/stats/summary", "", 200, false},
		{"GET", "/stats/summary/", "", 200, false},
		{"GET", "/stats/summary?only_cpu_and_memory=true", "", 200, true},
		{"GET", "/stats/summary?only_cpu_and_memory=1", "", 200, false},
		{"GET", "/stats/summary?only_cpu_and_memory=true&only_cpu_and_memory=true", "", 200, false},
		{"POST", "/stats/summary", "only_cpu_and_memory=true", 200, true},
		{"POST", "/stats/summary", strings.Repeat("a", 5000), 413, false},
		{"GET", "/stats/summary?%zz", "", 400, false},
		{"PUT", "/stats/summary", "", 405, false},
		{"GET", "/stats/", "", 404, false},
		{"GET", "/stats/container", "", 404, false},
		{"POST", "/metrics/resource", "", 405, false},
	} {
		f := newFixed()
		w := request(f, c.method, c.target, c.body)
		if w.Code != c.status || f.basic != c.basic {
			t.Errorf("%s %s: got %d %.100s, basic %t; want %d, basic %t", c.method, c.target, w.Code, w.Body, f.basic, c.status, c.basic)
		}
		if c.status == 200 && !strings.HasPrefix(w.Body.String(), `{"node":{"nodeName":"n1"`) {
			t.Errorf("%s %s: got %.100s, want the summary of node n1", c.method, c.target, w.Body)
		}
	}
}

// TestHandler_MeasuringFails checks that, if measuring fails, a scrape reports the failure in a
// metric and serves the other metrics.
func TestHandler_MeasuringFails(t *testing.T) {
	f := &fixed{err: errors.New("no cgroups")}
	if w := request(f, "GET", "/stats/summary", ""); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no cgroups") {
		t.Errorf("summary: got %d %s, want 500 and the cause", w.Code, w.Body)
	}
	for name, want := range map[string]string{"resource": "\nresource_scrape_error 1\n", "cadvisor": "\ncontainer_scrape_error 1\n"} {
		if w := request(f, "GET", "/metrics/"+name, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 200 and %q", name, w.Code, w.Body, want)
		}
	}
}
