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

// Machine contains the features of the node that pods can require. The zero value has only
// features that every node has.
type Machine struct {
	// Runtime is the last status of the runtime. Its features are checked only when it has
	// been reached.
	Runtime runtime.Node
	// UnsafeSysctls are allowed in addition to the safe ones; a name may end in *.
	UnsafeSysctls []string
	// RuntimeClasses maps RuntimeClasses to handlers with a different name.
	RuntimeClasses map[string]string
	// Labels of the node.
	Labels map[string]string
	// Taints of the node in its cluster. They apply only to pods of the cluster.
	Taints []v1.Taint
	// AppArmor reports that the kernel enforces AppArmor profiles.
	AppArmor bool
}

// demand is a row of the table of features that pods can require.
type demand struct {
	reason string // Kubernetes' reason for a rejected pod
	// lacks returns the missing feature and the remedy, or "".
	lacks func(*Machine, *v1.Pod) string
}

const noHandlerReason = "RuntimeHandlerNotFound"

// demands are checked in this order; the first missing feature rejects the pod.
var demands = []demand{
	// The pod is for another node, because a manifest may be given to many nodes.
	{"NodeAffinity", (*Machine).anotherNode},
	// An unsafe sysctl of one pod could starve or slow down others.
	{"SysctlForbidden", (*Machine).forbiddenSysctl},
	// A container must not run unconfined if its manifest requires a profile.
	{"AppArmor", (*Machine).noAppArmor},
	// The default handler might isolate less, or not at all.
	{noHandlerReason, (*Machine).noHandler},
	// Older runtimes ignore the field and run the pod's root as the node's root.
	{"UserNamespacesNotSupported", (*Machine).noUserNamespaces},
	// Older runtimes ignore the field and add the groups of the image.
	{"SupplementalGroupsPolicyNotSupported", (*Machine).noStrictGroups},
	// Older runtimes ignore the field and send another signal.
	{"StopSignalNotSupported", (*Machine).noStopSignals},
}

// admit rejects a pod that could only run differently from its manifest, because a runtime
// ignores unknown fields silently.
func (m *Machine) admit(p *manifest.Pod) Verdict {
	if p.Handler != nil { // the handler from the cluster takes precedence
		withHandler := *m
		withHandler.RuntimeClasses = map[string]string{*p.Spec.Spec.RuntimeClassName: *p.Handler}
		m = &withHandler
	}
	for _, d := range demands {
		if d.reason == noHandlerReason && p.Traits.FailsIfRejected {
			continue // it would fail; as in a kubelet, its start is retried
		}
		if why := d.lacks(m, p.Spec); why != "" {
			return Verdict{Answer: Reject, Reason: d.reason, Message: why}
		}
	}
	return Verdict{}
}

// Refuses returns the feature that the ephemeral containers of a pod lack, or "". They are
// added after the pod was admitted.
func (m *Machine) Refuses(pod *v1.Pod) string { return m.noAppArmor(pod) }

func (m *Machine) forbiddenSysctl(pod *v1.Pod) string {
	if name := m.unsafeSysctl(pod); name != "" {
		return fmt.Sprintf("sysctl %s is not safe and not allowed on this node; remove it, or allow it with --allowed-unsafe-sysctls", name)
	}
	return ""
}

// unsafeSysctl returns the first sysctl that the node does not allow, or "".
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
	if manifest.MatchesNode(pod, pod.Spec.NodeName, m.Labels) {
		return ""
	}
	return "the node does not match the nodeSelector or nodeAffinity of the pod; change them, or label the node with --node-labels"
}

func (m *Machine) handler(pod *v1.Pod) string {
	return manifest.RuntimeHandler(&pod.Spec, m.RuntimeClasses)
}

// noHandler accepts every handler if the runtime does not list its handlers, because then
// the runtime checks it.
func (m *Machine) noHandler(pod *v1.Pod) string {
	handler := m.handler(pod)
	_, known := m.Runtime.Handlers[handler]
	if handler == "" || known || !m.hasReported() || len(m.Runtime.Handlers) == 0 {
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
				return fmt.Sprintf("container %s has an AppArmor profile, but AppArmor is disabled on this node; boot it with apparmor=1, or remove the profile", list[i].Name)
			}
		}
	}
	return ""
}

func (m *Machine) noUserNamespaces(pod *v1.Pod) string {
	if !manifest.HasUserNamespace(&pod.Spec) || !m.hasReported() || m.Runtime.Handlers[m.handler(pod)].UserNamespaces {
		return ""
	}
	return fmt.Sprintf("hostUsers: false needs a user namespace, which %s does not support; use containerd 2 or CRI-O 1.31, or later, with runc 1.2 on Linux 6.3, or remove it", m.runtime())
}

func (m *Machine) noStrictGroups(pod *v1.Pod) string {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict ||
		!m.hasReported() || m.Runtime.SupplementalGroupsPolicy {
		return ""
	}
	return fmt.Sprintf("supplementalGroupsPolicy Strict is not supported by %s; use containerd 2 or CRI-O 1.31, or later, or remove it", m.runtime())
}

// stopSignals lists the runtimes that support stop signals of containers.
var stopSignals = runtime.Since{"containerd": {2, 3}, "cri-o": {1, 34}}

func (m *Machine) noStopSignals(pod *v1.Pod) string {
	if !m.hasReported() || m.Runtime.Reaches(stopSignals) {
		return ""
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil && l.StopSignal != nil {
				return fmt.Sprintf("lifecycle.stopSignal of container %s is not supported by %s; use containerd 2.3 or CRI-O 1.34, or later, or give the image a STOPSIGNAL", list[i].Name, m.runtime())
			}
		}
	}
	return ""
}

// hasReported reports whether the runtime has reported its status.
func (m *Machine) hasReported() bool { return m.Runtime.Reachable && m.Runtime.Name != "" }

// runtime returns the runtime's name and version, like "containerd v2.4.2".
func (m *Machine) runtime() string {
	return strings.TrimSpace(m.Runtime.Name + " " + m.Runtime.Version)
}
