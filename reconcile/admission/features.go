package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// Features are the properties of the node that pods can require. The zero value means a node
// without optional features.
type Features struct {
	// Runtime is the last status of the runtime. The features of the runtime are checked only
	// if the runtime has responded.
	Runtime runtime.Node
	// AllowedUnsafeSysctls contains the unsafe sysctls that are allowed. A name may end with *.
	AllowedUnsafeSysctls []string
	// KernelRelease is the release of the running kernel, such as "6.1.0-13-amd64"; "" if it is
	// unknown. Some sysctls are safe only on newer kernels.
	KernelRelease string
	// RuntimeClasses maps the name of a RuntimeClass to its handler, if the names differ.
	RuntimeClasses map[string]string
	// Labels contains the labels of the node.
	Labels map[string]string
	// Taints contains the taints of the node in its cluster. They apply only to pods of the
	// cluster.
	Taints []v1.Taint
	// HasAppArmor reports whether the kernel enforces AppArmor profiles.
	HasAppArmor bool
	// WithoutPodCgroups reports whether pods have no cgroups.
	WithoutPodCgroups bool
}

// A requirement describes a feature of the node that pods can require.
type requirement struct {
	reason string // reason of a pod that is rejected because the node lacks the feature
	// describeUnmet returns a message with the missing feature and the remedy; "" if the node has
	// the feature or the pod does not require it.
	describeUnmet func(*Features, *v1.Pod) string
}

const missingHandlerReason = "RuntimeHandlerNotFound"

// requirements contains all requirements in the order in which they are checked. The first missing
// feature is the reason for rejecting the pod.
var requirements = []requirement{
	// Several nodes may have the same manifest. The node affinity restricts the nodes on which the
	// pod runs.
	{"NodeAffinity", (*Features).checkAffinity},
	// An unsafe sysctl of one pod could starve or slow down other pods.
	{"SysctlForbidden", (*Features).checkSysctls},
	// A container must not run unconfined if its manifest requires a profile.
	{"AppArmor", (*Features).checkAppArmor},
	// A pod must not run with the default handler instead of its own handler, because the default
	// handler may isolate containers less.
	{missingHandlerReason, (*Features).checkHandler},
	// Without a cgroup of the pod, nothing would limit its containers together.
	{"PodLevelResourcesNotSupported", (*Features).checkPodResources},
	// Older runtimes ignore hostUsers and run the pod's root as the node's root.
	{"UserNamespacesNotSupported", (*Features).checkUserNamespaces},
	// Older runtimes ignore supplementalGroupsPolicy and add the groups of the image.
	{"SupplementalGroupsPolicyNotSupported", (*Features).checkStrictGroups},
	// Older runtimes ignore lifecycle.stopSignal and send another signal.
	{"StopSignalNotSupported", (*Features).checkStopSignals},
	// If a pod needs an undeclared feature, the scheduler binds it to another node, but a user can
	// bind it to this node.
	{"PodFeatureUnsupported", (*Features).checkDeclared},
}

// admit returns Reject if the node lacks a feature that the pod requires. Such a pod must not run,
// because the runtime would ignore the fields that it does not support.
func (f *Features) admit(p *manifest.Pod) plan.Verdict {
	if p.ServerRuntimeHandler != nil { // the handler from the cluster takes precedence
		withHandler := *f
		withHandler.RuntimeClasses = map[string]string{*p.Object.Spec.RuntimeClassName: *p.ServerRuntimeHandler}
		f = &withHandler
	}
	for _, r := range requirements {
		if r.reason == missingHandlerReason && p.Traits.FailsIfRejected {
			continue // do not reject a pod whose handler is missing, because a kubelet retries the start of such a pod
		}
		if message := r.describeUnmet(f, p.Object); message != "" {
			return plan.Verdict{Answer: plan.Reject, Reason: r.reason, Message: message}
		}
	}
	return plan.Verdict{}
}

// CheckEphemeral returns why the node cannot run the ephemeral containers of a pod, or "" if it can
// run them. Ephemeral containers are added after the admission of their pod.
func (f *Features) CheckEphemeral(pod *v1.Pod) string { return f.checkAppArmor(pod) }

// checkAffinity implements requirement.describeUnmet.
func (f *Features) checkAffinity(pod *v1.Pod) string {
	if manifest.MatchesNode(pod, pod.Spec.NodeName, f.Labels) {
		return ""
	}
	return "the node does not match the nodeSelector or nodeAffinity of the pod; change them, or label the node with --node-labels"
}

// runtimeHandler returns the runtime handler of a pod; "" means the default handler.
func (f *Features) runtimeHandler(pod *v1.Pod) string {
	return manifest.RuntimeClassHandler(&pod.Spec, f.RuntimeClasses)
}

// checkHandler implements requirement.describeUnmet. If the runtime does not list its handlers,
// checkHandler accepts every handler, because the runtime checks the handler itself.
func (f *Features) checkHandler(pod *v1.Pod) string {
	handler := f.runtimeHandler(pod)
	_, isListed := f.Runtime.Handlers[handler]
	if handler == "" || isListed || !f.hasRuntimeStatus() || len(f.Runtime.Handlers) == 0 {
		return ""
	}
	var handlers []string
	for _, name := range slices.Sorted(maps.Keys(f.Runtime.Handlers)) {
		if name != "" {
			handlers = append(handlers, name)
		}
	}
	return fmt.Sprintf("runtimeClassName %q: %s has no handler %q, only %s; add the handler to the runtime's configuration, or map the RuntimeClass to another handler with --runtime-class=%s=HANDLER",
		*pod.Spec.RuntimeClassName, f.describeRuntime(), handler, cmp.Or(strings.Join(handlers, ", "), "its default"), *pod.Spec.RuntimeClassName)
}

// checkAppArmor implements requirement.describeUnmet.
func (f *Features) checkAppArmor(pod *v1.Pod) string {
	if f.HasAppArmor {
		return ""
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for _, c := range pod.Spec.EphemeralContainers {
		containers = append(containers, v1.Container(c.EphemeralContainerCommon))
	}
	for i := range containers {
		if p := manifest.AppArmorProfile(pod, &containers[i]); p != nil && p.Type != v1.AppArmorProfileTypeUnconfined {
			return fmt.Sprintf("container %s has an AppArmor profile, but AppArmor is disabled on this node; boot it with apparmor=1, or remove the profile", containers[i].Name)
		}
	}
	return ""
}

// checkPodResources implements requirement.describeUnmet.
func (f *Features) checkPodResources(pod *v1.Pod) string {
	if !f.WithoutPodCgroups || !resourcehelper.IsPodLevelResourcesSet(pod) {
		return ""
	}
	return "spec.resources needs a cgroup of the pod, but pods have no cgroups on this node (cgroupsPerQOS: false); set the resources of the containers instead, or set cgroupsPerQOS: true"
}

// checkUserNamespaces implements requirement.describeUnmet.
func (f *Features) checkUserNamespaces(pod *v1.Pod) string {
	if !manifest.HasUserNamespace(&pod.Spec) || !f.hasRuntimeStatus() || f.Runtime.Handlers[f.runtimeHandler(pod)].UserNamespaces {
		return ""
	}
	return fmt.Sprintf("hostUsers: false needs a user namespace, which %s does not support; upgrade the node (minimum: containerd 2.0 or CRI-O 1.31, runc 1.2, Linux 6.3), or remove hostUsers", f.describeRuntime())
}

// checkStrictGroups implements requirement.describeUnmet.
func (f *Features) checkStrictGroups(pod *v1.Pod) string {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict ||
		!f.hasRuntimeStatus() || f.Runtime.SupplementalGroupsPolicy {
		return ""
	}
	return fmt.Sprintf("supplementalGroupsPolicy Strict is not supported by %s; upgrade the runtime (minimum: containerd 2.0 or CRI-O 1.31), or remove supplementalGroupsPolicy", f.describeRuntime())
}

// minStopSignalVersions contains the lowest version of each runtime that supports stop signals of
// containers.
var minStopSignalVersions = runtime.MinVersions{"containerd": {2, 3}, "cri-o": {1, 34}}

// checkStopSignals implements requirement.describeUnmet.
func (f *Features) checkStopSignals(pod *v1.Pod) string {
	if !f.hasRuntimeStatus() || f.Runtime.HasMinVersion(minStopSignalVersions) {
		return ""
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l := list[i].Lifecycle; l != nil && l.StopSignal != nil {
				return fmt.Sprintf("lifecycle.stopSignal of container %s is not supported by %s; upgrade the runtime (minimum: containerd 2.3 or CRI-O 1.34), or set STOPSIGNAL in the image", list[i].Name, f.describeRuntime())
			}
		}
	}
	return ""
}

// hasRuntimeStatus reports whether the runtime has reported its status.
func (f *Features) hasRuntimeStatus() bool { return f.Runtime.Reachable && f.Runtime.Name != "" }

// describeRuntime returns the runtime's name and version, like "containerd v2.4.2".
func (f *Features) describeRuntime() string {
	return strings.TrimSpace(f.Runtime.Name + " " + f.Runtime.Version)
}
