package podwriter

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/mirror"
	"podd/manifest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"
)

// applyPatch returns the pod that results from p and the strategic merge patch body.
func applyPatch(t interface{ Fatal(...any) }, p *v1.Pod, body []byte) *v1.Pod {
	before, _ := json.Marshal(p)
	after, err := strategicpatch.StrategicMergePatch(before, body, v1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	next := &v1.Pod{}
	if err := json.Unmarshal(after, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// drawTime returns a random time.
func drawTime(t *rapid.T) metav1.Time {
	return metav1.NewTime(clustertest.Noon.Add(time.Duration(rapid.Int64Range(-100e9, 100e9).Draw(t, "time"))))
}

// drawState returns a random state of a container.
func drawState(t *rapid.T) (s v1.ContainerState) {
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 0:
		s.Waiting = &v1.ContainerStateWaiting{Reason: rapid.SampledFrom([]string{"", "PodInitializing", "CrashLoopBackOff"}).Draw(t, "reason")}
	case 1:
		s.Running = &v1.ContainerStateRunning{StartedAt: drawTime(t)}
	case 2:
		s.Terminated = &v1.ContainerStateTerminated{ExitCode: rapid.Int32Range(0, 2).Draw(t, "code"), StartedAt: drawTime(t), FinishedAt: drawTime(t)}
	}
	return s
}

// drawContainers returns random statuses of a random subset of containers.
func drawContainers(t *rapid.T, names ...string) (all []v1.ContainerStatus) {
	for _, name := range names {
		if rapid.Bool().Draw(t, name) {
			all = append(all, v1.ContainerStatus{
				Name: name, State: drawState(t), LastTerminationState: drawState(t), Ready: rapid.Bool().Draw(t, "ready"),
				RestartCount: rapid.Int32Range(0, 3).Draw(t, "restarts"), Image: "i", ImageID: rapid.SampledFrom([]string{"", "a"}).Draw(t, "id"),
			})
		}
	}
	return all
}

// drawConditions returns random conditions of a random subset of types.
func drawConditions(t *rapid.T, types ...v1.PodConditionType) (all []v1.PodCondition) {
	for _, kind := range types {
		if rapid.Bool().Draw(t, string(kind)) {
			all = append(all, v1.PodCondition{
				Type: kind, Status: rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "A", v1.PodReasonTerminationByKubelet}).Draw(t, "why"), Message: rapid.SampledFrom([]string{"", "m"}).Draw(t, "message"),
				LastTransitionTime: drawTime(t), ObservedGeneration: rapid.Int64Range(0, 2).Draw(t, "generation"),
			})
		}
	}
	return all
}

// drawStatus returns a random status.
func drawStatus(t *rapid.T, conditions ...v1.PodConditionType) (s v1.PodStatus) {
	s.Phase = rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed}).Draw(t, "phase")
	s.Reason = rapid.SampledFrom([]string{"", "Evicted"}).Draw(t, "reason")
	s.Conditions = drawConditions(t, conditions...)
	for _, ip := range rapid.SampledFrom([][]string{nil, {"10.0.0.1"}, {"10.0.0.2", "fd00::1"}, {"fd00::1", "10.0.0.2"}}).Draw(t, "ips") {
		s.PodIPs, s.HostIPs = append(s.PodIPs, v1.PodIP{IP: ip}), append(s.HostIPs, v1.HostIP{IP: ip})
	}
	if len(s.PodIPs) > 0 {
		s.PodIP, s.HostIP = s.PodIPs[0].IP, s.HostIPs[0].IP
	}
	if rapid.Bool().Draw(t, "started") {
		s.StartTime = new(drawTime(t))
	}
	s.InitContainerStatuses, s.ContainerStatuses = drawContainers(t, "i", "s"), drawContainers(t, "a", "b")
	s.EphemeralContainerStatuses = drawContainers(t, "e")
	return s
}

const gate v1.PodConditionType = "example.com/gate"

// drawPod returns a random pod as the API server stores it.
func drawPod(t *rapid.T) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: rapid.Int64Range(1, 3).Draw(t, "generation")}}
	p.Spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy")
	always := v1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []v1.Container{{Name: "i"}, {Name: "s", RestartPolicy: &always}}
	p.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b"}}
	p.Status = drawStatus(t, v1.PodScheduled, v1.PodReady, v1.PodResizePending, gate, v1.DisruptionTarget)
	p.Status.QOSClass = v1.PodQOSBurstable
	text, _ := json.Marshal(p)
	decoded := &v1.Pod{}
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// TestStatusPatch checks patches of random pods. No second patch may be needed after a patch. A patch
// must keep fields of other clients, and must not change a final phase. It must not set a final phase
// while a container is running.
func TestStatusPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := drawPod(t)
		local := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: rapid.Int64Range(0, 3).Draw(t, "local")}}
		local.Status = drawStatus(t, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodScheduled, v1.PodResizeInProgress, gate, v1.DisruptionTarget)
		if rapid.Bool().Draw(t, "ends") {
			local = finalPod(local, metav1.NewTime(clustertest.Noon))
		}
		body, err := podStatusPatch(stored, mergePodStatus(stored, local, true))
		if err != nil {
			t.Fatal(err)
		}
		next := stored
		if body != nil {
			next = applyPatch(t, stored, body)
		}
		if again, err := podStatusPatch(next, mergePodStatus(next, local, true)); err != nil || again != nil {
			t.Fatalf("after patch %s: got second patch %s, error %v; want no second patch", body, again, err)
		}
		old, got := &stored.Status, &next.Status
		if findCondition(old.Conditions, gate) != findCondition(got.Conditions, gate) || got.QOSClass != old.QOSClass {
			t.Errorf("fields of other clients: got %v, want the readiness gate and the QOS class of %v", got, old)
		}
		if manifest.IsTerminal(old.Phase) && got.Phase != old.Phase || !manifest.IsTerminal(old.Phase) && manifest.IsTerminal(got.Phase) && isAnyRunning(got) {
			t.Errorf("phase before the patch %s: got phase %s with containers %v; want an unchanged final phase, and no new final phase with a running container", old.Phase, got.Phase, got.ContainerStatuses)
		}
		for _, c := range got.Conditions {
			if before := findCondition(old.Conditions, c.Type); before.Status == c.Status && !before.LastTransitionTime.Equal(&c.LastTransitionTime) {
				t.Errorf("condition %s with the same status: got %v, want the transition time of %v", c.Type, c, before)
			}
		}
		if !mirror.IsMirror(stored) && len(local.Status.ContainerStatuses) != len(got.ContainerStatuses) {
			t.Errorf("got containers %v, want as many as in %v", got.ContainerStatuses, local.Status.ContainerStatuses)
		}
	})
}

// findCondition returns the condition of a type with a transition time in full seconds, or a zero
// condition.
func findCondition(all []v1.PodCondition, t v1.PodConditionType) v1.PodCondition {
	if i := slices.IndexFunc(all, func(c v1.PodCondition) bool { return c.Type == t }); i >= 0 {
		c := all[i]
		c.LastTransitionTime = c.LastTransitionTime.Rfc3339Copy()
		return c
	}
	return v1.PodCondition{}
}

// TestMergeStatus_Loopback checks that mergePodStatus keeps the addresses of a pod in the API server if
// the local addresses are loopback addresses, for example before DHCP.
func TestMergeStatus_Loopback(t *testing.T) {
	addresses := func(host, pod string) (s v1.PodStatus) {
		if host != "" {
			s.HostIP, s.HostIPs = host, []v1.HostIP{{IP: host}}
		}
		if pod != "" {
			s.PodIP, s.PodIPs = pod, []v1.PodIP{{IP: pod}}
		}
		return s
	}
	for _, c := range []struct {
		name                string
		old, local, want    v1.PodStatus
		isAddressConfigured bool
	}{
		{"host network", addresses("10.0.0.1", "10.0.0.1"), addresses("127.0.0.1", "127.0.0.1"), addresses("10.0.0.1", "10.0.0.1"), false},
		{"host network, IPv6", addresses("fd00::1", "fd00::1"), addresses("::1", "::1"), addresses("fd00::1", "fd00::1"), false},
		{"pod network", addresses("10.0.0.1", "10.88.0.2"), addresses("127.0.0.1", "10.88.0.3"), addresses("10.0.0.1", "10.88.0.3"), false},
		{"new pod", addresses("", ""), addresses("127.0.0.1", "127.0.0.1"), addresses("", ""), false},
		{"loopback in the API server", addresses("127.0.0.1", "127.0.0.1"), addresses("10.0.0.1", "10.0.0.1"), addresses("10.0.0.1", "10.0.0.1"), false},
		{"set by the user", addresses("10.0.0.1", "10.0.0.1"), addresses("127.0.0.1", "127.0.0.1"), addresses("127.0.0.1", "127.0.0.1"), true},
	} {
		got := mergePodStatus(&v1.Pod{Status: c.old}, &v1.Pod{Status: c.local}, c.isAddressConfigured)
		for _, s := range []*v1.PodStatus{got, &c.want} {
			*s = v1.PodStatus{HostIP: s.HostIP, HostIPs: s.HostIPs, PodIP: s.PodIP, PodIPs: s.PodIPs}
		}
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestIsRegression(t *testing.T) {
	ended := func(code int32) []v1.ContainerStatus {
		return []v1.ContainerStatus{{Name: "a", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}}
	}
	running := []v1.ContainerStatus{{Name: "a", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	for _, c := range []struct {
		name       string
		policy     v1.RestartPolicy
		old, local v1.PodStatus
		want       bool
	}{
		{"container restarts, policy Always", v1.RestartPolicyAlways, v1.PodStatus{ContainerStatuses: ended(0)}, v1.PodStatus{ContainerStatuses: running}, false},
		{"failed container restarts, policy OnFailure", v1.RestartPolicyOnFailure, v1.PodStatus{ContainerStatuses: ended(1)}, v1.PodStatus{ContainerStatuses: running}, false},
		{"succeeded container restarts, policy OnFailure", v1.RestartPolicyOnFailure, v1.PodStatus{ContainerStatuses: ended(0)}, v1.PodStatus{ContainerStatuses: running}, true},
		{"container restarts, policy Never", v1.RestartPolicyNever, v1.PodStatus{ContainerStatuses: ended(1)}, v1.PodStatus{ContainerStatuses: running}, true},
		{"failed pod runs again", v1.RestartPolicyAlways, v1.PodStatus{Phase: v1.PodFailed}, v1.PodStatus{Phase: v1.PodRunning}, true},
		{"failed pod stays failed", v1.RestartPolicyAlways, v1.PodStatus{Phase: v1.PodFailed}, v1.PodStatus{Phase: v1.PodFailed}, false},
		{"ephemeral container runs again", v1.RestartPolicyAlways, v1.PodStatus{EphemeralContainerStatuses: ended(0)}, v1.PodStatus{EphemeralContainerStatuses: running}, true},
	} {
		stored := &v1.Pod{Status: c.old}
		stored.Spec.RestartPolicy, stored.Spec.Containers = c.policy, []v1.Container{{Name: "a"}}
		if got := isRegression(stored, &c.local); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}

func TestFinalPod(t *testing.T) {
	state := func(s v1.ContainerState) []v1.ContainerStatus { return []v1.ContainerStatus{{Name: "a", State: s}} }
	ended := func(code int32) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	for _, c := range []struct {
		name  string
		last  v1.PodStatus
		phase v1.PodPhase
		code  int32 // exit code of the container; -1: it has not terminated
	}{
		{"running", v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: state(v1.ContainerState{Running: &v1.ContainerStateRunning{}})}, v1.PodFailed, 137},
		{"stopped with exit code 0", v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: state(ended(0))}, v1.PodSucceeded, 0},
		{"stopped with exit code 143", v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: state(ended(143))}, v1.PodFailed, 143},
		{"never started", v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: state(waiting)}, v1.PodFailed, 137},
		{"never initialized", v1.PodStatus{Phase: v1.PodPending, InitContainerStatuses: state(waiting), ContainerStatuses: state(waiting)}, v1.PodFailed, -1},
		{"evicted", v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}, v1.PodFailed, -1},
	} {
		c.last.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		s := &finalPod(&v1.Pod{Status: c.last}, metav1.NewTime(clustertest.Noon)).Status
		code := int32(-1)
		if len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Terminated != nil {
			code = s.ContainerStatuses[0].State.Terminated.ExitCode
		}
		if s.Phase != c.phase || s.Reason != c.last.Reason || code != c.code || s.Conditions[0].Status != v1.ConditionFalse {
			t.Errorf("%s: got %+v, want phase %s, reason %q, exit code %d and Ready False", c.name, s, c.phase, c.last.Reason, c.code)
		}
		if c.last.Conditions[0].Status != v1.ConditionTrue {
			t.Errorf("%s: finalPod changed its argument: got %+v, want Ready True", c.name, c.last)
		}
	}
}
