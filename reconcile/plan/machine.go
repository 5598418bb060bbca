package plan

import (
	"fmt"

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
}

// demand is a row of the table of what a pod may ask of the machine.
type demand struct {
	reason string // Kubernetes' word for a pod rejected for it
	// lacks says what is not served to the pod and what to do, "" for nothing.
	lacks func(*Machine, *v1.PodSpec) string
}

// demands are looked at in this order; the first that is not met rejects.
var demands = []demand{
	// Set for one pod, it could starve or slow down the others.
	{"SysctlForbidden", (*Machine).forbiddenSysctl},
}

// admit rejects what could only run otherwise than its manifest says: a runtime
// drops in silence what it does not know.
func (m *Machine) admit(p *manifest.Pod) Verdict {
	for _, d := range demands {
		if why := d.lacks(m, &p.Spec.Spec); why != "" {
			return Verdict{Answer: Reject, Reason: d.reason, Message: why}
		}
	}
	return Verdict{}
}

func (m *Machine) forbiddenSysctl(spec *v1.PodSpec) string {
	if spec.SecurityContext == nil {
		return ""
	}
	for _, s := range spec.SecurityContext.Sysctls {
		if !manifest.SysctlAllowed(s.Name, m.UnsafeSysctls) {
			return fmt.Sprintf("sysctl %s is not safe and not allowed on this node; remove it, or allow it with --allowed-unsafe-sysctls", s.Name)
		}
	}
	return ""
}
