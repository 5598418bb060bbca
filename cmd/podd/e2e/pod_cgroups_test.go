//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/server"
)

// withoutPodCgroups are the flags with which podd creates no cgroups of pods.
var withoutPodCgroups = []string{"--cgroups-per-qos=false", "--enforce-node-allocatable=none"}

// TestWithoutPodCgroups checks that podd creates no cgroups of pods with the flags withoutPodCgroups.
// Containers must still have their limits and statistics. podd must reject a pod with pod-level
// resources.
func TestWithoutPodCgroups(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared, withoutPodCgroups...)
	d.api = freePort(t)
	d.start()
	p := d.pod("web", withResources(shell("a", "x=$(head -c 8388608 /dev/zero | tr '\\0' x); "+serve("a")), "100m", "200m", "64Mi"), withResources(shell("b", serve("b")), "50m", "100m", "16Mi"))
	sized := d.pod("sized", shell("a", serve("sized")))
	sized.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}}
	d.apply(p, sized)
	d.untilApplied("web")
	d.untilPod("is rejected", "sized", func(p *server.PodView) error {
		return checkCgroupValue(p.Pod.Status.Reason, "PodLevelResourcesNotSupported", "PodLevelResourcesNotSupported")
	})
	pid := d.container("web", "a").PID
	if at := cgroupOf(t, pid); strings.Contains(at, "kubepods") || strings.Contains(at, d.parentCgroup()) {
		t.Errorf("cgroup of the container: got %s, want one in the default cgroup of the runtime", at)
	}
	if got, want := cgroupValue(t, pid, "memory", "memory.limit_in_bytes", "memory.max"), strconv.Itoa(64<<20); got != want {
		t.Errorf("got a memory limit of %s, want %s", got, want)
	}
	if err := checkCgroupValue(cgroupValue(t, pid, "cpu", "cpu.cfs_quota_us", "cpu.max"), "20000", "20000 100000"); err != nil {
		t.Errorf("CPU quota of the container: %v", err)
	}
	if found := findCgroups(d.parentCgroup() + "/kubepods"); len(found) > 0 {
		t.Errorf("cgroups of pods: got %v, want none", found)
	}
	c := d.admin()
	d.eventually("the summary contains the memory of the pod", func() error {
		_, s := d.summary(c, "", "web")
		a, b := containerStats(s, "a"), containerStats(s, "b")
		if a == nil || b == nil || s.Memory == nil || s.CPU == nil {
			return fmt.Errorf("got statistics %+v, want the CPU and memory of the pod and its containers", s)
		}
		if sum := *a.Memory.WorkingSetBytes + *b.Memory.WorkingSetBytes; *s.Memory.WorkingSetBytes != sum || *a.Memory.WorkingSetBytes < 8<<20 {
			return fmt.Errorf("working set: got %d bytes for the pod, and %d and %d for its containers; want the sum for the pod, and 8 MiB or more for the first container", *s.Memory.WorkingSetBytes, *a.Memory.WorkingSetBytes, *b.Memory.WorkingSetBytes)
		}
		if s.Network == nil {
			return errors.New("got no network statistics of the pod, want those of its sandbox")
		}
		return nil
	})
}

// TestWithoutPodCgroups_Resize checks that an edit decreases the memory limit of a container without a
// restart.
func TestWithoutPodCgroups_Resize(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, withoutPodCgroups...)
	web := func(memory string) *v1.Pod {
		return d.pod("web", withResources(shell("a", "x=$(head -c 8388608 /dev/zero | tr '\\0' x); "+serve("a")), "100m", "200m", memory))
	}
	d.apply(web("64Mi"))
	d.untilApplied("web")
	before := d.container("web", "a").PID
	d.apply(web("48Mi"))
	d.eventually("the container is resized", func() error {
		if got, want := cgroupValue(t, before, "memory", "memory.limit_in_bytes", "memory.max"), strconv.Itoa(48<<20); got != want {
			return fmt.Errorf("memory limit of the container: got %s bytes, want %s", got, want)
		}
		return nil
	})
	if after := d.container("web", "a").PID; after != before {
		t.Errorf("process of the container after the resize: got %d, want %d", after, before)
	}
}

// TestWithoutPodCgroups_Restart checks that a pod keeps running in its cgroup when podd is restarted
// with the flags that disable cgroups of pods. The cgroup must be removed with the pod.
func TestWithoutPodCgroups_Restart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("a", serve("web"))))
	at := d.parentCgroup() + "/kubepods/besteffort/pod" + string(d.untilApplied("web").Pod.UID)
	before := d.container("web", "a").PID
	d.kill()
	d.args = append(d.args, withoutPodCgroups...)
	d.start()
	d.apply(d.pod("web", shell("a", serve("web"))), d.pod("new", shell("a", serve("new"))))
	d.untilApplied("new")
	if after := d.container("web", "a").PID; after != before {
		t.Errorf("process of the container after the restart of podd: got %d, want %d", after, before)
	}
	if got := cgroupOf(t, before); !strings.HasPrefix(got, at) {
		t.Errorf("cgroup of the container after the restart of podd: got %s, want one in %s", got, at)
	}
	if got := cgroupOf(t, d.container("new", "a").PID); strings.Contains(got, d.parentCgroup()) {
		t.Errorf("cgroup of the container of a new pod: got %s, want one in the default cgroup of the runtime", got)
	}
	d.remove("web")
	d.untilGone("web")
	d.eventually("the cgroup of the removed pod is removed", func() error {
		if found := findCgroups(at); len(found) > 0 {
			return fmt.Errorf("got cgroups %v, want none", found)
		}
		return nil
	})
}

// findCgroups returns the directories of a cgroup in all hierarchies.
func findCgroups(at string) []string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*" + at)
	v2, _ := filepath.Glob("/sys/fs/cgroup" + at)
	return append(v1, v2...)
}

// cgroupOf returns the path of the memory cgroup of a process or, with cgroup v2, of its only cgroup.
func cgroupOf(t testing.TB, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if parts[1] == "memory" {
			return parts[2]
		}
		if parts[1] == "" {
			unified = parts[2]
		}
	}
	return unified
}
