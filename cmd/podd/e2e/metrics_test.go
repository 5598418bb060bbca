//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	v1 "k8s.io/api/core/v1"
)

// TestMetrics checks the metrics on all endpoints of podd that serve metrics. The metrics must have
// names that promtool accepts, must show that a manifest is invalid, and must not contain removed pods.
func TestMetrics(t *testing.T) {
	t.Parallel()
	cadvisor := freePort(t)
	d := newDaemon(t, shared, "--cadvisor-port", strconv.Itoa(cadvisor))
	d.api = freePort(t)
	d.start()
	began := time.Now().Add(-time.Second) // the file system stores times that are up to a tick old
	probed := shell("main", serve("probed"))
	probed.ReadinessProbe = probeEverySecond(v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}})
	d.apply(d.pod("probed", probed))
	c := d.admin()
	d.untilMetrics(c, "/metrics",
		"kubelet_running_pods 1", `kubelet_running_containers{container_state="running"} 1`, fmt.Sprintf("kubelet_node_name{node=%q} 1", d.host),
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"} 1`, `kubelet_started_containers_total{container_type="container"} 1`,
		"kubelet_pod_start_duration_seconds_count 1", "kubelet_pod_start_total_duration_seconds_count 1",
		"kubelet_pod_start_sli_duration_seconds_count 0", // because the pod has a hostPath volume
		`volume_manager_total_volumes{plugin_name="kubernetes.io/host-path",state="actual_state_of_world"} 1`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="create"}`, `kubelet_cgroup_manager_duration_seconds_count{operation_type="create"}`,
		fmt.Sprintf("kubelet_container_log_filesystem_used_bytes{container=%q,namespace=%q,pod=%q", "main", "default", d.podName("probed")),
		`kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 1`,
		fmt.Sprintf("podd_problems{reason=%q,source=%q} 0", "error", d.manifestFile("probed")),
		fmt.Sprintf("podd_pod_ready{namespace=%q,pod=%q} 1", "default", d.podName("probed")))
	d.untilMetrics(c, "/metrics/probes", `pod_uid="`, `probe_type="Readiness",result="successful"`)
	if text := getPage(t, c, "/healthz"); text != "ok" {
		t.Errorf("/healthz: got %q, want %q", text, "ok")
	}
	d.untilMetrics(c, "/metrics/slis", `kubernetes_healthcheck{name="syncloop",type="healthz"} 1`,
		`kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 1`)
	alone := d.client("http://127.0.0.1:"+strconv.Itoa(cadvisor), nil)
	for _, text := range []string{
		getPage(t, c, "/metrics"), getPage(t, c, "/metrics/cadvisor"), getPage(t, c, "/metrics/resource"), getPage(t, c, "/metrics/probes"), getPage(t, c, "/metrics/slis"), getPage(t, alone, "/metrics"),
	} {
		lint(t, text)
	}
	for target, want := range map[string]string{
		"/api/v1.3/machine": `"num_cores":`, "/api/v1.3/subcontainers/": `"io.kubernetes.pod.name":"` + d.podName("probed"),
		"/api/v2.1/machinestats": `"total":`, "/api/v2.1/stats/?recursive=true": `"io.kubernetes.container.name":"main"`,
	} {
		if text := getPage(t, alone, target); !strings.Contains(text, want) {
			t.Errorf("%s: got %s, want %q in it", target, text, want)
		}
	}
	d.wantCadvisorAPI(alone, "probed", "main", began)
	d.remove("greedy")
	d.untilGone("greedy")
	if text := getPage(t, c, "/spec/"); !strings.Contains(text, `"num_cores":`) {
		t.Errorf("/spec/: got %s, want %q in it", text, `"num_cores":`)
	}

	d.write("probed", "apiVersion: v1\nkind: Pod\nmetadata: {name: probed}\nspec: {}\n")
	d.untilMetrics(c, "/metrics", fmt.Sprintf("podd_problems{reason=%q,source=%q} 1", "error", d.manifestFile("probed")),
		fmt.Sprintf("podd_manifest_behind{source=%q} 1", d.manifestFile("probed")), "kubelet_running_pods 1")
	d.remove("probed")
	d.untilGone("probed")
	d.untilMetrics(c, "/metrics", "kubelet_running_pods 0", `kubelet_cgroup_manager_duration_seconds_count{operation_type="destroy"}`)
	if _, text := c.request(http.MethodGet, "/metrics", ""); strings.Contains(text, d.manifestFile("probed")) {
		t.Errorf("/metrics after the manifest was removed: got\n%s\nwant no series with the source %s", text, d.manifestFile("probed"))
	}
	if _, text := c.request(http.MethodGet, "/metrics/probes", ""); strings.Contains(text, d.podName("probed")) {
		t.Errorf("/metrics/probes after the pod was removed: got\n%s\nwant no series of %s", text, d.podName("probed"))
	}
}

// unusual contains names of metrics that promtool's linter rejects. podd uses them because a kubelet and
// cAdvisor do.
var unusual = []string{
	"kubelet_evictions", "kubelet_running_pods", "kubelet_node_name", "kubelet_cgroup_version", "volume_manager_total_volumes",
	"cadvisor_version_info", "container_fs_inodes_total", "container_memory_failcnt",
}

// lint checks the text of a scrape as promtool check metrics does.
func lint(t *testing.T, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(text) == 0 {
		t.Errorf("linting metrics: got %d bytes and error %v, want some bytes and no error", len(text), err)
	}
	for _, p := range problems {
		if !slices.Contains(unusual, p.Metric) {
			t.Errorf("problem of metric %s: got %q, want none", p.Metric, p.Text)
		}
	}
}

// untilMetrics waits until a scrape of path contains all texts in want.
func (d *daemon) untilMetrics(c *client, path string, want ...string) {
	d.t.Helper()
	d.eventually(path+" has the expected metrics", func() error {
		status, text := c.request(http.MethodGet, path, "")
		if status != http.StatusOK {
			return fmt.Errorf("got status %d, body %s; want status 200", status, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				return fmt.Errorf("got metrics\n%s\nwant %s in them", text, w)
			}
		}
		return nil
	})
}
