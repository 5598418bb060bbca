//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack/tools"
	"podd/server"
)

// wantLimits checks the kernel's limits after a resize. Those of container a must be milli of CPU and
// mebi of memory. Those of the pod must be higher by 100m and 16Mi, the limits of the other container.
// The parameter was describes container a before the resize, which must still be running.
func (d *daemon) wantLimits(p *server.PodView, was runningContainer, milli, mebi int) {
	d.t.Helper()
	now := d.container("web", "a")
	if now != was {
		d.t.Fatalf("container a after a resize: got %+v, want %+v", now, was)
	}
	for _, c := range p.Pod.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			d.t.Errorf("container %s after a resize: got %d restarts, want 0", c.Name, c.RestartCount)
		}
	}
	if got := p.Pod.Status.ContainerStatuses[0].Resources.Limits.Memory().Value(); got != int64(mebi)<<20 {
		d.t.Errorf("status: got a memory limit of %d bytes, want %dMi", got, mebi)
	}
	pod := "kubepods/burstable/pod" + string(p.Pod.UID)
	quota := func(milli int) string { return strconv.Itoa(milli * 100) }
	bytes := func(mebi int) string { return strconv.Itoa(mebi << 20) }
	for _, tt := range []struct{ what, got, want1, want2 string }{
		{"memory", cgroupValue(d.t, was.PID, "memory", "memory.limit_in_bytes", "memory.max"), bytes(mebi), bytes(mebi)},
		{"quota", cgroupValue(d.t, was.PID, "cpu", "cpu.cfs_quota_us", "cpu.max"), quota(milli), quota(milli) + " 100000"},
		{"the pod's memory", d.cgroupFile(pod, "memory", "memory.limit_in_bytes", "memory.max"), bytes(mebi + 16), bytes(mebi + 16)},
		{"the pod's quota", d.cgroupFile(pod, "cpu", "cpu.cfs_quota_us", "cpu.max"), quota(milli + 100), quota(milli+100) + " 100000"},
	} {
		if err := checkCgroupValue(tt.got, tt.want1, tt.want2); err != nil {
			d.t.Errorf("%s after a resize to %dm and %dMi: %v", tt.what, milli, mebi, err)
		}
	}
}

// wantAnnounced checks that podd has announced the new size of the pod to the runtime. The parameters
// are those of wantLimits. Only containerd 2.4 reports the announced size. The contract of package
// runtimetest checks that other runtimes accept the announcement.
func (d *daemon) wantAnnounced(was runningContainer, milli, mebi int) {
	d.t.Helper()
	if d.on.Tools.Flavor != tools.Pinned {
		return
	}
	want := &cri.LinuxContainerResources{CpuShares: 40, CpuPeriod: 100_000, CpuQuota: int64(milli+100) * 100, MemoryLimitInBytes: int64(mebi+16) << 20}
	got := d.announcedResources(was.Sandbox)
	if got == nil {
		d.t.Fatalf("size that the runtime received in a resize to %dm and %dMi: got none, want %v", milli, mebi, want)
	}
	got.Unified = nil // depends on the version of cgroups
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		d.t.Errorf("size that the runtime received in a resize to %dm and %dMi (-want +got):\n%s", milli, mebi, diff)
	}
}

// sizedWeb returns a pod with the given limits of container a.
func (d *daemon) sizedWeb(milli, mebi int) *v1.Pod {
	return d.pod("web",
		withResources(shell("a", serve("a")), "20m", strconv.Itoa(milli)+"m", strconv.Itoa(mebi)+"Mi"),
		withResources(shell("b", serve("b")), "20m", "100m", "16Mi"))
}

// TestResize checks that an edit of CPU and memory changes the limits without a restart and that the
// runtime is informed, also if podd is killed during the edit. An edit that removes a limit must replace
// the pod.
func TestResize(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.sizedWeb(200, 32))
	first := d.untilApplied("web")
	was := d.container("web", "a")
	d.wantLimits(first, was, 200, 32)

	d.apply(d.sizedWeb(400, 128))
	d.wantLimits(d.untilApplied("web"), was, 400, 128)
	d.wantAnnounced(was, 400, 128)
	d.untilEvent("web", 1, "ResizeStarted", `"memory":"128Mi"`)
	d.untilEvent("web", 1, "ResizeCompleted", `"memory":"128Mi"`)
	d.apply(d.sizedWeb(100, 24))
	d.wantLimits(d.untilApplied("web"), was, 100, 24)
	d.wantAnnounced(was, 100, 24)

	// podd must apply edits that are made while it does not run, and edits during which it is killed.
	d.kill()
	d.apply(d.sizedWeb(300, 64))
	d.start()
	d.wantLimits(d.untilApplied("web"), was, 300, 64)
	d.wantAnnounced(was, 300, 64)
	for i := range 4 {
		milli, mebi := 200+100*(i%2), 48+16*(i%2)
		d.apply(d.sizedWeb(milli, mebi))
		d.until("podd uses the edited manifest", d.usesFile("web"))
		d.crash()
		d.wantLimits(d.untilApplied("web"), was, milli, mebi)
		d.wantAnnounced(was, milli, mebi)
	}

	// An edit that requests more than the host has changes nothing and is reported.
	d.apply(d.sizedWeb(300, int(hostMemory(t)>>20)*2))
	for range 2 {
		p := d.untilPod("waits", "web", func(p *server.PodView) error {
			if !p.NeedsUser || !strings.Contains(p.Why, "of memory; the node has") {
				return fmt.Errorf("got the reason %q, want a problem with \"of memory; the node has\"", p.Why)
			}
			return nil
		})
		d.wantLimits(p, was, 300, 64)
		d.wantAnnounced(was, 300, 64)
		if got := resizePendingReason(p); got != v1.PodReasonInfeasible {
			t.Errorf("condition PodResizePending: got the reason %q, want Infeasible", got)
		}
		d.untilEvent("web", 1, "ResizeInfeasible", "of memory; the node has")
		if out, stderr := d.verb("why", "web"); !strings.Contains(out+stderr, "the node has") {
			t.Errorf("podd why: got stdout %q, stderr %q; want %q in one of them", out, stderr, "the node has")
		}
		d.crash()
	}
	d.apply(d.sizedWeb(200, 32))
	d.wantLimits(d.untilApplied("web"), was, 200, 32)
	d.wantAnnounced(was, 200, 32)

	p := d.sizedWeb(200, 32)
	delete(p.Spec.Containers[1].Resources.Limits, v1.ResourceCPU)
	d.apply(p)
	if now := d.untilApplied("web"); now.Pod.UID == first.Pod.UID || d.container("web", "a").ID == was.ID {
		t.Errorf("after an edit that removes a limit: got pod UID %s, container ID %s; want a pod UID other than %s and a new container", now.Pod.UID, d.container("web", "a").ID, first.Pod.UID)
	}
}

// resizePendingReason returns the reason of the condition PodResizePending, or "" unless the condition
// is true.
func resizePendingReason(p *server.PodView) string {
	for _, c := range p.Pod.Status.Conditions {
		if c.Type == v1.PodResizePending && c.Status == v1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// TestResize_BelowUsage checks that podd does not reduce a memory limit below the current usage. The
// container must keep running, and a later edit must be able to increase the limit. A container with the
// resizePolicy RestartContainer must be restarted by the resize.
func TestResize_BelowUsage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	// dd holds a block of 40 MiB until the FIFO is written to.
	hoard := "trap 'exit 0' TERM; mkfifo /tmp/p; (dd if=/dev/zero bs=40M count=1; sleep 3600) 2>/dev/null | (" +
		"head -c 1 >/dev/null; " + note("hoards") + "sleep 3600) & wait"
	once := withResources(shell("once", serve("once")), "20m", "100m", "16Mi")
	once.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
	sized := func(mebi int) *v1.Pod {
		p := d.pod("web", withResources(shell("a", hoard), "20m", "1", strconv.Itoa(mebi)+"Mi"), once)
		for _, list := range []v1.ResourceList{p.Spec.Containers[1].Resources.Limits, p.Spec.Containers[1].Resources.Requests} {
			list[v1.ResourceMemory] = resource.MustParse(strconv.Itoa(mebi/4) + "Mi")
		}
		return p
	}
	d.apply(sized(96))
	d.untilApplied("web")
	d.untilNote("hoards")
	was, restarted := d.container("web", "a"), d.container("web", "once")
	d.apply(sized(16))
	// The message must be the kubelet's, because the node tests of Kubernetes search for it.
	rejected := regexp.MustCompile(`cannot decrease memory limits: .*container "a" memory limit \(16777216\) below current usage \(\d+\)`)
	d.untilPod("shows the rejected resize", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.Conditions {
			if c.Type == v1.PodResizeInProgress && c.Reason == v1.PodReasonError && rejected.MatchString(c.Message) {
				return nil
			}
		}
		return fmt.Errorf("got the conditions %+v and the decisions %+v, want PodResizeInProgress with an error that matches %s", p.Pod.Status.Conditions, p.Decisions, rejected)
	})
	if now := d.container("web", "a"); now != was {
		t.Errorf("container a after the rejected resize: got %+v, want %+v", now, was)
	}
	d.apply(sized(128))
	d.untilApplied("web")
	if now := d.container("web", "a"); now != was {
		t.Errorf("container a after the second resize: got %+v, want %+v", now, was)
	}
	if got := cgroupValue(t, was.PID, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(128<<20) {
		t.Errorf("memory limit of container a: got %s bytes, want 128 MiB", got)
	}
	now := d.container("web", "once")
	if now.ID == restarted.ID || now.Sandbox != restarted.Sandbox {
		t.Errorf("container once after the resizes: got %+v, want a new container in the sandbox of %+v", now, restarted)
	}
	if got := cgroupValue(t, now.PID, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(32<<20) {
		t.Errorf("memory limit of container once: got %s bytes, want 32 MiB", got)
	}
}
