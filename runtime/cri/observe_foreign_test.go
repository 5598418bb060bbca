package cri_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest"
)

// foreignSandboxOf returns the configuration of a sandbox with a user namespace that another podd owns.
func foreignSandboxOf(name string, ids ...*api.IDMapping) *api.PodSandboxConfig {
	config := sandboxOf(name, 0)
	config.Labels[runtime.LabelInstance] = "theirs"
	config.Linux = &api.LinuxPodSandboxConfig{SecurityContext: &api.LinuxSandboxSecurityContext{NamespaceOptions: &api.NamespaceOption{
		UsernsOptions: &api.UserNamespace{Mode: api.NamespaceMode_POD, Uids: ids, Gids: ids},
	}}}
	return config
}

// mappedIDs returns the host IDs of a pod's newest sandbox.
func (s *scene) mappedIDs(name string) []runtime.IDRange {
	if pod := s.observed(name); pod != nil {
		return pod.Incarnations[0].MappedIDs
	}
	return nil
}

// TestObserver_ForeignIDs checks that the host IDs of a foreign sandbox are queried once and kept after
// the sandbox has stopped. A failed query is repeated. The IDs of a sandbox that has stopped before the
// observer starts are also queried.
func TestObserver_ForeignIDs(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		heal := s.Inject(runtimetest.Fault{Method: "PodSandboxStatus", Err: status.Error(codes.Unknown, "boom")})
		id := s.sandbox(foreignSandboxOf("web", &api.IDMapping{HostId: 65536, Length: 65536}, &api.IDMapping{HostId: 7, ContainerId: 65536, Length: 1}))
		hostUsers := sandboxOf("host", 0)
		hostUsers.Labels = nil
		s.sandbox(hostUsers)
		s.sleep(3 * time.Second)
		if got := s.mappedIDs("web"); s.observed("web") == nil || got != nil {
			s.Errorf("while PodSandboxStatus fails: got pod web %v with the host IDs %v; want the pod without host IDs", s.observed("web"), got)
		}
		heal()
		s.sleep(10 * time.Second)
		want := []runtime.IDRange{{First: 65536, Length: 65536}, {First: 7, Length: 1}}
		if got := s.mappedIDs("web"); !slices.Equal(got, want) {
			s.Errorf("host IDs of pod web: got %v, want %v", got, want)
		}
		if got := s.mappedIDs("host"); got != nil {
			s.Errorf("host IDs of pod host, which has no user namespace: got %v, want none", got)
		}
		s.ForgetCalls()
		s.KillSandbox(id)
		s.sleep(time.Hour)
		if in := s.observed("web").Incarnations[0]; in.Ready || !slices.Equal(in.MappedIDs, want) {
			s.Errorf("sandbox of pod web after its stop: got ready %t and the host IDs %v; want ready false and the host IDs %v", in.Ready, in.MappedIDs, want)
		}
		if n := len(s.Calls("PodSandboxStatus")); n != 0 {
			s.Errorf("PodSandboxStatus calls after the first response: got %d, want none", n)
		}
		s.observe(s.Client)
		s.sleep(time.Second)
		if got := s.mappedIDs("web"); !slices.Equal(got, want) {
			s.Errorf("host IDs of pod web from a new observer: got %v, want %v", got, want)
		}
	})
}

// TestObserver_ForeignHangs checks that podd's own sandboxes are queried although the runtime does not
// respond for many sandboxes of another agent.
func TestObserver_ForeignHangs(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		theirs := map[string]bool{}
		for i := range 40 {
			theirs[s.sandbox(foreignSandboxOf(fmt.Sprintf("theirs%02d", i)))] = true
		}
		s.Inject(runtimetest.Fault{Method: "PodSandboxStatus", Hangs: true, Match: func(q any) bool { return theirs[q.(*api.PodSandboxStatusRequest).GetPodSandboxId()] }})
		s.sleep(10 * time.Second)
		s.sandbox(sandboxOf("web", 0))
		s.sleep(5 * time.Second)
		if pod := s.observed("web"); pod == nil || len(pod.Incarnations[0].IPs) != 1 {
			s.Errorf("pod web: got %+v, want a pod with one address", pod)
		}
	})
}
