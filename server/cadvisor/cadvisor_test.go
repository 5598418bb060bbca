package cadvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"

	"podd/runtime/runtimetest/golden"
	"podd/server"
)

// A fixedMeter always returns the same data.
type fixedMeter struct {
	server.Meter
	err error
}

func (f fixedMeter) Machine(context.Context) (*model.MachineInfo, error) {
	return &model.MachineInfo{
		NumCores: 4, NumPhysicalCores: 2, NumSockets: 1, MemoryCapacity: 8 << 30, BootID: "b", MachineID: "m", SystemUUID: "s",
		DiskMap: map[string]model.DiskInfo{"8:0": {Name: "sda", Major: 8, Size: 1 << 40}},
	}, f.err
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (f fixedMeter) Containers(context.Context) (map[string]*model.ContainerInfo, error) {
	all := map[string]*model.ContainerInfo{}
	for i, name := range []string{"/", "/podd/kubepods", "/podd/kubepods/podu1", "/podd/kubepods/podu1/c1", "/podd/kubepodsx"} {
		all[name] = &model.ContainerInfo{
			ContainerReference: model.ContainerReference{Name: name},
			Spec:               model.ContainerSpec{CreationTime: noon.Add(-time.Hour), HasCpu: true, Cpu: model.CpuSpec{Limit: 1024}},
			Stats: []*model.ContainerStats{{
				Timestamp: noon, Cpu: &model.CpuStats{Usage: model.CpuUsage{Total: uint64(i)}}, Memory: &model.MemoryStats{Usage: 1 << 20},
			}},
		}
	}
	node, c := all["/"], all["/podd/kubepods/podu1/c1"]
	node.Spec.HasFilesystem = true
	node.Stats[0].Filesystem = []model.FsStats{{Device: "/dev/sda1", Type: "vfs", Limit: 1000, Usage: 400, Available: 500, HasInodes: true, InodesFree: 4}}
	c.Id, c.Aliases = "c1", []string{"c1", c.Name}
	c.Spec.Image, c.Spec.Labels = "web:1", map[string]string{"io.kubernetes.pod.name": "web-n1"}
	c.Stats[0].Network = &model.NetworkStats{Interfaces: []model.InterfaceStats{{Name: "eth0", RxBytes: 11}}}
	c.Stats[0].Filesystem = []model.FsStats{{Usage: 30, BaseUsage: 10, Inodes: 3}}
	return all, f.err
}

func (f fixedMeter) CPURates(context.Context) (map[string]uint64, error) {
	return map[string]uint64{"/": 1_500_000_000, "/podd/kubepods": 250_000_000, "/podd/kubepods/podu1": 200_000_000}, f.err
}

func (f fixedMeter) Filesystems(uuid string) ([]model.FsInfo, error) {
	inodes, free := uint64(9), uint64(4)
	all := []model.FsInfo{
		{Timestamp: noon, Device: "/dev/sda1", Mountpoint: "/", Labels: []string{"root"}, Capacity: 1000, Usage: 400, Available: 500, Inodes: &inodes, InodesFree: &free},
		{Timestamp: noon, Device: "/dev/sdb1", Mountpoint: "/data", Capacity: 2000},
	}
	switch uuid {
	case "":
		return all, f.err
	case "b":
		return all[1:], f.err
	}
	return nil, f.err
}

func (f fixedMeter) Processes(_ context.Context, cgroup string) ([]model.ProcessInfo, error) {
	if cgroup == "/podd/kubepodsx" {
		return nil, &fs.PathError{Op: "open", Path: cgroup, Err: fs.ErrNotExist}
	}
	return []model.ProcessInfo{{
		User: "root", Pid: 42, Ppid: 1, StartTime: "11:30", PercentCpu: 1.5, PercentMemory: 0.1, RSS: 4096, VirtualSize: 8192,
		Status: "S", RunningTime: "00:00:01", Cmd: "<script>", FdCount: 3, Psr: 1,
	}}, f.err
}

func (f fixedMeter) OOMEvents() ([]model.Event, error) {
	victim := model.EventData{OomKill: &model.OomKillEventData{Pid: 42, ProcessName: "web", Constraint: "CONSTRAINT_MEMCG"}}
	return []model.Event{
		{ContainerName: "/podd/kubepods/podu1", Timestamp: noon, EventType: model.EventOom},
		{ContainerName: "/podd/kubepods/podu1/gone", Timestamp: noon, EventType: model.EventOomKill, EventData: victim},
		{ContainerName: "/", Timestamp: noon.Add(-2 * time.Hour), EventType: model.EventOom},
	}, f.err
}

func get(m Meter, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler(m).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// softwareVersion matches the lines with the versions of the host and of cAdvisor's library.
var softwareVersion = regexp.MustCompile(`("(kernel_version|container_os_version|cadvisor_version)":) ".*"`)

// TestHandler_Golden checks the fields of the responses of every kind of request.
func TestHandler_Golden(t *testing.T) {
	for file, target := range map[string]string{
		"v1.3-machine":       "/api/v1.3/machine",
		"v1.3-containers":    "/api/v1.3/containers/",
		"v1.3-subcontainers": "/api/v1.3/subcontainers/podd/kubepods/podu1",
		"v2.1-machinestats":  "/api/v2.1/machinestats",
		"v2.1-spec":          "/api/v2.1/spec/podd/kubepods/podu1/c1?type=name",
		"v2.1-stats":         "/api/v2.1/stats/podd/kubepods/podu1/c1",
		"v1.3-docker":        "/api/v1.3/docker/",
		"v1.3-events":        "/api/v1.3/events/podd/kubepods/podu1?all_events=true&subcontainers=true",
		"v2.1-attributes":    "/api/v2.1/attributes",
		"v2.1-storage":       "/api/v2.1/storage",
		"v2.1-storage-uuid":  "/api/v2.1/storage?uuid=b",
		"v2.1-summary":       "/api/v2.1/summary/podd/kubepods",
		"v2.1-ps":            "/api/v2.1/ps/podd/kubepods/podu1/c1",
	} {
		w := get(fixedMeter{}, "GET", target)
		var v any
		if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != 200 || err != nil {
			t.Errorf("%s: got %d %s, want 200 and JSON", target, w.Code, w.Body)
			continue
		}
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", file+".json"), softwareVersion.ReplaceAllString(string(text), "$1 ...")+"\n")
	}
}

// TestHandler_Names checks which cgroups a response contains.
func TestHandler_Names(t *testing.T) {
	const pods, pod, container = "/podd/kubepods", "/podd/kubepods/podu1", "/podd/kubepods/podu1/c1"
	for _, test := range []struct{ target, want string }{
		{"/api/v1.3/subcontainers" + pods + "/", pods + " " + pod + " " + container},
		{"/api/v1.3/subcontainers/", "/ " + pods + " " + pod + " " + container + " /podd/kubepodsx"},
		{"/api/v1.3/containers" + pods, pods},
	} {
		w := get(fixedMeter{}, "POST", test.target)
		body := w.Body.String()
		if !strings.HasPrefix(body, "[") {
			body = "[" + body + "]"
		}
		var all []model.ContainerInfo
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		var got, children []string
		for _, c := range all {
			got = append(got, c.Name)
			for _, child := range c.Subcontainers {
				children = append(children, child.Name)
			}
		}
		if strings.Join(got, " ") != test.want || len(children) == 0 || len(all) > 1 && len(children) < len(all)-1 {
			t.Errorf("%s: got cgroups %v with children %v, want cgroups %s, each below the first one as a child", test.target, got, children, test.want)
		}
	}
	for target, want := range map[string][]string{
		"/api/v2.1/spec" + pods:                     {pods},
		"/api/v2.1/spec/?recursive=true":            {"/", pods, pod, container, "/podd/kubepodsx"},
		"/api/v2.1/stats/?recursive=true":           {pods, pod, container, "/podd/kubepodsx"},
		"/api/v2.1/stats" + pod + "?recursive=true": {pod, container},
		"/api/v2.1/stats/":                          {},
	} {
		var got map[string]any
		if err := json.Unmarshal(get(fixedMeter{}, "GET", target).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if got[name] == nil {
				t.Errorf("%s: got no cgroup %s, want one", target, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: got %d cgroups, want %d", target, len(got), len(want))
		}
	}
}

// TestHandler_Events checks which events a request selects.
func TestHandler_Events(t *testing.T) {
	const all = "containerCreation / 11:00, containerCreation /podd/kubepods 11:00, containerCreation /podd/kubepods/podu1 11:00"
	for query, want := range map[string]string{
		"":                                    "",
		"/?subcontainers=true":                "",
		"/?oom_events=true":                   "oom / 10:00",
		"/?oom_events=true&deletion_events=0": "oom / 10:00",
		"/?all_events=true":                   "oom / 10:00, containerCreation / 11:00",
		"/podd/kubepods/podu1?oom_events=1":   "oom /podd/kubepods/podu1 12:00",
		"/podd/kubepods/podu?all_events=true": "",
		"/podd/kubepods/podu1/gone?oom_kill_events=true":                                                          "oomKill /podd/kubepods/podu1/gone 12:00",
		"/podd/kubepods/podu?oom_events=true&subcontainers=true":                                                  "",
		"/?oom_kill_events=true&subcontainers=true":                                                               "oomKill /podd/kubepods/podu1/gone 12:00",
		"/?all_events=true&subcontainers=true&max_events=2":                                                       "oom /podd/kubepods/podu1 12:00, oomKill /podd/kubepods/podu1/gone 12:00",
		"/?all_events=true&subcontainers=true&start_time=2026-01-02T12:00:00Z":                                    "oom /podd/kubepods/podu1 12:00, oomKill /podd/kubepods/podu1/gone 12:00",
		"/?oom_events=true&subcontainers=true&end_time=2026-01-02T11:59:59Z&max_events=-1":                        "oom / 10:00",
		"/?creation_events=true&subcontainers=true&end_time=2026-01-02T11:00:00Z&start_time=2026-01-02T11:00:00Z": all + ", containerCreation /podd/kubepods/podu1/c1 11:00, containerCreation /podd/kubepodsx 11:00",
	} {
		var events []model.Event
		w := get(fixedMeter{}, "GET", "/api/v2.1/events"+query)
		if err := json.Unmarshal(w.Body.Bytes(), &events); err != nil || events == nil {
			t.Errorf("%s: got %d %s, want a list", query, w.Code, w.Body)
		}
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s %s %s", e.EventType, e.ContainerName, e.Timestamp.Format("15:04")))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
}

// TestHandler_Storage checks that a label selects file systems.
func TestHandler_Storage(t *testing.T) {
	var got []model.FsInfo
	w := get(fixedMeter{}, "GET", "/api/v2.1/storage?label=root")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != 1 || got[0].Mountpoint != "/" {
		t.Errorf("got %d %s, want only the file system at /", w.Code, w.Body)
	}
}

// TestHandler_Version checks that the version is a JSON string. The build information of a test has no
// versions of modules.
func TestHandler_Version(t *testing.T) {
	var got string
	w := get(fixedMeter{}, "GET", "/api/v2.1/version")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Errorf("got %d %s, want a JSON string", w.Code, w.Body)
	}
}

// strictMeter is a fixedMeter that fails the test if the processes of an unmeasured cgroup are read.
type strictMeter struct {
	fixedMeter
	t *testing.T
}

func (s strictMeter) Processes(ctx context.Context, cgroup string) ([]model.ProcessInfo, error) {
	if all, _ := s.Containers(ctx); all[cgroup] == nil {
		s.t.Errorf("got a read of the processes of the unmeasured cgroup %q, want none", cgroup)
	}
	return s.fixedMeter.Processes(ctx, cgroup)
}

// FuzzHandler checks that every response has a valid status and is JSON or a text, and that only the
// processes of measured cgroups are read.
func FuzzHandler(f *testing.F) {
	for _, target := range []string{
		"/api/v2.1/ps/podd/kubepods", "/api/v2.1/ps/../../etc", "/api/v2.1/ps/%2e%2e/%2fetc", "/api/v1.3/docker/a/b", "/api/v2.1/storage?label=root&uuid=%00",
		"/api/v1.3/events/?all_events=1&max_events=-1&start_time=0001-01-01T00:00:00Z", "/api/v2.1/summary/?recursive=true", "/api/v1.3//events", "/api",
	} {
		f.Add("GET", target)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.URL = method, u
		w := httptest.NewRecorder()
		Handler(strictMeter{t: t}).ServeHTTP(w, r)
		isJSON := w.Header().Get("Content-Type") == "application/json"
		if w.Code < 200 || w.Code > 599 || isJSON != (w.Code == 200 && !strings.HasPrefix(w.Body.String(), "Supported")) || isJSON && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: got %d %s, want JSON, or a text with another status", method, target, w.Code, w.Body)
		}
	})
}

// TestHandler_Errors checks the responses for requests that podd does not serve.
func TestHandler_Errors(t *testing.T) {
	for _, test := range []struct {
		method, target string
		err            error
		status         int
		want           string
	}{
		{"GET", "/api/", nil, 200, "Supported API versions: v1.3,v2.1\n"},
		{"GET", "/api/v1.3/", nil, 404, "podd serves only /api/v1.3/{containers,docker,events,machine,subcontainers} and /api/v2.1/{attributes,events,machine,machinestats,ps,spec,stats,storage,summary,version} of cAdvisor's API"},
		{"GET", "/api/v1.2/machine", nil, 404, "podd serves only"},
		{"GET", "/api/v1.3/docker/web", nil, 404, "unknown Docker container web"},
		{"GET", "/api/v1.3/ps/", nil, 404, "podd serves only"},
		{"GET", "/api/v2.1/docker", nil, 404, "podd serves only"},
		{"GET", "/api/v2.1/appmetrics/podd/kubepods", nil, 404, "podd does not serve appmetrics, because it collects no metrics of applications"},
		{"GET", "/api/v2.1/storage?label=docker-images", nil, 404, "unknown file system label docker-images; podd labels only the file system at / (label=root)"},
		{"GET", "/api/v2.1/storage?uuid=c", nil, 404, "unknown file system with UUID c"},
		{"GET", "/api/v2.1/storage", errors.New("no disks"), 500, "measuring resource usage: no disks"},
		{"GET", "/api/v2.1/summary/missing", nil, 404, "unknown container /missing"},
		{"GET", "/api/v2.1/summary/podd/kubepods/podu1/c1", nil, 503, "the CPU usage of /podd/kubepods/podu1/c1 is not known yet"},
		{"GET", "/api/v2.1/ps/missing?recursive=true", nil, 404, "unknown container /missing"},
		{"GET", "/api/v2.1/ps/..%2f..%2fetc", nil, 404, "unknown container /../../etc"},
		{"GET", "/api/v2.1/ps/podd/kubepodsx", nil, 404, "container /podd/kubepodsx has no cgroup on the host"},
		{"GET", "/api/v2.1/ps/?type=docker", nil, 400, "type=name"},
		{"GET", "/api/v1.3/events/?stream=true", nil, 400, "podd does not stream events (stream=true)"},
		{"GET", "/api/v2.1/events/?deletion_events=true", nil, 400, "podd does not serve deletion_events, because it does not record when cgroups are deleted"},
		{"GET", "/api/v2.1/events/?oom_events=maybe", nil, 400, `oom_events must be true or false, not "maybe"`},
		{"GET", "/api/v2.1/events/?start_time=1767355200", nil, 400, `start_time must be a time such as 2006-01-02T15:04:05Z, not "1767355200"`},
		{"GET", "/api/v2.1/events/?max_events=all", nil, 400, `max_events must be a number, not "all"`},
		{"GET", "/api/v1.3/events/?oom_events=true", errors.New("no log"), 500, "no log"},
		{"GET", "/api/v9", nil, 404, "podd serves only"},
		{"GET", "/api/v1.3/containers/missing", nil, 404, "unknown container /missing"},
		{"GET", "/api/v1.3/subcontainers/podd", nil, 404, "unknown container /podd"},
		{"GET", "/api/v2.1/stats/missing?recursive=true", nil, 404, "unknown container /missing"},
		{"GET", "/api/v2.1/stats/web?type=docker", nil, 400, "type=name"},
		{"GET", "/api/v1.3/containers/", errors.New("no cgroups"), 500, "measuring resource usage: no cgroups"},
		{"GET", "/api/v2.1/stats/", errors.New("no cgroups"), 500, "measuring resource usage: no cgroups"},
	} {
		w := get(fixedMeter{err: test.err}, test.method, test.target)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %s: got %d %s, want %d %s", test.method, test.target, w.Code, w.Body, test.status, test.want)
		}
	}
}

// TestMachineHandler checks that /spec/ has the response of /api/v1.3/machine.
func TestMachineHandler(t *testing.T) {
	w := httptest.NewRecorder()
	MachineHandler(fixedMeter{}).ServeHTTP(w, httptest.NewRequest("GET", "/spec/", nil))
	if want := get(fixedMeter{}, "GET", "/api/v1.3/machine").Body.String(); w.Code != 200 || w.Body.String() != want {
		t.Errorf("got %d %s, want %s", w.Code, w.Body, want)
	}
}
