package check

import (
	"fmt"
	"slices"
	"strings"

	"podd/manifest"
)

// CgroupV1Problem is the problem that podd reports on a host with cgroup v1. It is not reported if
// the user has accepted cgroup v1 with "failCgroupV1: false".
var CgroupV1Problem = Problem{
	Outcome: Warning,
	Cause:   "this host uses cgroup v1, on which the kubelet of Kubernetes " + manifest.KubernetesRelease() + " does not start; podd works on it",
	Remedy:  "boot the host with systemd.unified_cgroup_hierarchy=1, or accept cgroup v1 with failCgroupV1: false",
}

// neededControllers contains the cgroup controllers that podd uses, and the effect of their absence.
var neededControllers = []struct {
	name, effect, remedy string
	outcome              Outcome
}{
	{"memory", "memory limits do not work", "boot the host with cgroup_enable=memory", Failed},
	{"cpu", "CPU requests and limits do not work", "use a kernel with CONFIG_CGROUP_SCHED, and mount the controller", Failed},
	{"pids", "the number of processes of a pod is not limited", "use a kernel with CONFIG_CGROUP_PIDS, and mount the controller", Warning},
}

func checkCgroups(f *Facts, r *Result) {
	c := f.Cgroups
	if c.Err != nil || len(c.Hierarchies) == 0 {
		r.Detail = "not mounted"
		cause := "no cgroup hierarchy is mounted"
		if c.Err != nil {
			cause = c.Err.Error()
		}
		r.fail("mount cgroup v2 at /sys/fs/cgroup", "%s", cause)
		return
	}
	r.Detail = "v1"
	if c.UsesV2 {
		r.Detail = "v2"
	}
	if f.Config != nil && f.Config.WarnsCgroupV1 {
		r.Problems = append(r.Problems, CgroupV1Problem)
	}
	var controllers []string
	for _, h := range c.Hierarchies {
		controllers = append(controllers, h.Controllers...)
		if h.IsReadOnly {
			r.fail("mount the cgroup hierarchy read-write; in a container, use the host's cgroup namespace and a writable /sys/fs/cgroup", "the cgroup hierarchy at %s is read-only, so podd cannot create the cgroups of pods", h.Path)
		}
	}
	for _, n := range neededControllers {
		if !slices.Contains(controllers, n.name) {
			r.add(n.outcome, n.remedy, "the cgroup controller %s is missing: %s", []any{n.name, n.effect})
		}
	}
	slices.Sort(controllers)
	r.Detail += ", controllers " + strings.Join(slices.Compact(controllers), " ")
	if f.Config != nil {
		checkCgroupDriver(f, r)
	}
}

// checkCgroupDriver compares the cgroup driver of the runtime with the configuration and the host.
// The driver of the runtime takes precedence over the configuration.
func checkCgroupDriver(f *Facts, r *Result) {
	const systemd = "systemd"
	driver, configured := f.Runtime.Node.CgroupDriver, f.Config.ConfiguredCgroupDriver
	if driver == "" {
		driver = f.Config.CgroupDriver
	} else if configured != "" && configured != driver {
		r.warn(fmt.Sprintf("set SystemdCgroup = %t (containerd) or cgroup_manager = %q (CRI-O) in the configuration of the runtime, or remove cgroupDriver from podd's configuration", configured == systemd, configured),
			"cgroupDriver: %s has no effect, because the runtime uses the driver %s", configured, driver)
	}
	if driver == systemd && !f.Cgroups.HasSystemd {
		r.fail("set SystemdCgroup = false (containerd) or cgroup_manager = \"cgroupfs\" (CRI-O) in the configuration of the runtime",
			"the cgroup driver is systemd, but this host was not booted with systemd")
	}
	r.Detail += ", driver " + driver
}
