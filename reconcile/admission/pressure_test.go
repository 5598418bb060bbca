package admission

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
)

// TestAdmission_Pressure checks which pods are admitted under node pressure.
func TestAdmission_Pressure(t *testing.T) {
	memory, disk := pressure.Conditions{Memory: true}, pressure.Conditions{Disk: true}
	burstable := func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}
	}
	tolerates := func(taint string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Tolerations = []v1.Toleration{{Key: taint, Operator: v1.TolerationOpExists}}
		}
	}
	critical := func(p *v1.Pod) { p.Spec.Priority = new(manifest.CriticalPriority) }
	waits := func(condition string) plan.Verdict {
		return plan.Verdict{Answer: plan.Wait, Reason: "NodePressure", Message: "the node has the condition [" + condition + "]; the pod starts when the condition has ended"}
	}
	unknown := plan.Verdict{Answer: plan.Wait, Reason: "NodePressure", IsPreliminary: true, Message: "podd has not observed the resources of the node yet; the pod starts after the observation if the node has enough resources"}
	for name, test := range map[string]struct {
		conditions pressure.Conditions
		set        func(*v1.Pod)
		unknown    bool
		held       string // hash of a version that may run; "" if there is none
		cluster    bool
		want       plan.Verdict
	}{
		"no pressure":                    {conditions: pressure.Conditions{}},
		"best effort, memory":            {conditions: memory, want: waits("MemoryPressure")},
		"burstable, memory":              {conditions: memory, set: burstable},
		"tolerates memory":               {conditions: memory, set: tolerates(v1.TaintNodeMemoryPressure)},
		"tolerates disk, memory":         {conditions: memory, set: tolerates(v1.TaintNodeDiskPressure), want: waits("MemoryPressure")},
		"burstable, disk":                {conditions: disk, set: burstable, want: waits("DiskPressure")},
		"tolerates memory, disk":         {conditions: pressure.Conditions{Memory: true, Disk: true}, set: tolerates(v1.TaintNodeMemoryPressure), want: waits("MemoryPressure DiskPressure")},
		"burstable, processes":           {conditions: pressure.Conditions{PIDs: true}, set: burstable, want: waits("PIDPressure")},
		"critical":                       {conditions: pressure.Conditions{Memory: true, Disk: true, PIDs: true}, set: critical},
		"runs already":                   {conditions: disk, held: "v1:a"},
		"edit of a running pod":          {conditions: disk, held: "v1:before", want: plan.Verdict{Answer: plan.Reject, Reason: "NodePressure", Message: waits("DiskPressure").Message}},
		"pod of a cluster":               {conditions: disk, cluster: true, want: plan.Verdict{Answer: plan.Reject, Reason: "Evicted", Message: "The node had condition: [DiskPressure]. "}},
		"critical pod of a cluster":      {conditions: disk, set: critical, cluster: true},
		"running pod of a cluster":       {conditions: disk, held: "v1:a", cluster: true},
		"pod of a cluster, no condition": {cluster: true},
		"unknown":                        {unknown: true, want: unknown},
		"unknown, critical":              {unknown: true, set: critical},
		"unknown, runs already":          {unknown: true, held: "v1:a"},
		"unknown, edit":                  {unknown: true, held: "v1:before", want: plan.Verdict{Answer: plan.Reject, Reason: "NodePressure", IsPreliminary: true, Message: unknown.Message}},
		"unknown, pod of a cluster":      {unknown: true, cluster: true, want: unknown},
	} {
		p := &manifest.Pod{UID: "u", Hash: "v1:a", Object: &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}}
		if test.set != nil {
			test.set(p.Object)
		}
		if test.cluster {
			p.Traits = manifest.KindTraits(manifest.KindAPI)
		}
		c := candidate{Key: types.NamespacedName{Name: "a"}, Desired: p}
		if test.held != "" {
			held := *p
			held.Hash = test.held
			c.ReservedVersions, c.Active = []*manifest.Pod{&held}, true
		}
		if got := admitAll([]candidate{c}, Limits{Pressure: test.conditions, PressureUnknown: test.unknown})[c.Key]; got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, test.want)
		}
	}
}

// TestAdmission_EvictedPod checks the verdict of an evicted pod that runs again: it waits while it is
// being stopped and while the node is under pressure, and then is admitted like a new pod.
func TestAdmission_EvictedPod(t *testing.T) {
	// The pod is burstable and tolerates memory pressure.
	evicted := &manifest.Pod{UID: "u", Hash: "v1:a", Object: &v1.Pod{Spec: v1.PodSpec{
		Containers:  []v1.Container{{Name: "app", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}}}},
		Tolerations: []v1.Toleration{{Key: v1.TaintNodeMemoryPressure, Operator: v1.TolerationOpExists}},
	}}}
	for name, test := range map[string]struct {
		conditions            pressure.Conditions
		windingDown, admitted bool
		others                int // number of other active pods; the limit is 1
		want                  plan.Answer
	}{
		"being stopped":                     {windingDown: true, want: plan.Wait},
		"stopped":                           {want: plan.Admit},
		"stopped, node under pressure":      {conditions: pressure.Conditions{Disk: true}, want: plan.Wait},
		"stopped, memory is short":          {conditions: pressure.Conditions{Memory: true}, want: plan.Wait},
		"stopped, node full":                {others: 1, want: plan.Reject},
		"admitted before":                   {admitted: true, want: plan.Admit},
		"admitted before, pressure returns": {conditions: pressure.Conditions{Disk: true}, admitted: true, want: plan.Wait},
	} {
		c := candidate{Key: types.NamespacedName{Name: "a"}, Desired: evicted, WaitsForRestart: true, WindingDown: test.windingDown}
		if test.admitted {
			c.ReservedVersions, c.Active = []*manifest.Pod{evicted}, true
		}
		all := []candidate{c}
		for range test.others {
			other := *evicted
			all = append(all, candidate{Key: types.NamespacedName{Name: "other"}, Desired: &other, ReservedVersions: []*manifest.Pod{&other}, Active: true})
		}
		if got := admitAll(all, Limits{MaxPods: 1, Pressure: test.conditions})[c.Key]; got.Answer != test.want {
			t.Errorf("%s: got %+v, want answer %v", name, got, test.want)
		}
	}
}
