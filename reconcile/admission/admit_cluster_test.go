package admission

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/device/allocation"
	"podd/reconcile/plan"
	"podd/runtime"
)

// clusterPod returns a pod of a cluster. Its creation time is a fixed time plus made, in seconds.
func clusterPod(name string, made int64, change func(*v1.Pod)) *manifest.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(made+1_700_000_000, 0))}}
	p.Spec.NodeName, p.Spec.Containers = "n1", []v1.Container{{Name: "app", Image: "app:1"}}
	if change != nil {
		change(p)
	}
	return decode.FromAPI(p, decode.Options{Kind: manifest.KindAPI, Source: "the cluster", NodeName: "n1"})
}

func requesting(name v1.ResourceName, amount string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(amount)}
		if manifest.IsExtendedResource(name) {
			p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests
		}
	}
}

func withHostPort(p *v1.Pod) {
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}}
}

func both(changes ...func(*v1.Pod)) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// TestAdmission_ClusterPod checks that pods of a cluster are rejected with the kubelet's
// reasons and messages, in the kubelet's order.
func TestAdmission_ClusterPod(t *testing.T) {
	sysctl := func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
	}
	elsewhere := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	here := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"tier": "edge"} }
	confined := func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}}
	}
	limits := Limits{
		MaxPods: 3, Allocatable: Amounts{v1.ResourceCPU: 1000, v1.ResourceMemory: 1 << 30, v1.ResourceEphemeralStorage: 1 << 30},
		Devices:  map[v1.ResourceName]allocation.Count{"example.com/gpu": {Total: 1, Healthy: 1, IsServed: true}, "example.com/late": {IsAwaited: true}, "example.com/lost": {Listed: 1}, "example.com/broken": {Listed: 1, IsServed: true}},
		Features: Features{Labels: map[string]string{"tier": "edge"}, Runtime: runtime.Node{Reachable: true, Name: "containerd", Version: "v1.6.20"}},
	}
	tainted := limits
	tainted.Features.Taints = []v1.Taint{{Key: "broken", Effect: v1.TaintEffectNoExecute}, {Key: "full", Effect: v1.TaintEffectNoSchedule}}
	tolerant := func(p *v1.Pod) {
		p.Spec.Tolerations = []v1.Toleration{{Key: "broken", Operator: v1.TolerationOpExists}}
	}
	for _, test := range []struct {
		name   string
		change func(*v1.Pod)
		limits Limits
		others []candidate
		want   plan.Verdict
	}{
		{"no requirements", nil, limits, nil, plan.Verdict{}},
		{"node selector matches", here, limits, nil, plan.Verdict{}},
		{"sysctl", both(sysctl, elsewhere), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "SysctlForbidden", Message: `forbidden sysctl: "kernel.msgmax" not allowlisted`}},
		{"cpu before node affinity", both(requesting("cpu", "3"), elsewhere), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "OutOfcpu", Insufficient: "cpu", Message: "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 1000", NeverFits: true}},
		{"memory before storage", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Gi"), v1.ResourceEphemeralStorage: resource.MustParse("2Gi")}
		}, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "OutOfmemory", Insufficient: "memory", Message: "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824", NeverFits: true}},
		{"storage", requesting(v1.ResourceEphemeralStorage, "2Gi"), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "OutOfephemeral-storage", Insufficient: "ephemeral-storage", Message: "Node didn't have enough resource: ephemeral-storage, requested: 2147483648, used: 0, capacity: 1073741824", NeverFits: true}},
		{"node", both(elsewhere, confined), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "NodeAffinity", Message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}},
		{"apparmor", confined, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "AppArmor", Message: "Cannot enforce AppArmor: AppArmor is not enabled on the host"}},
		{"os", func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}},
		{"os label", func(p *v1.Pod) { p.Labels = map[string]string{v1.LabelOSStable: "windows"} }, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "PodOSSelectorNodeLabelDoesNotMatch", Message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"}},
		{"taint", nil, tainted, nil, plan.Verdict{Answer: plan.Reject, Reason: "TaintToleration", Message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"}},
		{"taint tolerated", tolerant, tainted, nil, plan.Verdict{}},
		{"port", withHostPort, limits, []candidate{{Key: named("b"), Desired: clusterPod("b", 0, withHostPort), Active: true}}, plan.Verdict{Answer: plan.Reject, Reason: "NodePorts", Message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"}},
		{"port of a pod that is being edited", withHostPort, limits, []candidate{{Key: named("b"), ReservedVersions: []*manifest.Pod{clusterPod("b", 0, withHostPort)}, Active: true, Releasing: true}}, plan.Verdict{Answer: plan.Wait, Reason: "HostPortConflict", BlockedByPods: true}},
		{"port of a finished pod that is being stopped", withHostPort, limits, []candidate{{Key: named("b"), Desired: clusterPod("b", 0, withHostPort), ReservedVersions: []*manifest.Pod{clusterPod("b", 0, withHostPort)}, Active: true, WindingDown: true}}, plan.Verdict{Answer: plan.Wait, Reason: "HostPortConflict", BlockedByPods: true}},
		{"port of a finished pod that still runs", withHostPort, limits, []candidate{{Key: named("b"), Desired: clusterPod("b", 0, withHostPort), ReservedVersions: []*manifest.Pod{clusterPod("b", 0, withHostPort)}, Finished: true}}, plan.Verdict{Answer: plan.Wait, Reason: "HostPortConflict", BlockedByPods: true}},
		{"pods", requesting("cpu", "3"), limits, []candidate{{Key: named("b"), Active: true, Desired: clusterPod("b", 0, nil)}, {Key: named("c"), Active: true, Desired: clusterPod("c", 0, nil)}, {Key: named("d"), Active: true, Desired: clusterPod("d", 0, nil)}},
			plan.Verdict{Answer: plan.Reject, Reason: "OutOfpods", Insufficient: "pods", Message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3", BlockedByPods: true}},
		{"devices", requesting("example.com/gpu", "2"), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1, which is unexpected", NeverFits: true}},
		{"plugin not registered yet", requesting("example.com/late", "1"), limits, nil, plan.Verdict{Answer: plan.Wait, Reason: "UnexpectedAdmissionError"}},
		{"plugin not expected any more", requesting("example.com/lost", "1"), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices example.com/lost, which is unexpected"}},
		{"no healthy device", requesting("example.com/broken", "1"), limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices example.com/broken, which is unexpected"}},
		{"resource that only the cluster counts", requesting("example.com/dongle", "1"), limits, nil, plan.Verdict{}},
		{"unsupported field", func(p *v1.Pod) { p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "x"}} }, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "UnexpectedAdmissionError", Message: "spec.resourceClaims: is not supported for pods of a cluster"}},
		{"undeclared feature", func(p *v1.Pod) { p.Spec.HostNetwork, p.Spec.HostUsers = true, new(false) }, limits, nil, plan.Verdict{Answer: plan.Reject, Reason: "PodFeatureUnsupported", Message: "Pod requires node features that are not available: UserNamespacesHostNetworkSupport"}},
		{"declared feature", func(p *v1.Pod) {
			p.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyNever)
			p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
			}}
		}, limits, nil, plan.Verdict{}},
		{"feature that the runtime lacks", func(p *v1.Pod) { p.Spec.HostUsers = new(false) }, limits, nil, plan.Verdict{Answer: plan.Wait, Reason: "UserNamespacesNotSupported"}},
	} {
		p := clusterPod("a", 10, test.change)
		got := admitAll(append(test.others, candidate{Key: named("a"), Desired: p}), test.limits)[named("a")]
		if test.want.Message == "" {
			got.Message = ""
		}
		if got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
		running := candidate{Key: named("a"), Desired: p, ReservedVersions: []*manifest.Pod{p}, Active: true}
		if got := admitAll(append(test.others, running), test.limits)[named("a")]; got.Answer != plan.Admit {
			t.Errorf("%s: got %+v for a running pod, want Admit", test.name, got)
		}
	}
}

// TestAdmission_ClusterPodOrder checks that older pods are admitted before younger pods, and that a
// rejected pod reserves nothing.
func TestAdmission_ClusterPodOrder(t *testing.T) {
	limits := Limits{MaxPods: 1, Allocatable: Amounts{v1.ResourceCPU: 1000}, Features: Features{}}
	elsewhere := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	verdicts := admitAll([]candidate{
		{Key: named("a"), Desired: clusterPod("a", 30, requesting("cpu", "1"))},
		{Key: named("b"), Desired: clusterPod("b", 20, requesting("cpu", "1"))},
		{Key: named("c"), Desired: clusterPod("c", 10, both(requesting("cpu", "1"), elsewhere))},
	}, limits)
	if verdicts[named("c")].Reason != "NodeAffinity" || verdicts[named("b")].Answer != plan.Admit || verdicts[named("a")].Reason != "OutOfpods" {
		t.Errorf("got %+v", verdicts)
	}
	over := clusterPod("a", 0, func(p *v1.Pod) { p.Status.Phase = v1.PodFailed })
	if !over.HasFinishedAtSource() || strings.Contains(over.RefusalReason, "x") {
		t.Errorf("got %+v", over)
	}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// TestPreempt checks the choice of the pod that a critical pod preempts first. As few pods as
// possible are preempted. Pods of a lower QoS class come first; in a class, smaller pods come first.
func TestPreempt(t *testing.T) {
	sized := func(cpu string, limit bool) func(*v1.Pod) {
		return func(p *v1.Pod) {
			list := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Mi")}
			p.Spec.Containers[0].Resources.Requests = list
			if limit {
				p.Spec.Containers[0].Resources.Limits = list
			}
		}
	}
	prior := func(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }
	runs := func(name string, change func(*v1.Pod)) candidate {
		p := clusterPod(name, 0, change)
		return candidate{Key: named(name), Desired: p, ReservedVersions: []*manifest.Pod{p}, Active: true}
	}
	ending := func(c candidate) candidate { c.WindingDown = true; return c }
	limits := Limits{MaxPods: 4, Allocatable: Amounts{v1.ResourceCPU: 1000, v1.ResourceMemory: 1 << 30}}
	asks := both(sized("600m", false), prior(2_000_000_000))
	less := both(sized("300m", false), prior(2_000_000_000))
	for _, test := range []struct {
		name   string
		asks   func(*v1.Pod)
		others []candidate
		want   string // the preempted pod and the resource; if there is none, the reason
	}{
		{"enough room", asks, []candidate{runs("a", sized("300m", false))}, ""},
		{"not critical", both(sized("600m", false), prior(5)), []candidate{runs("a", sized("500m", false))}, "OutOfcpu"},
		{"one pod suffices", asks, []candidate{runs("a", sized("500m", false)), runs("b", sized("300m", false))}, "a cpu"},
		{"smaller pod suffices", less, []candidate{runs("a", sized("500m", false)), runs("b", sized("400m", false))}, "b cpu"},
		{"burstable before guaranteed", less, []candidate{runs("a", sized("450m", true)), runs("b", sized("500m", false))}, "b cpu"},
		{"guaranteed if nothing else suffices", asks, []candidate{runs("a", sized("900m", true)), runs("b", sized("100m", false))}, "a cpu"},
		{"a pod is being stopped already", asks, []candidate{ending(runs("a", sized("500m", false))), runs("b", sized("300m", false))}, "OutOfcpu"},
		{"only critical pods", asks, []candidate{runs("a", both(sized("500m", false), prior(2_000_000_000)))}, "UnexpectedAdmissionError"},
		{"less critical pod", both(sized("600m", false), prior(2_000_001_000)), []candidate{runs("a", both(sized("500m", false), prior(2_000_000_000)))}, "a cpu"},
		{"exceeds the node", both(sized("2", false), prior(2_000_000_000)), []candidate{runs("a", sized("500m", false))}, "UnexpectedAdmissionError"},
		{"node selector does not match", both(asks, func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"x": "y"} }), []candidate{runs("a", sized("500m", false))}, "NodeAffinity"},
		{"too many pods", prior(2_000_000_000), []candidate{runs("a", sized("1m", true)), runs("b", nil), runs("c", sized("1m", false)), runs("d", sized("1m", false))}, "b pods"},
		{"too many pods and too little CPU", asks, []candidate{runs("a", sized("500m", false)), runs("b", nil), runs("c", nil), runs("d", nil)}, "a pods"},
	} {
		v := admitAll(append(test.others, candidate{Key: named("new"), Desired: clusterPod("new", 10, test.asks)}), limits)[named("new")]
		got := v.Reason
		if v.Victim.Name != "" {
			got = v.Victim.Name + " " + string(v.VictimResource)
		}
		if got != test.want || (v.Victim.Name != "") != (v.Answer == plan.Wait && v.Reason == "Preempting") {
			t.Errorf("%s: got preempted pod or reason %q of verdict %+v, want %q", test.name, got, v, test.want)
		}
	}
}
