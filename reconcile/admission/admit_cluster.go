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
func (a *admissions) admitOfCluster(c Claimant) plan.Verdict {
	m, pod := &a.limits.Machine, c.Wants.Spec
	if slices.ContainsFunc(c.Holds, func(p *manifest.Pod) bool { return p.UID == c.Wants.UID }) {
		v := a.shares.admit(c)
		v.Resize = v.Answer != plan.Admit
		return v
	}
	places, taken := *a.places, a.shares.taken
	v := firstRefusal(
		func() plan.Verdict { return clusterVerdict("UnexpectedAdmissionError", c.Wants.Refused) },
		func() plan.Verdict { return clusterVerdict("SysctlForbidden", m.unlistedSysctl(pod)) },
		func() plan.Verdict { return a.limits.admitDevices(c) },
		func() plan.Verdict { return clusterVerdict("PodOSSelectorNodeLabelDoesNotMatch", otherOSLabel(pod)) },
		func() plan.Verdict { return clusterVerdict("PodOSNotSupported", otherOS(pod)) },
		func() plan.Verdict {
			return clusterVerdict("SupplementalGroupsPolicyNotSupported", m.noStrictGroupsHere(pod))
		},
		func() plan.Verdict { return a.places.admit(c) },
		func() plan.Verdict { return a.shares.admit(c) },
		func() plan.Verdict { return a.admitExceptRoom(c) },
	)
	if v.Answer == plan.Reject { // a rejected pod reserves nothing
		*a.places, a.shares.taken = places, taken
	}
	if v.Answer == plan.Reject && critical(c.Wants) && short(v.Reason) {
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
func (a *admissions) admitExceptRoom(c Claimant) plan.Verdict {
	m, pod := &a.limits.Machine, c.Wants.Spec
	return firstRefusal(
		func() plan.Verdict {
			return predicate("NodeAffinity", m.anotherNode(pod) != "", "node(s) didn't match Pod's node affinity/selector")
		},
		func() plan.Verdict { return a.ports.check(c) },
		func() plan.Verdict {
			return predicate("TaintToleration", m.repels(pod), "node(s) had taints that the pod didn't tolerate")
		},
		func() plan.Verdict { return clusterVerdict("AppArmor", m.unenforced(pod)) },
		func() plan.Verdict { return rejectToWait(m.admit(c.Wants)) },
		func() plan.Verdict { return a.uids.admit(c) },
		func() plan.Verdict { return rejectToWait(a.claims.check(c)) },
	)
}

// short reports whether a pod was rejected because of insufficient resources.
func short(reason string) bool { return strings.HasPrefix(reason, "OutOf") }

// firstRefusal returns the first verdict that is not Admit.
func firstRefusal(checks ...func() plan.Verdict) (v plan.Verdict) {
	for _, check := range checks {
		if v = check(); v.Answer != plan.Admit {
			return v
		}
	}
	return v
}

func clusterVerdict(reason, message string) plan.Verdict {
	if message == "" {
		return plan.Verdict{}
	}
	return plan.Verdict{Answer: plan.Reject, Reason: reason, Message: message}
}

func predicate(name string, fails bool, why string) plan.Verdict {
	if !fails {
		return plan.Verdict{}
	}
	return clusterVerdict(name, "Predicate "+name+" failed: "+why)
}

// rejectToWait turns Reject into Wait for conditions after which a kubelet retries too.
func rejectToWait(v plan.Verdict) plan.Verdict {
	if v.Answer == plan.Reject {
		v.Answer = plan.Wait
	}
	return v
}

func (m *Machine) unlistedSysctl(pod *v1.Pod) string {
	if name := m.unsafeSysctl(pod); name != "" {
		return fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
	}
	return ""
}

func otherOSLabel(pod *v1.Pod) string {
	if label, ok := pod.Labels[v1.LabelOSStable]; ok && label != goruntime.GOOS {
		return "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	return ""
}

func otherOS(pod *v1.Pod) string {
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != goruntime.GOOS {
		return "Failed to admit pod as the OS field doesn't match node OS"
	}
	return ""
}

func (m *Machine) noStrictGroupsHere(pod *v1.Pod) string {
	if m.noStrictGroups(pod) == "" {
		return ""
	}
	return "SupplementalGroupsPolicy=Strict is not supported in this node"
}

// repels reports whether the node has a NoExecute taint that the pod does not tolerate.
func (m *Machine) repels(pod *v1.Pod) bool {
	return slices.ContainsFunc(m.Taints, func(t v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoExecute && !slices.ContainsFunc(pod.Spec.Tolerations, func(o v1.Toleration) bool { return o.ToleratesTaint(&t) })
	})
}

func (m *Machine) unenforced(pod *v1.Pod) string {
	if m.noAppArmor(pod) == "" {
		return ""
	}
	return "Cannot enforce AppArmor: AppArmor is not enabled on the host"
}

// kubeletMessage returns the kubelet's message for an insufficient resource.
func kubeletMessage(name v1.ResourceName, asks, used, has int64) string {
	if manifest.IsExtended(name) {
		return fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", name, asks, has-used)
	}
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, asks, used, has)
}

// inKubeletOrder sorts resources in the order in which a kubelet checks them.
func inKubeletOrder(names []v1.ResourceName) []v1.ResourceName {
	known := []v1.ResourceName{v1.ResourceEphemeralStorage, v1.ResourceMemory, v1.ResourceCPU}
	slices.SortFunc(names, func(a, b v1.ResourceName) int {
		return cmp.Or(cmp.Compare(slices.Index(known, b), slices.Index(known, a)), strings.Compare(string(a), string(b)))
	})
	return names
}
