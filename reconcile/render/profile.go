package render

import (
	"path"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
)

// Parts of /proc and /sys that tell of the host or change it; the same list as
// of other container engines. A runtime ignores both for privileged containers.
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

// seccomp is the CRI's form of a profile; nil is the node's default. The
// localhost profile of a manifest is a path below the node's directory, which
// validation has shown to stay there.
func seccomp(n Node, p *v1.SeccompProfile) *cri.SecurityProfile {
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

// SeccompFile is the path of the file that a container's seccomp profile is in;
// "" when it is in none.
func SeccompFile(spec *v1.PodSpec, c *v1.Container, n Node) string {
	name, ok := manifest.LocalSeccomp(spec, c)
	if !ok {
		return ""
	}
	return seccompFile(n, name)
}

func seccompFile(n Node, name string) string { return path.Join(n.SeccompDir, path.Join("/", name)) }

// apparmor is the container's profile and its older text form; nil and "" leave
// the choice to the runtime.
func apparmor(pod *v1.Pod, c *v1.Container) (*cri.SecurityProfile, string) {
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
