package poddtest

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// At is the current time in the tests and golden files.
var At = time.Date(2026, 3, 1, 14, 2, 23, 0, time.UTC)

// BeforeAt returns the time d before At.
func BeforeAt(d time.Duration) time.Time { return At.Add(-d) }

// MetaTimeBeforeAt returns the time d before At as a metav1.Time.
func MetaTimeBeforeAt(d time.Duration) *metav1.Time { t := metav1.NewTime(BeforeAt(d)); return &t }

// NewPod returns a pod with the named containers and without a sandbox. The manifest of the pod is
// at the given line of a file in /etc/podd/manifests.
func NewPod(file string, line int, name string, containers ...string) *server.PodView {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-n1", CreationTimestamp: *MetaTimeBeforeAt(6 * time.Minute)},
		Status:     v1.PodStatus{Phase: v1.PodPending, StartTime: MetaTimeBeforeAt(6 * time.Minute)},
	}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c, Image: "img"})
	}
	return &server.PodView{Pod: p, Path: "/etc/podd/manifests/" + file, Line: line, IsCurrent: true, Exists: true, Phase: "prepare", Rule: "NoSandbox"}
}

// SetRunning changes p to a pod with only running and ready containers, and returns p.
func SetRunning(p *server.PodView) *server.PodView {
	p.Pod.Status.Phase, p.Pod.Status.PodIP = v1.PodRunning, "10.88.0.3"
	p.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	p.Ready, p.Phase, p.Rule = true, "run", "Run"
	p.Pod.Status.ContainerStatuses, p.Decisions = nil, nil
	for _, c := range p.Pod.Spec.Containers {
		p.Pod.Status.ContainerStatuses = append(p.Pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Ready: true, ContainerID: "containerd://" + c.Name + "1",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *MetaTimeBeforeAt(31 * time.Second)}},
		})
		p.Decisions = append(p.Decisions, server.DecisionView{Container: c.Name, Rule: "Running"})
	}
	return p
}

// SetCrashed changes p to a pod with its first container in CrashLoopBackOff after its fourth crash,
// and returns p.
func SetCrashed(p *server.PodView) *server.PodView {
	p.Ready = false
	p.Pod.Status.Phase = v1.PodRunning
	p.Pod.Status.Conditions = nil
	name := p.Pod.Spec.Containers[0].Name
	exit := &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: *MetaTimeBeforeAt(12 * time.Second)}
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: name, RestartCount: 3, ContainerID: "containerd://" + name + "4",
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: v1.ContainerState{Terminated: exit},
	}}
	p.Phase, p.Rule = "run", "Run"
	p.Decisions = []server.DecisionView{{
		Container: name, Rule: "CrashBackOff", Reason: "CrashLoopBackOff", NeedsUser: true, Crashes: 4,
		Why: "back-off 40s restarting failed container=" + name, Until: At.Add(28 * time.Second),
	}}
	p.NextCheck = At.Add(28 * time.Second)
	p.LastExits = []server.ExitView{{Container: name, ExitCode: 1, Reason: "Error", Started: BeforeAt(12800 * time.Millisecond), Finished: BeforeAt(12 * time.Second)}}
	return p
}

// NewView returns a View of the node n1 and its pods. The View has revision 100.
func NewView(pods ...*server.PodView) *server.View {
	slices.SortFunc(pods, func(a, b *server.PodView) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return &server.View{
		Revision: 100, Node: "n1", Version: "v0.1.0", Runtime: "containerd 2.4.2",
		Sources: []string{"/etc/podd/manifests"}, Pods: pods, Problems: []server.ProblemView{},
	}
}
