package plan

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// admitOfCluster answers for a pod of a cluster in the order, for the reasons and in
// the words of a kubelet. Reject is its end; what may pass, or what no kubelet
// rejects for, has it wait. What was admitted before is asked only for more.
func (a *admissions) admitOfCluster(c Claimant) Verdict {
	m, pod := &a.limits.Machine, c.Wants.Spec
	if slices.ContainsFunc(c.Holds, func(p *manifest.Pod) bool { return p.UID == c.Wants.UID }) {
		v := a.shares.admit(c)
		v.Resize = v.Answer != Admit
		return v
	}
	places, taken := *a.places, a.shares.taken
	v := first(
		func() Verdict { return clusterVerdict("UnexpectedAdmissionError", c.Wants.Refused) },
		func() Verdict { return clusterVerdict("SysctlForbidden", m.unlistedSysctl(pod)) },
		func() Verdict { return a.limits.admitDevices(c) },
		func() Verdict { return clusterVerdict("PodOSSelectorNodeLabelDoesNotMatch", otherOSLabel(pod)) },
		func() Verdict { return clusterVerdict("PodOSNotSupported", otherOS(pod)) },
		func() Verdict {
			return clusterVerdict("SupplementalGroupsPolicyNotSupported", m.noStrictGroupsHere(pod))
		},
		func() Verdict { return a.places.admit(c) },
		func() Verdict { return a.shares.admit(c) },
		func() Verdict { return a.besideRoom(c) },
	)
	if v.Answer == Reject { // it takes nothing, whatever it was given above
		*a.places, a.shares.taken = places, taken
	}
	if v.Answer == Reject && critical(c.Wants) && short(v.Reason) {
		if other := a.besideRoom(c); other.Answer == Reject {
			return other // room would not help it
		}
		return a.preempt(c)
	}
	if v.Answer == Admit {
		a.ports.take(c)
		a.claims.take(c)
	}
	return v
}

// besideRoom is what is asked of a pod that there is room for.
func (a *admissions) besideRoom(c Claimant) Verdict {
	m, pod := &a.limits.Machine, c.Wants.Spec
	return first(
		func() Verdict {
			return predicate("NodeAffinity", m.anotherNode(pod) != "", "node(s) didn't match Pod's node affinity/selector")
		},
		func() Verdict { return a.ports.ask(c) },
		func() Verdict {
			return predicate("TaintToleration", m.repels(pod), "node(s) had taints that the pod didn't tolerate")
		},
		func() Verdict { return clusterVerdict("AppArmor", m.unenforced(pod)) },
		func() Verdict { return later(m.admit(c.Wants)) },
		func() Verdict { return a.uids.admit(c) },
		func() Verdict { return later(a.claims.ask(c)) },
	)
}

// short says that a pod was rejected for want of room.
func short(reason string) bool { return strings.HasPrefix(reason, "OutOf") }

// first is the first answer that does not admit.
func first(asks ...func() Verdict) (v Verdict) {
	for _, ask := range asks {
		if v = ask(); v.Answer != Admit {
			return v
		}
	}
	return v
}

func clusterVerdict(reason, message string) Verdict {
	if message == "" {
		return Verdict{}
	}
	return Verdict{Answer: Reject, Reason: reason, Message: message}
}

func predicate(name string, fails bool, why string) Verdict {
	if !fails {
		return Verdict{}
	}
	return clusterVerdict(name, "Predicate "+name+" failed: "+why)
}

// later has a pod wait for what a kubelet, too, would try again.
func later(v Verdict) Verdict {
	if v.Answer == Reject {
		v.Answer = Wait
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

// repels: it has a taint that ends whatever does not tolerate it.
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

// clusterWords are a kubelet's for what there is too little of.
func clusterWords(name v1.ResourceName, asks, used, has int64) string {
	if manifest.IsExtended(name) {
		return fmt.Sprintf("Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: %d, which is unexpected", name, asks, has-used)
	}
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, asks, used, has)
}

// asKubelet is the order in which a kubelet looks at resources.
func asKubelet(names []v1.ResourceName) []v1.ResourceName {
	known := []v1.ResourceName{v1.ResourceEphemeralStorage, v1.ResourceMemory, v1.ResourceCPU}
	slices.SortFunc(names, func(a, b v1.ResourceName) int {
		return cmp.Or(cmp.Compare(slices.Index(known, b), slices.Index(known, a)), strings.Compare(string(a), string(b)))
	})
	return names
}
