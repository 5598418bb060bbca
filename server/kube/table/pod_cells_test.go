package table

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func statusOf(b bool) v1.ConditionStatus {
	if b {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}

var sidecarPolicy = v1.ContainerRestartPolicyAlways

func waitingFor(reason string) v1.ContainerStatus {
	return v1.ContainerStatus{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}
}

func runningNow(ready bool) v1.ContainerStatus {
	started := true
	return v1.ContainerStatus{Ready: ready, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
}

func endedBy(t v1.ContainerStateTerminated) v1.ContainerStatus {
	return v1.ContainerStatus{State: v1.ContainerState{Terminated: &t}}
}

// restarted adds n restarts to c. The parameter ago is the time from the end of the previous
// instance to epoch; if it is zero, the end is unknown.
func restarted(c v1.ContainerStatus, n int32, ago time.Duration) v1.ContainerStatus {
	c.RestartCount = n
	if ago != 0 {
		c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(epoch.Add(-ago))}
	}
	return c
}

func list(c ...v1.ContainerStatus) []v1.ContainerStatus { return c }

func TestNewPodCells(t *testing.T) {
	done, oom := endedBy(v1.ContainerStateTerminated{Reason: "Completed"}), endedBy(v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})
	tests := []struct {
		name string
		// init has a letter for each init container: i, or s for a sidecar.
		init               string
		inits, regular     []v1.ContainerStatus
		phase              v1.PodPhase
		reason             string
		initialized, ready bool
		gated, del         bool
		want               PodCells
	}{
		{name: "running", regular: list(runningNow(true), runningNow(true)), phase: "Running", want: PodCells{"2/2", "Running", "0", "6m"}},
		{name: "one not ready", regular: list(runningNow(true), runningNow(false)), phase: "Running", want: PodCells{"1/2", "Running", "0", "6m"}},
		{name: "pending without statuses", phase: "Pending", want: PodCells{"0/0", "Pending", "0", "6m"}},
		{name: "gated", phase: "Pending", gated: true, want: PodCells{"0/0", "SchedulingGated", "0", "6m"}},
		{name: "gated and ending", phase: "Pending", gated: true, del: true, want: PodCells{"0/0", "Terminating", "0", "6m"}},
		{name: "creating", regular: list(waitingFor("ContainerCreating")), phase: "Pending", want: PodCells{"0/1", "ContainerCreating", "0", "6m"}},
		{name: "waiting without a reason", regular: list(waitingFor("")), phase: "Pending", want: PodCells{"0/1", "Pending", "0", "6m"}},
		{name: "crash loop", regular: list(restarted(waitingFor("CrashLoopBackOff"), 4, 12*time.Second)), phase: "Running", want: PodCells{"0/1", "CrashLoopBackOff", "4 (12s ago)", "6m"}},
		{name: "restarts of unknown time", regular: list(restarted(runningNow(true), 3, 0)), phase: "Running", want: PodCells{"1/1", "Running", "3", "6m"}},
		{name: "restarts are added, the latest time is shown", regular: list(restarted(runningNow(true), 1, time.Hour), restarted(runningNow(true), 2, 3*time.Minute+5*time.Second)), phase: "Running", want: PodCells{"2/2", "Running", "3 (3m5s ago)", "6m"}},
		{name: "completed", regular: list(done), phase: "Succeeded", want: PodCells{"0/1", "Completed", "0", "6m"}},
		{name: "out of memory", regular: list(oom), phase: "Failed", want: PodCells{"0/1", "OOMKilled", "0", "6m"}},
		{name: "the first container determines the status", regular: list(oom, done), phase: "Failed", want: PodCells{"0/2", "OOMKilled", "0", "6m"}},
		{name: "exit code", regular: list(endedBy(v1.ContainerStateTerminated{ExitCode: 3})), phase: "Failed", want: PodCells{"0/1", "ExitCode:3", "0", "6m"}},
		{name: "signal", regular: list(endedBy(v1.ContainerStateTerminated{ExitCode: 143, Signal: 15})), phase: "Failed", want: PodCells{"0/1", "Signal:15", "0", "6m"}},
		{name: "one completed, one ready", regular: list(done, runningNow(true)), phase: "Running", want: PodCells{"1/2", "NotReady", "0", "6m"}},
		{name: "one completed, the pod is ready", regular: list(done, runningNow(true)), phase: "Running", ready: true, want: PodCells{"1/2", "Running", "0", "6m"}},
		{name: "the pod's own reason", phase: "Failed", reason: "Evicted", want: PodCells{"0/0", "Evicted", "0", "6m"}},
		{name: "evicted, containers terminated", regular: list(oom), phase: "Failed", reason: "Evicted", want: PodCells{"0/1", "Evicted", "0", "6m"}},
		{name: "being evicted", regular: list(oom, runningNow(true)), phase: "Running", reason: "Evicted", want: PodCells{"1/2", "Evicted", "0", "6m"}},
		{name: "evicted while initializing", init: "i", inits: list(oom), regular: list(waitingFor("PodInitializing")), phase: "Failed", reason: "Evicted", want: PodCells{"0/1", "Evicted", "0", "6m"}},
		{name: "not admitted", regular: list(waitingFor("ContainerCreating")), phase: "Pending", reason: "OutOfcpu", want: PodCells{"0/1", "OutOfcpu", "0", "6m"}},
		{name: "not admitted, with init containers", init: "i", inits: list(waitingFor("PodInitializing")), regular: list(waitingFor("PodInitializing")), phase: "Pending", reason: "NodeAffinity", want: PodCells{"0/1", "NodeAffinity", "0", "6m"}},
		{name: "not admitted, image missing", regular: list(waitingFor("ErrImagePull")), phase: "Pending", reason: "OutOfcpu", want: PodCells{"0/1", "ErrImagePull", "0", "6m"}},
		{name: "terminated by deletion", regular: list(endedBy(v1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", FinishedAt: metav1.NewTime(epoch.Add(time.Second))})), phase: "Failed", del: true, want: PodCells{"0/1", "Terminating", "0", "6m"}},
		{name: "terminated before deletion", regular: list(endedBy(v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.NewTime(epoch.Add(-time.Second))})), phase: "Failed", del: true, want: PodCells{"0/1", "Error", "0", "6m"}},
		{name: "terminating", regular: list(runningNow(true)), phase: "Running", del: true, want: PodCells{"1/1", "Terminating", "0", "6m"}},
		{name: "succeeded, then deleted", regular: list(done), phase: "Succeeded", del: true, want: PodCells{"0/1", "Completed", "0", "6m"}},
		{name: "node lost", regular: list(runningNow(true)), phase: "Running", reason: "NodeLost", del: true, want: PodCells{"1/1", "Unknown", "0", "6m"}},

		{name: "init waits", init: "ii", inits: list(waitingFor("PodInitializing"), waitingFor("PodInitializing")), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"0/1", "Init:0/2", "0", "6m"}},
		{name: "second init runs", init: "ii", inits: list(done, runningNow(false)), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"0/1", "Init:1/2", "0", "6m"}},
		{name: "init crash loop", init: "i", inits: list(restarted(waitingFor("CrashLoopBackOff"), 2, time.Second)), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"0/1", "Init:CrashLoopBackOff", "2 (1s ago)", "6m"}},
		{name: "init failed", init: "i", inits: list(endedBy(v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"})), phase: "Failed", want: PodCells{"0/0", "Init:Error", "0", "6m"}},
		{name: "init exit code", init: "i", inits: list(endedBy(v1.ContainerStateTerminated{ExitCode: 2})), phase: "Failed", want: PodCells{"0/0", "Init:ExitCode:2", "0", "6m"}},
		{name: "init signal", init: "i", inits: list(endedBy(v1.ContainerStateTerminated{ExitCode: 2, Signal: 9})), phase: "Failed", want: PodCells{"0/0", "Init:Signal:9", "0", "6m"}},
		{name: "initialized, without the restarts of init containers", init: "i", inits: list(restarted(done, 7, time.Second)), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"0/1", "PodInitializing", "0", "6m"}},
		{name: "restarts of a sidecar are added", init: "s", inits: list(restarted(runningNow(true), 1, time.Minute)), regular: list(restarted(runningNow(true), 1, time.Hour)), phase: "Running", want: PodCells{"2/2", "Running", "2 (60s ago)", "6m"}},
		{name: "init after a sidecar", init: "si", inits: list(restarted(runningNow(true), 1, time.Minute), waitingFor("PodInitializing")), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"1/2", "Init:1/2", "1 (60s ago)", "6m"}},
		{name: "sidecar starts", init: "s", inits: list(waitingFor("ContainerCreating")), regular: list(waitingFor("PodInitializing")), phase: "Pending", want: PodCells{"0/2", "Init:ContainerCreating", "0", "6m"}},
		{name: "sidecar ended with the pod", init: "s", inits: list(done), regular: list(done), phase: "Succeeded", want: PodCells{"0/2", "Completed", "0", "6m"}},
		{name: "image", regular: list(runningNow(true), waitingFor("ErrImagePull")), phase: "Pending", want: PodCells{"1/2", "ErrImagePull", "0", "6m"}},
		{name: "terminating after a crash", regular: list(restarted(waitingFor("CrashLoopBackOff"), 1, time.Second)), phase: "Running", del: true, want: PodCells{"0/1", "Terminating", "1 (1s ago)", "6m"}},
		{name: "sidecar not ready", init: "s", inits: list(runningNow(false)), regular: list(runningNow(true)), phase: "Running", want: PodCells{"1/2", "Running", "0", "6m"}},
		{name: "sidecar restarts after init", init: "s", inits: list(waitingFor("CrashLoopBackOff")), regular: list(runningNow(true)), phase: "Running", initialized: true, want: PodCells{"1/2", "Init:CrashLoopBackOff", "0", "6m"}},
	}
	for _, tt := range tests {
		pod := &v1.Pod{Status: v1.PodStatus{Phase: tt.phase, Reason: tt.reason}}
		pod.CreationTimestamp = metav1.NewTime(epoch.Add(-6 * time.Minute))
		for i, kind := range tt.init {
			c := v1.Container{Name: string(rune('a' + i))}
			if kind == 's' {
				c.RestartPolicy = &sidecarPolicy
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			tt.inits[i].Name = c.Name
		}
		pod.Spec.Containers = make([]v1.Container, len(tt.regular))
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = tt.inits, tt.regular
		pod.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodInitialized, Status: statusOf(tt.initialized)}, {Type: v1.PodReady, Status: statusOf(tt.ready)},
		}
		if tt.gated {
			pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "SchedulingGated"})
		}
		if tt.del {
			pod.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		if diff := cmp.Diff(tt.want, NewPodCells(pod, epoch)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestNewPodCells_Age(t *testing.T) {
	pod := &v1.Pod{}
	if got := NewPodCells(pod, epoch).Age; got != "<unknown>" {
		t.Errorf("without timestamps: got %s, want <unknown>", got)
	}
	start := metav1.NewTime(epoch.Add(-31 * time.Second))
	pod.Status.StartTime = &start
	if got := NewPodCells(pod, epoch).Age; got != "31s" {
		t.Errorf("since the start: got %s, want 31s", got)
	}
}
