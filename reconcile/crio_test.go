package reconcile_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest"
)

var crio = runtimetest.Options{CRIO: true}

func TestCRIO_PodLives(t *testing.T) {
	runOn(t, crio, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		m.ExitContainer("default/web/app", 1)
		m.advance(time.Second)
		m.wantState("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		m.restart()
		m.wantState("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		m.setPods(pod(t, "web", `containers: [{name: app, image: "web:2"}]`))
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		m.setPods()
		m.advance(time.Minute)
		m.wantState()
	})
}

// TestCRIO_SandboxNameIsTaken checks that podd does not use a sandbox that it did not
// create from this version of the pod. CRI-O returns an existing sandbox if its name is
// requested again.
func TestCRIO_SandboxNameIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		instance string
		want     []string
	}{
		"by another instance":   {"another", []string{"web 0 ready"}},
		"by an earlier version": {instance, []string{"web 1 ready", "web/app 0 running"}},
	} {
		t.Run(name, func(t *testing.T) {
			runOn(t, crio, func(t *testing.T, m *machine) {
				taken, made := "", pod(t, "web", web)
				m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, Delay: time.Millisecond, OnApply: func() {
					uid := string(made.UID)
					id, err := m.RunPodSandbox(t.Context(), &cri.PodSandboxConfig{
						Metadata: &cri.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: uid},
						Labels: map[string]string{
							runtime.LabelPodName: "web", runtime.LabelPodNamespace: "default", runtime.LabelPodUID: uid,
							runtime.LabelInstance: test.instance,
						},
					}, "")
					if err != nil {
						t.Error(err)
					}
					taken = id
				}})
				m.start()
				m.setPods(made)
				m.advance(time.Minute)
				for _, c := range m.Calls("CreateContainer") {
					if q := c.Request.(*cri.CreateContainerRequest); q.PodSandboxId == taken {
						t.Errorf("new container: got sandbox %s, which another agent created, want a sandbox that podd created", q.PodSandboxId)
					}
				}
				m.wantState(test.want...)
			})
		})
	}
}

// TestCRIO_ProgramIsMissing checks that podd tries again if a program is missing. CRI-O detects the
// missing program when it creates a container, so there is no failed container.
func TestCRIO_ProgramIsMissing(t *testing.T) {
	runOn(t, crio, func(t *testing.T, m *machine) {
		m.AddImage(runtimetest.Image{Name: "bad:1", Program: runtimetest.Program{StartError: `exec: "/no/such": stat /no/such: no such file or directory`}})
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "bad:1"}]`))
		m.advance(10 * time.Second)
		m.wantState("web 0 ready")
		waiting := m.report("web").Pod.Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "CreateContainerError" || !strings.HasSuffix(waiting.Message, `: exec: "/no/such": stat /no/such: no such file or directory`) {
			t.Errorf("waiting state: got %+v, want CreateContainerError with the message of runc", waiting)
		}
		if n := len(m.Calls("CreateContainer")); n < 2 {
			t.Errorf("attempts to create the container: got %d, want at least 2", n)
		}
	})
}

// TestCRIO_StartFails checks that another container is created after a failed start. CRI-O may keep
// the container that cannot be started, and every further start of that container may fail.
func TestCRIO_StartFails(t *testing.T) {
	runOn(t, crio, func(t *testing.T, m *machine) {
		first := ""
		m.Inject(runtimetest.Fault{
			Method: "StartContainer",
			Match: func(q any) bool {
				id := q.(*cri.StartContainerRequest).ContainerId
				first = cmp.Or(first, id)
				return id == first
			},
			Err: status.Error(codes.Unknown, "failed to start container: a hook failed"),
		})
		m.start()
		m.setPods(pod(t, "web", web))
		m.advance(time.Second)
		waiting := m.report("web").Pod.Status.ContainerStatuses[0].State.Waiting
		if waiting == nil || waiting.Reason != "RunContainerError" || !strings.Contains(waiting.Message, "a hook failed") {
			t.Errorf("after the failed start: got waiting state %+v, want RunContainerError with \"a hook failed\" in the message", waiting)
		}
		m.advance(time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if n := len(m.Calls("CreateContainer")); n != 2 {
			t.Errorf("created containers: got %d, want 2", n)
		}
	})
}

// TestCRIO_StubbornContainerIsKilled checks that podd kills containers before it stops
// their sandbox, because CRI-O's StopPodSandbox kills nothing before the call's deadline.
func TestCRIO_StubbornContainerIsKilled(t *testing.T) {
	for _, grace := range []string{"0", "3"} {
		t.Run(grace, func(t *testing.T) {
			runOn(t, crio, func(t *testing.T, m *machine) {
				m.AddImage(runtimetest.Image{Name: "deaf:1", Program: runtimetest.Program{IgnoresTerm: true}})
				m.start()
				m.setPods(pod(t, "web", `{terminationGracePeriodSeconds: `+grace+`, containers: [{name: app, image: "deaf:1"}]}`))
				m.settle()
				m.wantState("web 0 ready", "web/app 0 running")
				m.setPods()
				m.advance(10 * time.Second)
				m.wantState()
			})
		})
	}
}
