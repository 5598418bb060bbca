package cadvisor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"path/filepath"
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

func get(m server.Meter, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler(m).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// TestHandler_Golden checks the fields of the responses of every kind of request.
func TestHandler_Golden(t *testing.T) {
	for file, target := range map[string]string{
		"v1.3-machine":       "/api/v1.3/machine",
		"v1.3-containers":    "/api/v1.3/containers/",
		"v1.3-subcontainers": "/api/v1.3/subcontainers/podd/kubepods/podu1",
		"v2.1-machinestats":  "/api/v2.1/machinestats",
		"v2.1-spec":          "/api/v2.1/spec/podd/kubepods/podu1/c1?type=name",
		"v2.1-stats":         "/api/v2.1/stats/podd/kubepods/podu1/c1",
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
		golden.Compare(t, filepath.Join("testdata", file+".json"), string(text)+"\n")
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
			t.Errorf("%s: got %v with children %v, want %s", test.target, got, children, test.want)
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

// TestHandler_Errors checks the responses for requests that podd does not serve.
func TestHandler_Errors(t *testing.T) {
	for _, test := range []struct {
		method, target string
		err            error
		status         int
		want           string
	}{
		{"GET", "/api/", nil, 200, "Supported API versions: v1.3,v2.1\n"},
		{"GET", "/api/v1.3/", nil, 404, "podd serves only /api/v1.3/{containers,machine,subcontainers} and /api/v2.1/{machine,machinestats,spec,stats} of cAdvisor's API"},
		{"GET", "/api/v1.2/machine", nil, 404, "podd serves only"},
		{"GET", "/api/v1.3/docker/web", nil, 404, "podd serves only"},
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
