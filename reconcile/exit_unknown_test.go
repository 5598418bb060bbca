package reconcile_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

// hideExits makes the runtime report no exit code until heal is called.
func (m *machine) hideExits() (heal func()) {
	return m.Inject(runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.Unknown, "the shim does not answer")})
}

func jobPod(t *testing.T, policy string) *manifest.Pod {
	return pod(t, "job", "restartPolicy: "+policy+`
containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
}

// TestExitUnknown checks a container whose exit code the runtime reports late or never. The
// container must not finish its pod before the exit code is known, whether or not podd observed the
// running container.
func TestExitUnknown(t *testing.T) {
	late := runtimetest.Fault{Method: "ContainerStatus", Delay: 30 * time.Second}
	for name, c := range map[string]struct {
		policy  string
		fault   runtimetest.Fault
		heals   time.Duration // when the fault ends
		restart bool          // whether podd is stopped before the container ends, and started afterwards
		code    int32
		want    v1.PodPhase
	}{
		"late":                        {"Never", late, time.Hour, false, 0, v1.PodSucceeded},
		"late, after podd's start":    {"Never", late, time.Hour, true, 0, v1.PodSucceeded},
		"late, failed":                {"Never", late, time.Hour, true, 3, v1.PodFailed},
		"late, on failure":            {"OnFailure", late, time.Hour, true, 0, v1.PodSucceeded},
		"hangs, after podd's start":   {"Never", runtimetest.Fault{Method: "ContainerStatus", Hangs: true}, 5 * time.Minute, true, 0, v1.PodSucceeded},
		"fails for long":              {"Never", runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.Unknown, "boom")}, 5 * time.Minute, false, 0, v1.PodSucceeded},
		"fails, after podd's start":   {"Never", runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.Unknown, "boom")}, 5 * time.Minute, true, 0, v1.PodSucceeded},
		"fails, on failure, restarts": {"OnFailure", runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.Unknown, "boom")}, 5 * time.Minute, true, 0, v1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				seen := statusLog{pod: "job"}
				m.options = seen.watch
				m.start()
				m.setPods(jobPod(t, c.policy))
				m.settle()
				heal := m.Inject(c.fault)
				if c.restart {
					m.kill()
				}
				m.ExitContainer("default/job/app", c.code)
				if c.restart {
					m.start()
				}
				m.advance(10 * time.Second)
				if seen.hasEnded() {
					t.Fatalf("before the exit code is reported: got statuses %q, want no terminal one", seen.all)
				}
				if r := m.report("job"); !r.Decision.Steps[0].NeedsUser || r.Pod.Status.ContainerStatuses[0].Ready || r.Finished != nil {
					t.Errorf("published while the exit code is unknown: got step %+v and container status %+v, want a step with a problem and a container that is not ready", r.Decision.Steps[0], r.Pod.Status.ContainerStatuses[0])
				}
				if c.heals < time.Hour {
					m.advance(c.heals)
					if seen.hasEnded() {
						t.Fatalf("before the exit code is reported: got statuses %q, want no terminal one", seen.all)
					}
					heal()
				}
				m.advance(3 * time.Minute)
				st := m.report("job").Pod.Status
				if st.Phase != c.want || st.ContainerStatuses[0].State.Terminated.ExitCode != c.code {
					t.Errorf("in the end: got phase %s and container state %+v, want %s with exit code %d", st.Phase, st.ContainerStatuses[0].State, c.want, c.code)
				}
				if n := len(m.Calls("CreateContainer")); n != 1 {
					t.Errorf("created containers: got %d, want 1", n)
				}
			})
		})
	}
}

// TestExitUnknown_NoExitFile checks a container of CRI-O whose status has the exit code -1, which
// is not the exit code of its process. The container must not fail its pod.
func TestExitUnknown_NoExitFile(t *testing.T) {
	for name, restart := range map[string]bool{"podd runs": false, "podd is restarted": true} {
		t.Run(name, func(t *testing.T) {
			runOn(t, crio, func(t *testing.T, m *machine) {
				seen := statusLog{pod: "job"}
				m.options = seen.watch
				m.start()
				m.setPods(jobPod(t, "Never"))
				m.settle()
				m.HideExitFiles(true)
				m.ExitContainer("default/job/app", 0)
				if restart {
					m.restart()
				}
				m.advance(time.Minute)
				if seen.hasEnded() {
					t.Fatalf("before the exit code is reported: got statuses %q, want no terminal one", seen.all)
				}
				m.HideExitFiles(false)
				m.advance(time.Minute)
				st := m.report("job").Pod.Status
				if end := st.ContainerStatuses[0].State.Terminated; st.Phase != v1.PodSucceeded || end == nil || end.ExitCode != 0 {
					t.Errorf("in the end: got phase %s and container state %+v, want %s with exit code 0", st.Phase, st.ContainerStatuses[0].State, v1.PodSucceeded)
				}
			})
		})
	}
}

// TestExitUnknown_SandboxLost checks a container whose sandbox no longer exists. Before the exit
// code of the container is known, the container is not created again and does not make its pod
// fail.
func TestExitUnknown_SandboxLost(t *testing.T) {
	for _, policy := range []string{"Never", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				seen := statusLog{pod: "job"}
				m.options = seen.watch
				m.start()
				m.setPods(jobPod(t, policy))
				m.settle()
				m.kill()
				heal := m.hideExits()
				m.ExitContainer("default/job/app", 0)
				m.killSandbox("job")
				m.start()
				m.advance(5 * time.Minute)
				if seen.hasEnded() {
					t.Fatalf("before the exit code is reported: got statuses %q, want no terminal one", seen.all)
				}
				heal()
				m.advance(time.Minute)
				if st := m.report("job").Pod.Status; st.Phase != v1.PodSucceeded {
					t.Errorf("in the end: got phase %s with container statuses %+v, want Succeeded", st.Phase, st.ContainerStatuses)
				}
				if n := len(m.Calls("CreateContainer")); n != 1 {
					t.Errorf("created containers: got %d, want 1", n)
				}
			})
		})
	}
}

// TestExitUnknown_Gone checks that a container that the runtime no longer lists is reported as
// failed with exit code 137.
func TestExitUnknown_Gone(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(jobPod(t, "Never"))
		m.settle()
		heal := m.hideExits()
		m.ExitContainer("default/job/app", 0)
		m.advance(time.Minute)
		heal()
		id := m.report("job").Observed[0].Containers[0].ID
		m.Inject(runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.NotFound, "not found")})
		if err := m.RemoveContainer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Minute)
		st := m.report("job").Pod.Status
		if end := st.ContainerStatuses[0].State.Terminated; st.Phase != v1.PodFailed || end == nil || end.ExitCode != 137 || end.Reason != "ContainerStatusUnknown" {
			t.Errorf("status of the lost container: got phase %s with %+v, want Failed with exit code 137 and reason ContainerStatusUnknown", st.Phase, st.ContainerStatuses[0])
		}
		m.restart()
		if n := len(m.Calls("CreateContainer")); n != 1 {
			t.Errorf("created containers: got %d, want 1", n)
		}
		if st := m.report("job").Pod.Status; st.Phase != v1.PodFailed {
			t.Errorf("phase after a restart of podd: got %s, want Failed", st.Phase)
		}
	})
}

// TestExitUnknown_GoneAfterRestartAll checks a container that the runtime no longer lists, in a pod
// whose containers were all restarted earlier. That earlier restart must not create the container again.
func TestExitUnknown_GoneAfterRestartAll(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		pod := jobPod(t, "Never")
		never := v1.ContainerRestartPolicyNever
		c := &pod.Object.Spec.Containers[0]
		c.RestartPolicy, c.RestartPolicyRules = &never, []v1.ContainerRestartRule{{
			Action:    v1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
		m.start()
		m.setPods(pod)
		m.settle()
		m.ExitContainer("default/job/app", 42)
		m.advance(time.Minute)
		if n := len(m.Calls("CreateContainer")); n != 2 {
			t.Fatalf("created containers after exit code 42: got %d, want 2", n)
		}
		all := m.report("job").Observed[0].Containers
		running := slices.IndexFunc(all, func(c runtime.Container) bool { return c.State == runtime.Running })
		if err := m.RemoveContainer(t.Context(), all[running].ID); err != nil {
			t.Fatal(err)
		}
		m.advance(time.Minute)
		if st := m.report("job").Pod.Status; st.Phase != v1.PodFailed {
			t.Errorf("status of the lost container: got phase %s with %+v, want Failed", st.Phase, st.ContainerStatuses[0])
		}
		if n := len(m.Calls("CreateContainer")); n != 2 {
			t.Errorf("created containers in the end: got %d, want 2", n)
		}
	})
}

// TestExitUnknown_RestartsAnyway checks that a container that is restarted after any exit
// code does not wait for the code. It has the back-off of a crash, because it may have failed.
func TestExitUnknown_RestartsAnyway(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(jobPod(t, "Always"))
		m.settle()
		m.ExitContainer("default/job/app", 1)
		m.advance(time.Second)
		heal := m.hideExits()
		m.ExitContainer("default/job/app", 1)
		m.advance(9 * time.Second)
		if s := m.report("job").Pod.Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" {
			t.Errorf("container state: got %+v, want waiting in the crash back-off", s.State)
		}
		m.advance(3 * time.Second)
		if s := m.report("job").Pod.Status.ContainerStatuses[0]; s.RestartCount != 2 {
			t.Errorf("restart count: got %d, want 2", s.RestartCount)
		}
		heal()
		m.advance(time.Minute)
		s := m.report("job").Pod.Status.ContainerStatuses[0]
		if s.State.Running == nil || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 {
			t.Errorf("container in the end: got %+v, want it running with last exit code 1", s)
		}
	})
}

// TestExitUnknown_PodEnds checks a pod with an unknown exit code that ends for another reason. A
// deadline ends the pod at once. A deletion from the cluster waits up to two minutes for the exit code.
func TestExitUnknown_PodEnds(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		run(t, func(t *testing.T, m *machine) {
			m.start()
			m.setPods(pod(t, "job", `restartPolicy: Never
activeDeadlineSeconds: 60
containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
			m.settle()
			m.hideExits()
			m.ExitContainer("default/job/app", 0)
			m.advance(time.Minute)
			if st := m.report("job").Pod.Status; st.Phase != v1.PodFailed || st.Reason != "DeadlineExceeded" {
				t.Errorf("after the deadline: got phase %s and reason %q, want Failed and DeadlineExceeded", st.Phase, st.Reason)
			}
		})
	})
	for name, c := range map[string]struct {
		heals time.Duration // when the runtime reports the exit code; zero: never
		want  int32         // the last exit code in the status
	}{
		"deleted, late":  {30 * time.Second, 0},
		"deleted, never": {0, 137},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				var mu sync.Mutex
				last := int32(-2) // the last published exit code; -1: the status has none; -2: nothing was published
				m.options = func(o *reconcile.Options) {
					useCluster(o)
					publish := o.Publish
					o.Publish = func(c reconcile.Change) {
						mu.Lock()
						for _, r := range slices.Concat(c.Reports, c.Removed) {
							if r.Pod != nil && len(r.Pod.Status.ContainerStatuses) > 0 {
								last = -1
								if end := r.Pod.Status.ContainerStatuses[0].State.Terminated; end != nil {
									last = end.ExitCode
								}
							}
						}
						mu.Unlock()
						publish(c)
					}
				}
				m.start()
				m.setClusterPods(true, clusterPod("job", func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }))
				m.settle()
				heal := m.hideExits()
				m.ExitContainer("default/job/app", 0)
				m.advance(time.Second)
				m.setClusterPods(true, clusterPod("job", allOf(func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }, withDeletion(5))))
				shown := func() int32 { mu.Lock(); defer mu.Unlock(); return last }
				m.advance(cmp.Or(c.heals, 110*time.Second))
				if got := shown(); got != -1 {
					t.Errorf("published exit code before the runtime reports it: got %d, want none", got)
				}
				if c.heals > 0 {
					heal()
				}
				m.advance(time.Minute)
				m.wantState()
				if got := shown(); got != c.want {
					t.Errorf("last exit code in the status: got %d, want %d", got, c.want)
				}
			})
		})
	}
}

// TestStartWithoutStatus checks that a container whose status cannot be queried after its start is
// not started again.
func TestStartWithoutStatus(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.hideExits()
		m.start()
		m.setPods(pod(t, "web", web))
		m.advance(10 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if n := len(m.Calls("CreateContainer")); n != 1 {
			t.Errorf("created containers: got %d, want 1", n)
		}
	})
}

// TestRestartOfNever checks that a pod with the restart policy Never has no terminal phase
// while a container is restarted for a user, however long each call takes.
func TestRestartOfNever(t *testing.T) {
	for _, method := range []string{"", "StopContainer", "CreateContainer", "StartContainer", "ContainerStatus"} {
		t.Run(method, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				seen := statusLog{pod: "job"}
				m.options = seen.watch
				m.start()
				m.setPods(jobPod(t, "Never"))
				m.settle()
				if method != "" {
					m.Inject(runtimetest.Fault{Method: method, Delay: time.Second, AfterEffect: true})
				}
				if err := m.current().router.Restart(t.Context(), key("job"), "app"); err != nil {
					t.Fatal(err)
				}
				m.advance(time.Minute)
				if n := len(m.Calls("StartContainer")); n != 2 || seen.hasEnded() {
					t.Errorf("got %d starts and statuses %q, want 2 starts and no terminal phase", n, seen.all)
				}
			})
		})
	}
}
