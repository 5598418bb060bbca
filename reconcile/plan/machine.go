package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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
	// RuntimeClasses are the handlers of classes that are named otherwise.
	RuntimeClasses map[string]string
	// Labels of the node.
	Labels map[string]string
	// Taints of the node in its cluster; only its pods are asked whether they
	// tolerate them.
	Taints []v1.Taint
	// AppArmor says that the kernel enforces its profiles.
	AppArmor bool
}

// demand is a row of the table of what a pod may ask of the machine.
type demand struct {
	reason string // Kubernetes' word for a pod rejected for it
	// lacks says what is not served to the pod and what to do, "" for nothing.
	lacks func(*Machine, *v1.Pod) string
}

const noHandlerReason = "RuntimeHandlerNotFound"

// demands are looked at in this order; the first that is not met rejects.
var demands = []demand{
	// It is meant for another node: manifests may be served to many.
	{"NodeAffinity", (*Machine).anotherNode},
	// Set for one pod, it could starve or slow down the others.
	{"SysctlForbidden", (*Machine).forbiddenSysctl},
	// A container that is to be confined must not run as if it were.
	{"AppArmor", (*Machine).noAppArmor},
	// The default handler would isolate less, or not at all.
	{noHandlerReason, (*Machine).noHandler},
	// Older runtimes take the field for nothing and run the pod's root as the
	// node's.
	{"UserNamespacesNotSupported", (*Machine).noUserNamespaces},
	// Likewise: the image's own groups would come on top.
	{"SupplementalGroupsPolicyNotSupported", (*Machine).noStrictGroups},
	// Likewise: it would be ended with another signal, unprepared.
	{"StopSignalNotSupported", (*Machine).noStopSignals},
}

// admit rejects what could only run otherwise than its manifest says: a runtime
// drops in silence what it does not know.
func (m *Machine) admit(p *manifest.Pod) Verdict {
	if p.Handler != nil { // the cluster's word counts
		of := *m
		of.RuntimeClasses = map[string]string{*p.Spec.Spec.RuntimeClassName: *p.Handler}
		m = &of
	}
	for _, d := range demands {
		if d.reason == noHandlerReason && p.Origin.Kind == manifest.KindAPI {
			continue // a cluster tries, and tries again
		}
		if why := d.lacks(m, p.Spec); why != "" {
			return Verdict{Answer: Reject, Reason: d.reason, Message: why}
		}
	}
	return Verdict{}
}

// Refuses says what of a pod's ephemeral containers, which come when the pod is
// admitted already, cannot be as it is written; "" for nothing.
func (m *Machine) Refuses(pod *v1.Pod) string { return m.noAppArmor(pod) }

func (m *Machine) forbiddenSysctl(pod *v1.Pod) string {
	if name := m.unsafeSysctl(pod); name != "" {
		return fmt.Sprintf("sysctl %s is not safe and not allowed on this node; remove it, or allow it with --allowed-unsafe-sysctls", name)
	}
	return ""
}

// unsafeSysctl is the first that the node does not allow; "" for none.
func (m *Machine) unsafeSysctl(pod *v1.Pod) string {
	if pod.Spec.SecurityContext == nil {
		return ""
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		if !manifest.SysctlAllowed(s.Name, m.UnsafeSysctls) {
			return s.Name
		}
	}
	return ""
}

func (m *Machine) anotherNode(pod *v1.Pod) string {
	if manifest.MatchesNode(&pod.Spec, pod.Spec.NodeName, m.Labels) {
		return ""
	}
	return "this node is none of those that its nodeSelector or nodeAffinity asks for; change them, or label the node with --node-labels"
}

func (m *Machine) handler(pod *v1.Pod) string {
	return manifest.RuntimeHandler(&pod.Spec, m.RuntimeClasses)
}

// noHandler: where the runtime does not list its handlers, it finds out itself.
func (m *Machine) noHandler(pod *v1.Pod) string {
	handler := m.handler(pod)
	_, known := m.Runtime.Handlers[handler]
	if handler == "" || known || !m.asked() || len(m.Runtime.Handlers) == 0 {
		return ""
	}
	var has []string
	for _, name := range slices.Sorted(maps.Keys(m.Runtime.Handlers)) {
		if name != "" {
			has = append(has, name)
		}
	}
	return fmt.Sprintf("runtimeClassName %q: %s has no handler %q, only %s; name one of them, or map the class with --runtime-class=%s=HANDLER",
		*pod.Spec.RuntimeClassName, m.runtime(), handler, cmp.Or(strings.Join(has, ", "), "its default"), *pod.Spec.RuntimeClassName)
}

func (m *Machine) noAppArmor(pod *v1.Pod) string {
	if m.AppArmor {
		return ""
	}
	added := ephemeralOf(&pod.Spec)
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers, added} {
		for i := range list {
			if p := manifest.AppArmorProfile(pod, &list[i]); p != nil && p.Type != v1.AppArmorProfileTypeUnconfined {
				return fmt.Sprintf("container %s is to have an AppArmor profile and AppArmor is off on this machine; boot it with apparmor=1, or remove the profile", list[i].Name)
			}
		}
	}
	return ""
}

func (m *Machine) noUserNamespaces(pod *v1.Pod) string {
	if !manifest.HasUserNamespace(&pod.Spec) || !m.asked() || m.Runtime.Handlers[m.handler(pod)].UserNamespaces {
		return ""
	}
	return fmt.Sprintf("hostUsers: false needs a user namespace, and %s gives none; use containerd 2 or later with runc 1.2 on Linux 6.3, or remove it", m.runtime())
}

func (m *Machine) noStrictGroups(pod *v1.Pod) string {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict ||
		!m.asked() || m.Runtime.SupplementalGroupsPolicy {
		return ""
	}
	return fmt.Sprintf("supplementalGroupsPolicy Strict is not served by %s; use containerd 2 or later, or remove it", m.runtime())
}

// stopSignals has the runtimes that end a container with its own signal.
var stopSignals = runtime.Since{"containerd": {2, 3}, "cri-o": {1, 34}}

func (m *Machine) noStopSignals(pod *v1.Pod) string {
	if !m.asked() || m.Runtime.Reaches(stopSignals) {
		return ""
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil && l.StopSignal != nil {
				return fmt.Sprintf("lifecycle.stopSignal of container %s is not served by %s; use containerd 2.3, or give the image a STOPSIGNAL", list[i].Name, m.runtime())
			}
		}
	}
	return ""
}

// asked says that the runtime told of itself.
func (m *Machine) asked() bool { return m.Runtime.Reachable && m.Runtime.Name != "" }

// runtime is its name and version, as in "containerd v2.4.2".
func (m *Machine) runtime() string {
	return strings.TrimSpace(m.Runtime.Name + " " + m.Runtime.Version)
}
