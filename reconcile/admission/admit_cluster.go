package admission

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"podd/manifest"
	"podd/reconcile/plan"
)

// admitClusterPod returns the verdict for a pod of a cluster. The order of the checks, the reasons
// and the messages are the kubelet's. The verdict Reject makes the pod fail. Therefore the verdict
// is Wait if the condition is temporary, or if a kubelet does not reject pods because of the
// condition. For a pod that was admitted before, only the requests are checked, because a resize
// may increase them.
func (a *admitter) admitClusterPod(c candidate) plan.Verdict {
	f, pod := &a.limits.Features, c.Desired.Object
	if slices.ContainsFunc(c.ReservedVersions, func(p *manifest.Pod) bool { return p.UID == c.Desired.UID }) {
		v := a.requests.admit(c)
		v.IsResize = v.Answer != plan.Admit
		return v
	}
	oldPods, oldRequested := *a.pods, a.requests.requested
	v := firstNotAdmitted(
		func() plan.Verdict { return a.limits.checkPressure(c) },
		// This check must precede the next one, which also rejects pods that use undeclared
		// features, but with a reason that differs from the kubelet's.
		func() plan.Verdict { return rejectIfMessage("PodFeatureUnsupported", rejectUndeclared(pod)) },
		func() plan.Verdict { return rejectIfMessage("UnexpectedAdmissionError", c.Desired.RefusalReason) },
		func() plan.Verdict { return rejectIfMessage("SysctlForbidden", f.sysctlRejection(pod)) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict {
			return rejectIfMessage("PodOSSelectorNodeLabelDoesNotMatch", osLabelRejection(pod))
		},
		func() plan.Verdict { return rejectIfMessage("PodOSNotSupported", osRejection(pod)) },
		func() plan.Verdict {
			return rejectIfMessage("SupplementalGroupsPolicyNotSupported", f.strictGroupsRejection(pod))
		},
		func() plan.Verdict { return a.pods.admit(c) },
		func() plan.Verdict { return a.requests.admit(c) },
		func() plan.Verdict { return a.checkExceptCapacity(c) },
	)
	if v.Answer == plan.Reject { // undo the reservations, because a rejected pod reserves nothing
		*a.pods, a.requests.requested = oldPods, oldRequested
	}
	if v.Answer == plan.Reject && isCritical(c.Desired) && v.Insufficient != "" {
		if otherVerdict := a.checkExceptCapacity(c); otherVerdict.Answer == plan.Reject {
			return otherVerdict // do not preempt other pods, because this verdict would not change
		}
		return a.preempt(c)
	}
	if v.Answer == plan.Admit {
		a.ports.reserve(c)
		a.claims.reserve(c)
	}
	return v
}

// checkExceptCapacity checks everything except the number of pods, the devices and the requested
// amounts.
func (a *admitter) checkExceptCapacity(c candidate) plan.Verdict {
	f, pod := &a.limits.Features, c.Desired.Object
	return firstNotAdmitted(
		func() plan.Verdict {
			return rejectByPredicate("NodeAffinity", f.checkAffinity(pod) != "", "node(s) didn't match Pod's node affinity/selector")
		},
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict {
			return rejectByPredicate("TaintToleration", f.hasUntoleratedTaint(pod), "node(s) had taints that the pod didn't tolerate")
		},
		func() plan.Verdict { return rejectIfMessage("AppArmor", f.appArmorRejection(pod)) },
		func() plan.Verdict { return waitInsteadOfReject(f.admit(c.Desired)) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return waitInsteadOfReject(a.claims.check(c)) },
	)
}

// firstNotAdmitted returns the first verdict of checks that is not Admit, or Admit if there is
// none.
func firstNotAdmitted(checks ...func() plan.Verdict) (v plan.Verdict) {
	for _, check := range checks {
		if v = check(); v.Answer != plan.Admit {
			return v
		}
	}
	return v
}

// rejectIfMessage returns Reject with a reason and a message, or Admit if message is "".
func rejectIfMessage(reason, message string) plan.Verdict {
	if message == "" {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Reject, Reason: reason, Message: message}
}

// rejectByPredicate returns Reject with the kubelet's reason and message if a pod fails the
// scheduler predicate with this name, and Admit otherwise. fails reports whether the pod fails the
// predicate.
func rejectByPredicate(name string, fails bool, message string) plan.Verdict {
	if !fails {
		return plan.Verdict{}
	}
	return rejectIfMessage(name, "Predicate "+name+" failed: "+message)
}

// waitInsteadOfReject returns v, but with the answer Wait if v is Reject. It is used for conditions under
// which a kubelet does not reject the pod. The kubelet retries the start of the pod instead.
func waitInsteadOfReject(v plan.Verdict) plan.Verdict {
	if v.Answer == plan.Reject {
		v.Answer = plan.Wait
	}
	return v
}

// osLabelRejection returns the kubelet's message for a pod with a label that names another
// operating system. It returns "" for other pods.
func osLabelRejection(pod *v1.Pod) string {
	if label, ok := pod.Labels[v1.LabelOSStable]; ok && label != goruntime.GOOS {
		return "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	return ""
}

// osRejection returns the kubelet's message for a pod whose spec names another operating system. It
// returns "" for other pods.
func osRejection(pod *v1.Pod) string {
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != goruntime.GOOS {
		return "Failed to admit pod as the OS field doesn't match node OS"
	}
	return ""
}

// strictGroupsRejection returns the kubelet's message for a pod that needs an unsupported
// supplementalGroupsPolicy. It returns "" for other pods.
func (f *Features) strictGroupsRejection(pod *v1.Pod) string {
	if f.checkStrictGroups(pod) == "" {
		return ""
	}
	return "SupplementalGroupsPolicy=Strict is not supported in this node"
}

// hasUntoleratedTaint reports whether the node has a NoExecute taint that the pod does not
// tolerate. It evaluates the toleration operators Lt and Gt without checking the feature gate
// TaintTolerationComparisonOperators, because an API server rejects these operators if its gate is
// disabled.
func (f *Features) hasUntoleratedTaint(pod *v1.Pod) bool {
	return slices.ContainsFunc(f.Taints, func(t v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoExecute && !slices.ContainsFunc(pod.Spec.Tolerations, func(o v1.Toleration) bool { return o.ToleratesTaint(klog.Logger{}, &t, true) })
	})
}

// appArmorRejection returns the kubelet's message for a pod that requires AppArmor on a node
// without AppArmor. It returns "" for other pods.
func (f *Features) appArmorRejection(pod *v1.Pod) string {
	if f.checkAppArmor(pod) == "" {
		return ""
	}
	return "Cannot enforce AppArmor: AppArmor is not enabled on the host"
}

// formatInsufficient returns the kubelet's message for an insufficient resource.
func formatInsufficient(name v1.ResourceName, requested, usedAmount, capacity int64) string {
	if manifest.IsExtendedResource(name) {
		return fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", name, requested, capacity-usedAmount)
	}
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, usedAmount, capacity)
}

// sortInKubeletOrder sorts names in the order in which a kubelet checks resources, and returns
// names.
func sortInKubeletOrder(names []v1.ResourceName) []v1.ResourceName {
	reverseOrder := []v1.ResourceName{v1.ResourceEphemeralStorage, v1.ResourceMemory, v1.ResourceCPU, v1.ResourcePods} // a higher index comes first, so that other resources, with the index -1, come last
	slices.SortFunc(names, func(a, b v1.ResourceName) int {
		return cmp.Or(cmp.Compare(slices.Index(reverseOrder, b), slices.Index(reverseOrder, a)), strings.Compare(string(a), string(b)))
	})
	return names
}
