//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

// fits checks what the kernel gives a container and its pod, which has two of
// which one stays as it is: 16Mi, 100m.
func (d *daemon) fits(p *server.PodView, was running, milli, mebi int) {
	d.t.Helper()
	now := d.runs("web", "a")
	if now != was {
		d.t.Fatalf("it is now %+v, was %+v", now, was)
	}
	for _, c := range p.Pod.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			d.t.Errorf("%s was restarted %d times", c.Name, c.RestartCount)
		}
	}
	if got := p.Pod.Status.ContainerStatuses[0].Resources.Limits.Memory().Value(); got != int64(mebi)<<20 {
		d.t.Errorf("the status says %d bytes, want %dMi", got, mebi)
	}
	pod := "kubepods/burstable/pod" + string(p.Pod.UID)
	quota := func(milli int) string { return strconv.Itoa(milli * 100) }
	bytes := func(mebi int) string { return strconv.Itoa(mebi << 20) }
	for _, tt := range []struct{ what, got, want1, want2 string }{
		{"memory", cgroupValue(d.t, was.PID, "memory", "memory.limit_in_bytes", "memory.max"), bytes(mebi), bytes(mebi)},
		{"quota", cgroupValue(d.t, was.PID, "cpu", "cpu.cfs_quota_us", "cpu.max"), quota(milli), quota(milli) + " 100000"},
		{"the pod's memory", d.below(pod, "memory", "memory.limit_in_bytes", "memory.max"), bytes(mebi + 16), bytes(mebi + 16)},
		{"the pod's quota", d.below(pod, "cpu", "cpu.cfs_quota_us", "cpu.max"), quota(milli + 100), quota(milli+100) + " 100000"},
	} {
		if err := wants(tt.got, tt.want1, tt.want2); err != nil {
			d.t.Errorf("%s with %dm and %dMi: %v", tt.what, milli, mebi, err)
		}
	}
}

// sizedWeb is a pod of which one container has so much.
func (d *daemon) sizedWeb(milli, mebi int) *v1.Pod {
	return d.pod("web",
		needs(shell("a", serve("a")), "20m", strconv.Itoa(milli)+"m", strconv.Itoa(mebi)+"Mi"),
		needs(shell("b", serve("b")), "20m", "100m", "16Mi"))
}

// TestResize: an edit of cpu and memory alone changes them and restarts nothing,
// whatever befalls podd; what adds a limit is another version.
func TestResize(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.sizedWeb(200, 32))
	first := d.untilApplied("web")
	was := d.runs("web", "a")
	d.fits(first, was, 200, 32)

	d.apply(d.sizedWeb(400, 128))
	d.fits(d.untilApplied("web"), was, 400, 128)
	d.apply(d.sizedWeb(100, 24))
	d.fits(d.untilApplied("web"), was, 100, 24)

	// While podd does not run, and killed as it does it.
	d.kill()
	d.apply(d.sizedWeb(300, 64))
	d.start()
	d.fits(d.untilApplied("web"), was, 300, 64)
	for i := range 4 {
		milli, mebi := 200+100*(i%2), 48+16*(i%2)
		d.apply(d.sizedWeb(milli, mebi))
		d.until("the edit is taken", d.taken("web"))
		d.crash()
		d.fits(d.untilApplied("web"), was, milli, mebi)
	}

	// More than the machine has changes nothing, and is told.
	d.apply(d.sizedWeb(300, int(machineMemory(t)>>20)*2))
	for range 2 {
		p := d.untilPod("waits", "web", func(p *server.PodView) error {
			if !p.Problem || !strings.Contains(p.Why, "of memory; the node has") {
				return fmt.Errorf("why is %q", p.Why)
			}
			return nil
		})
		d.fits(p, was, 300, 64)
		if got := resizePending(p); got != v1.PodReasonInfeasible {
			t.Errorf("the condition PodResizePending says %q", got)
		}
		if out, talk := d.verb("why", "web"); !strings.Contains(out+talk, "the node has") {
			t.Errorf("podd why says %q and %q", out, talk)
		}
		d.crash()
	}
	d.apply(d.sizedWeb(200, 32))
	d.fits(d.untilApplied("web"), was, 200, 32)

	p := d.sizedWeb(200, 32)
	delete(p.Spec.Containers[1].Resources.Limits, v1.ResourceCPU)
	d.apply(p)
	if now := d.untilApplied("web"); now.Pod.UID == first.Pod.UID || d.runs("web", "a").ID == was.ID {
		t.Error("a limit less is no other version")
	}
}

func resizePending(p *server.PodView) string {
	for _, c := range p.Pod.Status.Conditions {
		if c.Type == v1.PodResizePending && c.Status == v1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// TestResizeBelowUse: memory that is in use is not taken away; the container runs
// on, and gets what it can have. One whose resizePolicy says so restarts.
func TestResizeBelowUse(t *testing.T) {
	t.Parallel()
	d := begin(t)
	// dd holds a block of 40 MiB for as long as nobody writes.
	hoard := "trap 'exit 0' TERM; mkfifo /tmp/p; (dd if=/dev/zero bs=40M count=1; sleep 3600) 2>/dev/null | (" +
		"head -c 1 >/dev/null; " + note("hoards") + "sleep 3600) & wait"
	once := needs(shell("once", serve("once")), "20m", "100m", "16Mi")
	once.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
	sized := func(mebi int) *v1.Pod {
		p := d.pod("web", needs(shell("a", hoard), "20m", "1", strconv.Itoa(mebi)+"Mi"), once)
		for _, list := range []v1.ResourceList{p.Spec.Containers[1].Resources.Limits, p.Spec.Containers[1].Resources.Requests} {
			list[v1.ResourceMemory] = resource.MustParse(strconv.Itoa(mebi/4) + "Mi")
		}
		return p
	}
	d.apply(sized(96))
	d.untilApplied("web")
	d.untilNotedAny("hoards")
	was, restarted := d.runs("web", "a"), d.runs("web", "once")
	d.apply(sized(16))
	// The words that upstream's node tests look for.
	rejected := regexp.MustCompile(`cannot decrease memory limits: .*container "a" memory limit \(16777216\) below current usage \(\d+\)`)
	d.untilPod("says that it cannot", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.Conditions {
			if c.Type == v1.PodResizeInProgress && c.Reason == v1.PodReasonError && rejected.MatchString(c.Message) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v, the steps %+v", p.Pod.Status.Conditions, p.Steps)
	})
	if now := d.runs("web", "a"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	d.apply(sized(128))
	d.untilApplied("web")
	if now := d.runs("web", "a"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	if got := cgroupValue(t, was.PID, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(128<<20) {
		t.Errorf("its memory limit is %s", got)
	}
	now := d.runs("web", "once")
	if now.ID == restarted.ID || now.Sandbox != restarted.Sandbox {
		t.Errorf("once is now %+v, was %+v", now, restarted)
	}
	if got := cgroupValue(t, now.PID, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(32<<20) {
		t.Errorf("its memory limit is %s", got)
	}
}
