//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	kubelet "k8s.io/kubelet/config/v1beta1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kjson "sigs.k8s.io/json"
)

// TestSettings_OwnProcess checks that podd sets its limit of open files and moves to its cgroup, and that
// the summary contains the statistics of the cgroups of podd and of the runtime.
func TestSettings_OwnProcess(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	own := shared.CgroupParent() + "/own-" + d.node
	d.api = freePort(t)
	d.args = append(d.args, "--max-open-files=5000", "--kubelet-cgroups="+own, "--runtime-cgroups="+shared.CgroupParent())
	d.start()
	if text := d.procFile("limits"); !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		return slices.Equal(strings.Fields(line), []string{"Max", "open", "files", "5000", "5000", "files"})
	}) {
		t.Errorf("limits of podd: got\n%s\nwant 5000 open files", text)
	}
	if text := d.procFile("cgroup"); !strings.Contains(text, "memory:"+own+"\n") && !strings.Contains(text, "0::"+own+"\n") {
		t.Errorf("cgroups of podd: got\n%s\nwant %s", text, own)
	}
	status, text := d.admin().request("GET", "/stats/summary", "")
	var summary stats.Summary
	if err := json.Unmarshal([]byte(text), &summary); err != nil || status != 200 {
		t.Fatalf("/stats/summary: got status %d, error %v; want status 200 and JSON", status, err)
	}
	for _, want := range []string{stats.SystemContainerKubelet, stats.SystemContainerRuntime} {
		i := slices.IndexFunc(summary.Node.SystemContainers, func(c stats.ContainerStats) bool { return c.Name == want })
		if i < 0 || summary.Node.SystemContainers[i].Memory == nil {
			t.Errorf("/stats/summary: got %s, want the memory of the system container %s in it", text, want)
		}
	}
}

// procFile returns the content of a file about the process of podd in /proc.
func (d *daemon) procFile(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.proc.pid(), name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// TestSettings_Configz checks the configuration in the response of /configz. It must contain no unknown
// fields, because the tests of Kubernetes decode it strictly.
func TestSettings_Configz(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared, "--manifest-url-header-file=/dev/null", "--max-pods=7")
	d.api = freePort(t)
	d.start()
	c := d.admin()
	status, text := c.request("GET", "/configz", "")
	var response struct {
		Config kubelet.KubeletConfiguration `json:"kubeletconfig"`
	}
	if unknown, err := kjson.UnmarshalStrict([]byte(text), &response); err != nil || len(unknown) > 0 || status != 200 {
		t.Fatalf("/configz: got status %d, error %v, unknown fields %v; want status 200, no error, no unknown fields: %s", status, err, unknown, text)
	}
	if k := response.Config; k.Kind != "KubeletConfiguration" || k.APIVersion != "kubelet.config.k8s.io/v1beta1" || k.MaxPods != 7 || k.MaxOpenFiles != 1000000 {
		t.Errorf("/configz: got %s, want the kind KubeletConfiguration, maxPods 7 of the flag, and maxOpenFiles 1000000 by default", text)
	}
	d.wantUnauthorized(c.server)
}
