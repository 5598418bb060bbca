package admission

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
)

// admitOfCluster returns the verdict for a pod of a cluster, with the order, reasons and
// messages of a kubelet. Reject fails the pod. Temporary conditions, and those for which a
// kubelet does not reject, make it wait. A pod that was admitted before is checked only for
// larger requests.
func (a *admitter) admitOfCluster(c candidate) plan.Verdict {
	f, pod := &a.limits.Features, c.Desired.Spec
	if slices.ContainsFunc(c.Held, func(p *manifest.Pod) bool { return p.UID == c.Desired.UID }) {
		v := a.requests.admit(c)
		v.Resize = v.Answer != plan.Admit
		return v
	}
	pods, taken := *a.pods, a.requests.taken
	v := firstNotAdmitted(
		func() plan.Verdict { return rejectIf("UnexpectedAdmissionError", c.Desired.Refused) },
		func() plan.Verdict { return rejectIf("SysctlForbidden", f.kubeletSysctl(pod)) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict { return rejectIf("PodOSSelectorNodeLabelDoesNotMatch", kubeletOSLabel(pod)) },
		func() plan.Verdict { return rejectIf("PodOSNotSupported", kubeletOS(pod)) },
		func() plan.Verdict {
			return rejectIf("SupplementalGroupsPolicyNotSupported", f.kubeletStrictGroups(pod))
		},
		func() plan.Verdict { return a.pods.admit(c) },
		func() plan.Verdict { return a.requests.admit(c) },
		func() plan.Verdict { return a.admitExceptRoom(c) },
	)
	if v.Answer == plan.Reject { // a rejected pod reserves nothing
		*a.pods, a.requests.taken = pods, taken
	}
	if v.Answer == plan.Reject && isCritical(c.Desired) && isOutOf(v.Reason) {
		if other := a.admitExceptRoom(c); other.Answer == plan.Reject {
			return other // preemption would not help
		}
		return a.preempt(c)
	}
	if v.Answer == plan.Admit {
		a.ports.take(c)
		a.claims.take(c)
	}
	return v
}

// admitExceptRoom checks everything except the amounts.
func (a *admitter) admitExceptRoom(c candidate) plan.Verdict {
	f, pod := &a.limits.Features, c.Desired.Spec
	return firstNotAdmitted(
		func() plan.Verdict {
			return predicate("NodeAffinity", f.unmatchedAffinity(pod) != "", "node(s) didn't match Pod's node affinity/selector")
		},
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict {
			return predicate("TaintToleration", f.hasUntoleratedTaint(pod), "node(s) had taints that the pod didn't tolerate")
		},
		func() plan.Verdict { return rejectIf("AppArmor", f.kubeletAppArmor(pod)) },
		func() plan.Verdict { return rejectToWait(f.admit(c.Desired)) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return rejectToWait(a.claims.check(c)) },
	)
}

// isOutOf reports whether a pod was rejected because of insufficient resources.
func isOutOf(reason string) bool { return strings.HasPrefix(reason, "OutOf") }

// firstNotAdmitted returns the first verdict that is not Admit.
func firstNotAdmitted(checks ...func() plan.Verdict) (v plan.Verdict) {
	for _, check := range checks {
		if v = check(); v.Answer != plan.Admit {
			return v
		}
	}
	return v
}

// rejectIf returns Reject with a reason and a message, or Admit if message is "".
func rejectIf(reason, message string) plan.Verdict {
	if message == "" {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Reject, Reason: reason, Message: message}
}

// predicate returns the kubelet's verdict of a scheduler predicate that fails; Admit if fails is
// false.
func predicate(name string, fails bool, why string) plan.Verdict {
	if !fails {
		return plan.Verdict{}
	}
	return rejectIf(name, "Predicate "+name+" failed: "+why)
}

// rejectToWait turns Reject into Wait for conditions after which a kubelet retries too.
func rejectToWait(v plan.Verdict) plan.Verdict {
	if v.Answer == plan.Reject {
		v.Answer = plan.Wait
	}
	return v
}

func (f *Features) kubeletSysctl(pod *v1.Pod) string {
	if name := f.unsafeSysctl(pod); name != "" {
		return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
	}
	return ""
}

func kubeletOSLabel(pod *v1.Pod) string {
	if label, ok := pod.Labels[v1.LabelOSStable]; ok && label != goruntime.GOOS {
		return "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	return ""
}

func kubeletOS(pod *v1.Pod) string {
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != goruntime.GOOS {
		return "Failed to admit pod as the OS field doesn't match node OS"
	}
	return ""
}

func (f *Features) kubeletStrictGroups(pod *v1.Pod) string {
	if f.missingStrictGroups(pod) == "" {
		return ""
	}
	return "SupplementalGroupsPolicy=Strict is not supported in this node"
}

// hasUntoleratedTaint reports whether the node has a NoExecute taint that the pod does not tolerate.
func (f *Features) hasUntoleratedTaint(pod *v1.Pod) bool {
	return slices.ContainsFunc(f.Taints, func(t v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoExecute && !slices.ContainsFunc(pod.Spec.Tolerations, func(o v1.Toleration) bool { return o.ToleratesTaint(&t) })
	})
}

func (f *Features) kubeletAppArmor(pod *v1.Pod) string {
	if f.disabledAppArmor(pod) == "" {
		return ""
	}
	return "Cannot enforce AppArmor: AppArmor is not enabled on the host"
}

// kubeletMessage returns the kubelet's message for an insufficient resource.
func kubeletMessage(name v1.ResourceName, requested, used, capacity int64) string {
	if manifest.IsExtended(name) {
		return fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", name, requested, capacity-used)
	}
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)
}

// inKubeletOrder sorts resources in the order in which a kubelet checks them.
func inKubeletOrder(names []v1.ResourceName) []v1.ResourceName {
	known := []v1.ResourceName{v1.ResourceEphemeralStorage, v1.ResourceMemory, v1.ResourceCPU}
	slices.SortFunc(names, func(a, b v1.ResourceName) int {
		return cmp.Or(cmp.Compare(slices.Index(known, b), slices.Index(known, a)), strings.Compare(string(a), string(b)))
	})
	return names
}
