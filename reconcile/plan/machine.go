package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// Machine is what the node can give a pod, other than what it has once. The zero
// value gives what every node does.
type Machine struct {
	// Runtime is what the runtime last said of itself; what it must serve is not
	// asked for before it is reached.
	Runtime runtime.Node
	// UnsafeSysctls may be set beside the safe ones; a name may end in *.
	UnsafeSysctls []string
	// AppArmor says that the kernel enforces its profiles.
	AppArmor bool
}

// demand is a row of the table of what a pod may ask of the machine.
type demand struct {
	reason string // Kubernetes' word for a pod rejected for it
	// lacks says what is not served to the pod and what to do, "" for nothing.
	lacks func(*Machine, *v1.Pod) string
}

// demands are looked at in this order; the first that is not met rejects.
var demands = []demand{
	// Set for one pod, it could starve or slow down the others.
	{"SysctlForbidden", (*Machine).forbiddenSysctl},
	// A container that is to be confined must not run as if it were.
	{"AppArmor", (*Machine).noAppArmor},
	// Older runtimes take the field for nothing and run the pod's root as the
	// node's.
	{"UserNamespacesNotSupported", (*Machine).noUserNamespaces},
	// Likewise: the image's own groups would come on top.
	{"SupplementalGroupsPolicyNotSupported", (*Machine).noStrictGroups},
}

// admit rejects what could only run otherwise than its manifest says: a runtime
// drops in silence what it does not know.
func (m *Machine) admit(p *manifest.Pod) Verdict {
	for _, d := range demands {
		if why := d.lacks(m, p.Spec); why != "" {
			return Verdict{Answer: Reject, Reason: d.reason, Message: why}
		}
	}
	return Verdict{}
}

func (m *Machine) forbiddenSysctl(pod *v1.Pod) string {
	if pod.Spec.SecurityContext == nil {
		return ""
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		if !manifest.SysctlAllowed(s.Name, m.UnsafeSysctls) {
			return fmt.Sprintf("sysctl %s is not safe and not allowed on this node; remove it, or allow it with --allowed-unsafe-sysctls", s.Name)
		}
	}
	return ""
}

func (m *Machine) noAppArmor(pod *v1.Pod) string {
	if m.AppArmor {
		return ""
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if p := manifest.AppArmorProfile(pod, &list[i]); p != nil && p.Type != v1.AppArmorProfileTypeUnconfined {
				return fmt.Sprintf("container %s is to have an AppArmor profile and AppArmor is off on this machine; boot it with apparmor=1, or remove the profile", list[i].Name)
			}
		}
	}
	return ""
}

func (m *Machine) noUserNamespaces(pod *v1.Pod) string {
	if !manifest.HasUserNamespace(&pod.Spec) || !m.Runtime.Reachable || m.Runtime.Handlers[""].UserNamespaces {
		return ""
	}
	return fmt.Sprintf("hostUsers: false needs a user namespace, and %s gives none; use containerd 2 or later with runc 1.2 on Linux 6.3, or remove it", m.runtime())
}

func (m *Machine) noStrictGroups(pod *v1.Pod) string {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict ||
		!m.Runtime.Reachable || m.Runtime.SupplementalGroupsPolicy {
		return ""
	}
	return fmt.Sprintf("supplementalGroupsPolicy Strict is not served by %s; use containerd 2 or later, or remove it", m.runtime())
}

// runtime is its name and version, as in "containerd v2.4.2".
func (m *Machine) runtime() string {
	return strings.TrimSpace(m.Runtime.Name + " " + m.Runtime.Version)
}
