//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// wantCadvisorAPI requests cAdvisor's API with the client c, and checks the responses about a running
// container, which was created after the time began. Then it runs a pod that exceeds its memory limit.
// The OOM kill must be in the events of the API.
func (d *daemon) wantCadvisorAPI(c *client, pod, container string, began time.Time) {
	d.t.Helper()
	var cgroups []model.ContainerInfo
	d.getJSON(c, "/api/v1.3/subcontainers/", &cgroups)
	cgroup := ""
	for _, c := range cgroups {
		if c.Spec.Labels["io.kubernetes.pod.name"] == d.podName(pod) && c.Spec.Labels["io.kubernetes.container.name"] == container {
			cgroup = c.Name
		}
	}
	if cgroup == "" {
		d.t.Fatalf("got cgroups %+v, want one of container %s", cgroups, container)
	}

	var version string
	var attributes model.VersionInfo
	d.getJSON(c, "/api/v2.1/version", &version)
	d.getJSON(c, "/api/v2.1/attributes", &attributes)
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		d.t.Fatal(err)
	}
	if !strings.HasPrefix(version, "v0.") || attributes.CadvisorVersion != version || attributes.KernelVersion != strings.TrimSpace(string(kernel)) || attributes.ContainerOsVersion == "" {
		d.t.Errorf("got version %s and attributes %+v, want a version of cAdvisor, and the versions of the kernel and the operating system", version, attributes)
	}
	var filesystems []model.FsInfo
	d.getJSON(c, "/api/v2.1/storage", &filesystems)
	for _, f := range filesystems {
		if f.Mountpoint == "" || f.Capacity == 0 {
			d.t.Errorf("storage: got %+v, want a mount point and a capacity", f)
		}
	}

	var processes, all []model.ProcessInfo
	d.getJSON(c, "/api/v2.1/ps"+cgroup, &processes)
	d.getJSON(c, "/api/v2.1/ps/", &all)
	pid := d.container(pod, container).PID
	if len(processes) == 0 || processes[0].Pid != pid || processes[0].User != "root" || processes[0].RSS == 0 || strings.Contains(processes[0].Cmd, " ") {
		d.t.Errorf("processes of %s: got %+v, want process %d of root first, and its name without arguments", cgroup, processes, pid)
	}
	found := false
	for _, p := range all {
		found = found || p.Pid == pid && strings.HasSuffix(p.CgroupPath, cgroup)
	}
	if !found {
		d.t.Errorf("all processes: got %d processes, want process %d in cgroup %s among them", len(all), pid, cgroup)
	}
	var summaries map[string]model.DerivedStats
	d.getJSON(c, "/api/v2.1/summary"+cgroup, &summaries)
	if s := summaries[cgroup]; len(summaries) != 1 || s.LatestUsage.Memory == 0 || s.MinuteUsage.Cpu.Present {
		d.t.Errorf("summary of %s: got %+v, want its memory, and no percentiles", cgroup, summaries)
	}
	var created []model.Event
	d.getJSON(c, "/api/v1.3/events"+cgroup+"?creation_events=true", &created)
	if len(created) != 1 || created[0].Timestamp.Before(began) || created[0].Timestamp.After(time.Now()) {
		d.t.Errorf("events of %s: got %+v, want its creation after %v", cgroup, created, began)
	}
	for path, want := range map[string]string{"/api/v2.1/appmetrics/": "appmetrics", "/api/v2.1/events/?stream=true": "stream", "/api/v1.3/docker/" + container: "Docker"} {
		if status, text := c.request("GET", path, ""); status/100 != 4 || !strings.Contains(text, want) {
			d.t.Errorf("%s: got status %d, body %s; want an error that contains %s", path, status, text, want)
		}
	}

	greedy := shell("c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done")
	greedy.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("32Mi")}
	p := d.pod("greedy", greedy)
	p.Spec.RestartPolicy = never
	d.apply(p)
	d.eventually("the OOM kill is in the events", func() error {
		var kills []model.Event
		d.getJSON(c, "/api/v1.3/events/?oom_kill_events=true&subcontainers=true&max_events=0&start_time="+began.UTC().Format(time.RFC3339), &kills)
		v, err := d.state()
		if err != nil {
			return err
		}
		p := d.find(v, "greedy")
		for _, e := range kills {
			k := e.EventData.OomKill
			if p != nil && strings.Contains(e.ContainerName, string(p.Pod.UID)) && k != nil && k.Pid > 0 && k.ProcessName != "" && k.Constraint == "CONSTRAINT_MEMCG" {
				return nil
			}
		}
		return fmt.Errorf("got events %+v, want a kill in a cgroup of pod greedy", kills)
	})
}

// getJSON decodes the response for a path.
func (d *daemon) getJSON(c *client, path string, v any) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(getPage(d.t, c, path)), v); err != nil {
		d.t.Errorf("decoding the response of GET %s: %v", path, err)
	}
}
