package render

import (
	"path"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// These paths in /proc and /sys reveal information about the host or change it. Other container
// engines use the same lists. Runtimes ignore both lists for privileged containers.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore",
		"/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
		"/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{
		"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
	}
)

// seccompProfile returns the CRI form of a profile; nil means the node's default. A Localhost
// profile is a path below SeccompDir. Validation has checked the path.
func seccompProfile(n Node, p *v1.SeccompProfile) *cri.SecurityProfile {
	switch {
	case p == nil && n.SeccompDefault,
		p != nil && p.Type == v1.SeccompProfileTypeRuntimeDefault:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	case p != nil && p.Type == v1.SeccompProfileTypeLocalhost:
		name := ""
		if p.LocalhostProfile != nil {
			name = *p.LocalhostProfile
		}
		return &cri.SecurityProfile{
			ProfileType:  cri.SecurityProfile_Localhost,
			LocalhostRef: seccompFile(n, name),
		}
	}
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}
}

// SeccompFile returns the path of the file with a container's Localhost seccomp profile;
// "" if the container has no such profile.
func SeccompFile(spec *v1.PodSpec, c *v1.Container, n Node) string {
	name, ok := manifest.LocalSeccompPath(spec, c)
	if !ok {
		return ""
	}
	return seccompFile(n, name)
}

func seccompFile(n Node, name string) string { return path.Join(n.SeccompDir, path.Join("/", name)) }

// apparmorProfile returns the container's AppArmor profile, and the same profile in the older text
// form. nil and "" mean the default of the runtime.
func apparmorProfile(pod *v1.Pod, c *v1.Container) (*cri.SecurityProfile, string) {
	p := manifest.AppArmorProfile(pod, c)
	if p == nil {
		return nil, ""
	}
	switch p.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault},
			v1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case v1.AppArmorProfileTypeLocalhost:
		name := ""
		if p.LocalhostProfile != nil {
			name = *p.LocalhostProfile
		}
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost, LocalhostRef: name},
			v1.DeprecatedAppArmorBetaProfileNamePrefix + name
	}
	return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined},
		v1.DeprecatedAppArmorBetaProfileNameUnconfined
}
