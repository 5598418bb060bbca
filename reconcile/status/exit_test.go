package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// TestUnreportedExit checks that a container with an unknown exit code keeps its state and is not
// ready. It does not finish its pod, unless the end of the pod does not depend on the code.
func TestUnreportedExit(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		phase  v1.PodPhase
		state  string
	}{
		"observed running before": {func(f *Facts) {
			c := &f.Observed[0].Containers[0]
			c.State, c.StartedAt = runtime.Running, epoch
			s := Compute(*f)
			f.Previous, c.State = &s, runtime.ExitCodeUnknown
		}, v1.PodRunning, "running"},
		"never observed running": {func(*Facts) {}, v1.PodRunning, "waiting ContainerStatusUnknown"},
		"deadline": {func(f *Facts) {
			f.FailureReason, f.FinalPhase = &Reason{"DeadlineExceeded", "too long"}, v1.PodFailed
		}, v1.PodFailed, "terminated ContainerStatusUnknown"},
		"back-off": {func(f *Facts) {
			f.Pod.Object.Spec.RestartPolicy = v1.RestartPolicyAlways
			f.Containers["main"] = ContainerFacts{Waiting: Reason{Reason: "CrashLoopBackOff"}}
		}, v1.PodPending, "waiting CrashLoopBackOff"},
		"init container": {func(f *Facts) {
			f.Pod.Object.Spec.InitContainers, f.Pod.Object.Spec.Containers = f.Pod.Object.Spec.Containers, []v1.Container{{Name: "later"}}
		}, v1.PodPending, "waiting ContainerStatusUnknown"},
		"state unknown to the runtime": {func(f *Facts) { f.Observed[0].Containers[0].State = runtime.Unknown }, v1.PodRunning, "terminated ContainerStatusUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			f := runningFacts(v1.Container{})
			f.Pod.Object.Spec.RestartPolicy = v1.RestartPolicyNever
			f.Now = epoch.Add(time.Minute)
			r := &f.Observed[0].Containers[0]
			r.State, r.StartedAt, r.Message = runtime.ExitCodeUnknown, time.Time{}, "the runtime has not responded yet"
			c.change(&f)
			s := Compute(f)
			got := s.ContainerStatuses[0]
			if len(s.InitContainerStatuses) > 0 {
				got = s.InitContainerStatuses[0]
			}
			state := "running"
			switch {
			case got.State.Waiting != nil:
				state = "waiting " + got.State.Waiting.Reason
			case got.State.Terminated != nil:
				state = "terminated " + got.State.Terminated.Reason
			}
			if s.Phase != c.phase || state != c.state || got.Ready {
				t.Errorf("got phase %s, state %s and ready %t; want %s, %s and false", s.Phase, state, got.Ready, c.phase, c.state)
			}
		})
	}
}
