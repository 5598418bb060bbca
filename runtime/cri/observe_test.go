package cri_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// sleep advances the time of the bubble.
func (s *scene) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestObserver_ExitEvent(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.sleep(time.Minute)
		s.ExitContainer("default/web/app", 3)
		s.sleep(time.Millisecond)
		if c := s.container("web"); c.State != runtime.Exited || c.ExitCode != 3 || c.Reason != "Error" || c.FinishedAt.IsZero() {
			s.Errorf("container after its exit: got %+v, want it exited with 3, reason Error and a finish time", c)
		}
	})
}

// TestObserver_NoInstance checks that every sandbox is foreign if ObserverOptions.Instance
// is "".
func TestObserver_NoInstance(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		config := sandboxOf("other", 0)
		config.Labels = nil
		s.sandbox(config)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_ = s.NewObserver(cri.ObserverOptions{}).Run(ctx, func(all runtime.Snapshot) {
			cancel()
			if len(all.Pods) != 2 {
				s.Errorf("got %d pods, want 2", len(all.Pods))
			}
			for key, p := range all.Pods {
				if !p.Incarnations[0].Foreign {
					s.Errorf("sandbox of pod %s: got foreign false, want true", key)
				}
			}
		})
	})
}

// TestObserver_Unchanged checks that objects that did not change are not queried again, and
// that the observer returns the same pointers for their pods.
func TestObserver_Unchanged(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pods(20)
		s.sleep(5 * time.Second)
		before := s.observed("p07")
		s.ForgetCalls()
		s.taken()
		s.sleep(time.Hour)
		if n := len(s.Calls("ContainerStatus", "PodSandboxStatus")); n != 0 {
			s.Errorf("status calls in an idle hour: got %d, want none", n)
		}
		if n := len(s.Calls("ListContainers")); n < 120 || n > 130 {
			s.Errorf("relists in an idle hour: got %d, want 120 to 130, one every 30 s", n)
		}
		if s.observed("p07") != before {
			s.Error("pod p07 after an idle hour: got a new pointer, want the same")
		}
		snapshots := s.taken()
		first, last := snapshots[0], snapshots[len(snapshots)-1]
		if !last.IsComplete || len(last.Pods) != 20 || !last.AsOf.After(first.AsOf) {
			s.Errorf("last snapshot in an idle hour: got %d pods, complete %t, as of %v; want a complete one of 20 pods that is newer than the first one of %v", len(last.Pods), last.IsComplete, last.AsOf, first.AsOf)
		}
		s.ExitContainer("default/p03/app", 0)
		s.sleep(time.Second)
		if n := len(s.Calls("ContainerStatus", "PodSandboxStatus")); n != 1 {
			s.Errorf("status calls after the exit of one container: got %d, want 1", n)
		}
		if s.observed("p07") != before {
			s.Error("pod p07 after the exit of a container of pod p03: got a new pointer, want the same")
		}
	})
}

// TestObserver_UsesResponses checks that the observer does not query a running object if the client
// has already received a status response for the object. After an exit the observer must query it.
func TestObserver_UsesResponses(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.sleep(time.Minute)
		config := sandboxOf("web", 0)
		sandbox := s.sandbox(config)
		id := s.start(sandbox, config, 0)
		status, err := s.PodSandboxStatus(s.Context(), sandbox)
		if err != nil {
			s.Fatal(err)
		}
		started, err := s.ContainerStatus(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		s.ForgetCalls()
		s.sleep(10 * time.Second)
		if n := len(s.Calls("ContainerStatus", "PodSandboxStatus")); n != 0 {
			s.Errorf("status calls for objects whose response the client has stored: got %d, want none", n)
		}
		inc := s.observed("web").Incarnations[0]
		if c := s.container("web"); c.State != runtime.Running || !c.StartedAt.Equal(started.StartedAt) || c.Labels == nil || !slices.Equal(inc.IPs, status.IPs) || inc.Labels == nil {
			s.Errorf("got %+v, want the start time, addresses and labels of the stored responses", inc)
		}
		if _, err := s.ContainerStatus(s.Context(), id); err != nil {
			s.Fatal(err)
		}
		s.ExitContainer("default/web/app", 3) // the stored response is outdated
		s.sleep(time.Second)
		if c := s.container("web"); c.State != runtime.Exited || c.ExitCode != 3 {
			s.Errorf("after the exit: got %+v, want it exited with 3", c)
		}
	})
}

// TestObserver_AsOf checks that AsOf is the time at which the observer has sent the first list call. Changes
// after this time may be missing in the snapshot.
func TestObserver_AsOf(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.sleep(10 * time.Second)
		s.taken()
		s.Inject(runtimetest.Fault{Method: "ListContainers", AfterEffect: true, Delay: 3 * time.Second})
		requestedAt := time.Now()
		s.observer.Refresh(key("web"), true)
		s.sleep(time.Second)
		s.ExitContainer("default/web/app", 1) // the runtime has computed the list before this exit, but returns it later
		s.sleep(2500 * time.Millisecond)
		snapshots := s.taken()
		if len(snapshots) != 1 || snapshots[0].AsOf.Sub(requestedAt) > time.Millisecond {
			s.Fatalf("got the snapshots %+v, want one whose AsOf is the time of the request, %v", snapshots, requestedAt)
		}
		if c := snapshots[0].Pods[key("web")].Incarnations[0].Containers[0]; c.State != runtime.Running {
			s.Errorf("container in the list from before its exit: got state %v, want %v", c.State, runtime.Running)
		}
		s.sleep(5 * time.Second)
		if c := s.container("web"); c.State != runtime.Exited {
			s.Errorf("container in a later snapshot: got state %v, want %v", c.State, runtime.Exited)
		}
	})
}

// TestObserver_MarksDuringPass checks that the observer lists all pods that are marked during a pass in one
// next pass. If many pods are marked, this pass must be a complete relist.
func TestObserver_MarksDuringPass(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pods(30)
		s.sleep(40 * time.Second) // relists are at 1, 3, 7, 15, 31, 61 s
		// markDuringPass marks pods during a pass of one pod.
		markDuringPass := func(n, of int) []runtime.Snapshot {
			remove := s.Inject(runtimetest.Fault{Method: "ListContainers", Nth: 1, Delay: 500 * time.Millisecond})
			defer remove()
			s.taken()
			s.observer.Refresh(key("p00"), true)
			s.sleep(100 * time.Millisecond)
			for i := range n {
				s.observer.Refresh(key(fmt.Sprintf("p%02d", i%of)), true)
			}
			s.sleep(2 * time.Second)
			return s.taken()
		}
		if got := markDuringPass(100, 5); len(got) != 2 || len(got[0].Pods) != 1 || len(got[1].Pods) != 5 || got[1].IsComplete {
			s.Errorf("after marks of 5 pods: got %d snapshots, want one of 1 pod and one of 5 pods: %+v", len(got), got)
		}
		if got := markDuringPass(20, 20); len(got) != 2 || len(got[0].Pods) != 1 || !got[1].IsComplete {
			s.Errorf("after marks of 20 pods: got %d snapshots, want one of 1 pod and a complete one: %+v", len(got), got)
		}
	})
}

// TestRefresh_NotUrgent checks that the observer delays a refresh that is not urgent by the same
// time as a refresh after an event. It must then list the pods of all delayed refreshes in one
// pass. An urgent refresh must not wait.
func TestRefresh_NotUrgent(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pods(30)
		s.sleep(40 * time.Second) // relists are at 1, 3, 7, 15, 31, 61 s
		s.taken()
		for i := range 9 {
			s.observer.Refresh(key(fmt.Sprintf("p%02d", i)), false)
			s.sleep(100 * time.Millisecond)
		}
		if got := s.taken(); len(got) != 0 {
			s.Errorf("in the 0.9 s after the first request that is not urgent: got %d snapshots, want none", len(got))
		}
		s.observer.Refresh(key("p20"), true)
		s.sleep(50 * time.Millisecond)
		if got := s.taken(); len(got) != 1 || len(got[0].Pods) != 1 || got[0].IsComplete {
			s.Errorf("after an urgent request: got the snapshots %+v, want one of its pod only", got)
		}
		s.sleep(time.Second)
		if got := s.taken(); len(got) != 1 || !got[0].IsComplete {
			s.Errorf("a second after the urgent request: got the snapshots %+v, want a complete one", got)
		}
	})
}

func TestObserver_RemovedPods(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		sandbox, _ := s.pod("web")
		s.taken()
		if err := s.RemovePodSandbox(s.Context(), sandbox); err != nil {
			s.Fatal(err)
		}
		s.sleep(time.Second)
		if s.observed("web") != nil {
			s.Errorf("pod web after its removal: got %+v, want none", s.observed("web"))
		}
		s.taken()
		s.observer.Refresh(key("never"), true)
		s.sleep(time.Millisecond)
		snapshots := s.taken()
		if len(snapshots) != 1 {
			s.Fatalf("after a refresh of a pod that never existed: got %d snapshots, want 1", len(snapshots))
		}
		if pod, observed := snapshots[0].Pods[key("never")]; pod != nil || !observed || snapshots[0].IsComplete {
			s.Errorf("after a refresh of a pod that never existed: got %+v, want a partial snapshot in which this pod is nil", snapshots[0])
		}
	})
}

func TestObserver_WithoutEvents(t *testing.T) {
	for name, o := range map[string]runtimetest.Options{
		"containerd 1.6":   {NoEvents: true},
		"CRI-O by default": {NoEvents: true, CRIO: true},
	} {
		t.Run(name, func(t *testing.T) { inScene(t, o, testWithoutEvents) })
	}
}

func testWithoutEvents(s *scene) {
	s.pod("web")
	s.sleep(time.Minute)
	s.ForgetCalls()
	s.sleep(time.Minute)
	if n := len(s.Calls("ListContainers")); n < 58 || n > 61 {
		s.Errorf("relists in a minute without events: got %d, want 58 to 61, one per second", n)
	}
	s.ExitContainer("default/web/app", 3)
	s.sleep(time.Second + 10*time.Millisecond)
	if c := s.container("web"); c.State != runtime.Exited || c.ExitCode != 3 {
		s.Errorf("container a second after its exit: got %+v, want it exited with 3", c)
	}
	if s.observer.Health().HasEvents {
		s.Error("health of the observer: got HasEvents true, want false")
	}
}

// TestObserver_EventsEnd checks that the observer subscribes again at once if a stream with
// events is closed without an error, because the runtime may be restarting.
func TestObserver_EventsEnd(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.sleep(10*time.Minute + 2*time.Second)
		s.MuteEvents(true)
		s.ExitContainer("default/web/app", 3)
		s.EndEvents()
		s.sleep(time.Second)
		if c := s.container("web"); c.State != runtime.Exited {
			s.Errorf("container a second after the stream ended: got state %v, want %v", c.State, runtime.Exited)
		}
		if n := s.SubscriberCount(); n != 1 {
			s.Errorf("open event streams a second after the stream ended: got %d, want 1", n)
		}
	})
}

// TestObserver_Burst checks that the observer spends only a limited share of its time on lists during a
// burst of changes with events. It must not treat the burst as a loss of events, which would cause
// frequent relists.
func TestObserver_Burst(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pods(20)
		s.sleep(10 * time.Minute)
		const listing = 100 * time.Millisecond
		defer s.Inject(runtimetest.Fault{Method: "ListPodSandbox", Delay: listing})()
		s.sleep(time.Minute) // wait until the observer has measured how long a list takes
		s.ForgetCalls()
		for i := range 1000 {
			config := sandboxOf(fmt.Sprintf("burst%d", i), 0)
			s.start(s.sandbox(config), config, 0)
			s.sleep(100 * time.Millisecond)
		}
		if n, most := len(s.Calls("ListPodSandbox")), 1000/50+4; n > most {
			s.Errorf("lists of pods in 100 s: got %d, want at most %d", n, most)
		}
		s.waitUntilObserved("burst999", 10*time.Second)
		s.ExitContainer("default/burst999/app", 3)
		s.waitUntilExited("burst999", time.Second)
	})
}

func (s *scene) waitUntilObserved(name string, limit time.Duration) {
	s.Helper()
	for began := time.Now(); s.observed(name) == nil || len(s.observed(name).Incarnations[0].Containers) == 0; s.sleep(100 * time.Millisecond) {
		if time.Since(began) > limit {
			s.Fatalf("waited %v for pod %s with a container: got %+v", limit, name, s.observed(name))
		}
	}
}

// TestObserver_LostEvents checks that a relist finds a change for which the runtime has sent no event. After
// that, relists must be more frequent, because more events may be lost.
func TestObserver_LostEvents(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.pod("db")
		s.sleep(10 * time.Minute)
		s.MuteEvents(true)
		s.ExitContainer("default/web/app", 3)
		s.waitUntilExited("web", 31*time.Second)
		s.ExitContainer("default/db/app", 4)
		s.waitUntilExited("db", 1100*time.Millisecond)
	})
}

// waitUntilExited advances the time until the observer has reported that a pod's container has
// exited.
func (s *scene) waitUntilExited(name string, limit time.Duration) {
	s.Helper()
	for began := time.Now(); s.container(name).State != runtime.Exited; s.sleep(100 * time.Millisecond) {
		if time.Since(began) > limit {
			s.Fatalf("waited %v for the exit of pod %s: got %+v", limit, name, s.container(name))
		}
	}
}

// TestObserver_Resubscribes checks that relists are more frequent after the observer has opened a new event
// stream. One relist is not enough, because the runtime may begin the stream only after this relist, so
// that events between them are lost.
func TestObserver_Resubscribes(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.sleep(10 * time.Minute)
		s.ForgetCalls()
		s.BreakEvents()
		s.sleep(4 * time.Second)
		if n := len(s.Calls("ListContainers")); n < 3 {
			s.Errorf("relists in the 4 s after the stream broke: got %d, want 3 or more", n)
		}
		if s.SubscriberCount() != 1 {
			s.Errorf("open event streams after the stream broke: got %d, want 1", s.SubscriberCount())
		}
		s.ExitContainer("default/web/app", 3)
		s.sleep(time.Millisecond)
		if c := s.container("web"); c.State != runtime.Exited {
			s.Errorf("container after an event in the new stream: got %+v, want it exited", c)
		}
	})
}

func TestObserver_RuntimeUnreachable(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		s.sleep(time.Minute)
		before := s.observed("web")
		s.Disconnect()
		s.taken()
		s.sleep(10 * time.Millisecond)
		if h := s.observer.Health(); h.Err == nil {
			s.Errorf("10 ms after Disconnect: got health %+v, want an error", h)
		}
		s.sleep(10 * time.Minute)
		if n := len(s.taken()); n != 0 {
			s.Errorf("snapshots while the runtime is unreachable: got %d, want none", n)
		}
		if h := s.observer.Health(); h.Err == nil || h.HasEvents || time.Since(h.LastRelist) < 10*time.Minute {
			s.Errorf("10 minutes after Disconnect: got health %+v, want an error, no events and an old relist", h)
		}
		s.Reconnect()
		s.sleep(1100 * time.Millisecond)
		snapshots := s.taken()
		if len(snapshots) == 0 || !snapshots[0].IsComplete || s.observed("web") != before {
			s.Fatalf("after Reconnect: got the snapshots %+v, want a complete one first, and the pod web with the same pointer", snapshots)
		}
		s.sleep(2 * time.Second)
		if h := s.observer.Health(); h.Err != nil || !h.HasEvents {
			s.Errorf("3 s after Reconnect: got health %+v, want events and no error", h)
		}
		s.sleep(time.Minute)
		s.ExitContainer("default/web/app", 3)
		s.sleep(time.Millisecond)
		if c := s.container("web"); c.State != runtime.Exited {
			s.Errorf("container after an event, a minute after Reconnect: got %+v, want it exited", c)
		}
	})
}

// TestObserver_StatusFails checks a container whose status query fails or hangs. The observer must report
// its exit code as unknown, must repeat the query rarely, and must not delay the exits of other containers.
func TestObserver_StatusFails(t *testing.T) {
	for name, fault := range map[string]runtimetest.Fault{
		"fails": {Err: status.Error(codes.Unknown, "failed to get image: boom")},
		"hangs": {Hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, runtimetest.Options{}, func(s *scene) {
				_, bad := s.pod("bad")
				s.pod("good")
				s.sleep(10 * time.Second)
				fault.Method = "ContainerStatus"
				fault.Match = func(q any) bool { return q.(*api.ContainerStatusRequest).ContainerId == bad }
				heal := s.Inject(fault)
				s.ExitContainer("default/bad/app", 3)
				s.ExitContainer("default/good/app", 4)
				s.sleep(3 * time.Second)
				if c := s.container("good"); c.State != runtime.Exited || c.ExitCode != 4 {
					s.Errorf("container of pod good: got %+v, want it exited with 4", c)
				}
				if c := s.container("bad"); c.State != runtime.ExitCodeUnknown || c.Message == "" || c.StartedAt.IsZero() {
					s.Errorf("container of pod bad: got %+v, want state %s, a message and a start time", c, runtime.ExitCodeUnknown)
				}
				s.sleep(time.Hour)
				s.ForgetCalls()
				s.sleep(10 * time.Minute)
				if n := len(s.Calls("ContainerStatus")); n < 4 || n > 70 {
					s.Errorf("status calls in 10 minutes: got %d, want 4 to 70", n)
				}
				heal()
				s.sleep(cri.DefaultTimeout) // the observer repeats a query that hangs only after its timeout
				if c := s.container("bad"); c.State != runtime.Exited || c.ExitCode != 3 {
					s.Errorf("container of pod bad after its query succeeds: got %+v, want it exited with 3", c)
				}
			})
		})
	}
}

func TestObserver_ExitUnknown(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		heal := s.Inject(runtimetest.Fault{Method: "ContainerStatus", Err: status.Error(codes.Unknown, "boom")})
		config := sandboxOf("web", 0)
		s.start(s.sandbox(config), config, 0)
		s.ExitContainer("default/web/app", 0)
		s.sleep(time.Second)
		if c := s.container("web"); c.State != runtime.ExitCodeUnknown || c.Message != "boom" {
			s.Errorf("while the status query fails: got %+v, want state %s and the message \"boom\"", c, runtime.ExitCodeUnknown)
		}
		heal()
		s.sleep(5 * time.Second)
		if c := s.container("web"); c.State != runtime.Exited || c.Reason != "Completed" {
			s.Errorf("after the status query succeeds: got %+v, want it exited with the reason Completed", c)
		}
	})
}

// TestObserver_NoExitFile checks that the observer queries the status of an exited container until
// the status contains an exit code. CRI-O returns no exit code until conmon has
// written it to a file. The observer must repeat the query even if it has never observed the
// container as running.
func TestObserver_NoExitFile(t *testing.T) {
	for name, observed := range map[string]time.Duration{"observed running": 10 * time.Second, "not observed running": 0} {
		t.Run(name, func(t *testing.T) {
			inScene(t, runtimetest.Options{CRIO: true}, func(s *scene) {
				config := sandboxOf("web", 0)
				id := s.start(s.sandbox(config), config, 0)
				if observed > 0 {
					s.sleep(observed)
				}
				s.HideExitFiles(true)
				s.ExitContainer("default/web/app", 0)
				s.sleep(time.Minute)
				if c := s.container("web"); c.State != runtime.ExitCodeUnknown || c.ExitCode != 0 || !c.FinishedAt.IsZero() || !strings.Contains(c.Message, "no exit code") {
					s.Errorf("without an exit file: got %+v, want state %s", c, runtime.ExitCodeUnknown)
				}
				if c, err := s.ContainerStatus(s.Context(), id); err != nil || c.State != runtime.ExitCodeUnknown {
					s.Errorf("ContainerStatus without an exit file: got %+v (error %v), want state %s", c, err, runtime.ExitCodeUnknown)
				}
				s.HideExitFiles(false)
				s.sleep(11 * time.Second)
				if c := s.container("web"); c.State != runtime.Exited || c.ExitCode != 0 || c.FinishedAt.IsZero() {
					s.Errorf("with its exit file: got %+v, want it exited with 0", c)
				}
			})
		})
	}
}

// TestObserver_LateStatus checks that the observer uses a late response to a status query as soon as it
// arrives, and repeats a failed query soon.
func TestObserver_LateStatus(t *testing.T) {
	for name, c := range map[string]struct {
		fault runtimetest.Fault
		after time.Duration // time from the exit until the observer gets the exit code
		calls int           // expected number of status calls until then
	}{
		"after 5 s":  {runtimetest.Fault{Delay: 5 * time.Second}, 5 * time.Second, 1},
		"after 30 s": {runtimetest.Fault{Delay: 30 * time.Second}, 30 * time.Second, 1},
		"fails once": {runtimetest.Fault{Nth: 1, Err: status.Error(codes.Unknown, "boom")}, 100 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, runtimetest.Options{}, func(s *scene) {
				s.pod("web")
				s.sleep(time.Minute)
				s.ForgetCalls()
				c.fault.Method = "ContainerStatus"
				s.Inject(c.fault)
				s.ExitContainer("default/web/app", 3)
				s.sleep(c.after - time.Millisecond)
				if got := s.container("web"); got.State == runtime.Exited {
					s.Errorf("before the response of the runtime: got %+v, want no exited container", got)
				}
				s.sleep(250 * time.Millisecond)
				if got := s.container("web"); got.State != runtime.Exited || got.ExitCode != 3 || got.Message != "" {
					s.Errorf("%v after the exit: got %+v, want exit code 3 and no message", c.after, got)
				}
				if n := len(s.Calls("ContainerStatus")); n != c.calls {
					s.Errorf("status calls for the exited container: got %d, want %d", n, c.calls)
				}
			})
		})
	}
}

// TestObserver_SlowRuntime checks that the observer limits the number of concurrent status queries if the
// runtime is slow, and that it uses every response.
func TestObserver_SlowRuntime(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pods(100)
		s.sleep(time.Minute)
		var inside, most atomic.Int32
		s.Inject(runtimetest.Fault{Method: "ContainerStatus", Delay: 20 * time.Second, OnApply: func() {
			most.Store(max(most.Load(), inside.Add(1)))
			time.AfterFunc(20*time.Second, func() { inside.Add(-1) })
		}})
		for i := range 100 {
			s.ExitContainer(fmt.Sprintf("default/p%02d/app", i), 3)
		}
		s.sleep(5 * time.Minute)
		for i := range 100 {
			if c := s.container(fmt.Sprintf("p%02d", i)); c.State != runtime.Exited || c.ExitCode != 3 {
				s.Fatalf("container of pod p%02d: got %+v, want it exited with 3", i, c)
			}
		}
		if n := most.Load(); n > 24 {
			s.Errorf("concurrent status calls: got %d, want at most 24", n)
		}
	})
}

func TestObserver_Attempts(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		first := s.sandbox(sandboxOf("web", 0))
		s.sleep(time.Second)
		if err := s.StopPodSandbox(s.Context(), first); err != nil {
			s.Fatal(err)
		}
		second := s.sandbox(sandboxOf("web", 1))
		s.sleep(time.Second)
		pod := s.observed("web")
		if len(pod.Incarnations) != 2 || pod.Incarnations[0].ID != second || pod.Incarnations[1].ID != first {
			s.Fatalf("incarnations of the pod: got %+v, want the second sandbox before the first", pod)
		}
		if !pod.Incarnations[0].Ready || len(pod.Incarnations[0].IPs) != 1 || pod.Incarnations[1].Ready {
			s.Errorf("incarnations of the pod: got %+v, want the second sandbox ready with an address, and the first not ready", pod)
		}
	})
}

// TestObserver_GRPC checks an observer with a real gRPC connection.
func TestObserver_GRPC(t *testing.T) {
	pipe := func(t *testing.T, r *runtimetest.Runtime) *cri.Client { return r.Dial(t) }
	inSceneWithClient(t, runtimetest.Options{}, pipe, func(s *scene) {
		s.pod("web")
		s.sleep(time.Minute)
		s.ExitContainer("default/web/app", 3)
		s.sleep(100 * time.Millisecond)
		if c := s.container("web"); c.State != runtime.Exited || c.ExitCode != 3 {
			s.Errorf("container after its exit: got %+v, want it exited with 3", c)
		}
	})
}

// TestObserver_ListOrder checks that the observer does not report containers without a sandbox if a pod is
// created between the list of sandboxes and the list of containers.
func TestObserver_ListOrder(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		made := 0
		make := func() {
			made++
			config := sandboxOf(fmt.Sprint("mid", made), 0)
			s.start(s.sandbox(config), config, 0)
		}
		for _, second := range []string{"ListPodSandbox", "ListContainers"} {
			remove := s.Inject(runtimetest.Fault{Method: second, Nth: 1, OnApply: make})
			s.sleep(time.Minute)
			remove()
		}
		if made != 2 {
			s.Fatalf("pods created between two lists: got %d, want 2", made)
		}
		for _, snapshot := range s.taken() {
			for key, pod := range snapshot.Pods {
				if pod != nil && pod.Incarnations[0].ID == "" {
					s.Errorf("pod %s: got %+v, want its containers in a sandbox", key, pod)
				}
			}
		}
	})
}

// TestObserver_Unlabelled checks that the observer still reports a sandbox without labels after a refresh of
// its pod, although it then lists sandboxes by a label.
func TestObserver_Unlabelled(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		config := sandboxOf("web", 0)
		config.Labels = nil
		s.sandbox(config)
		s.sleep(time.Minute)
		s.observer.Refresh(key("web"), true)
		s.sleep(time.Second)
		if pod := s.observed("web"); pod == nil || !pod.Incarnations[0].Foreign {
			s.Errorf("pod after the refresh: got %+v, want a foreign sandbox", pod)
		}
	})
}

// TestObserver_Addresses checks that the observer repeats a failed query for the addresses of a sandbox.
func TestObserver_Addresses(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		heal := s.Inject(runtimetest.Fault{Method: "PodSandboxStatus", Err: status.Error(codes.Unknown, "boom")})
		s.sandbox(sandboxOf("web", 0))
		s.sleep(3 * time.Second)
		if in := s.observed("web").Incarnations[0]; !in.Ready || len(in.IPs) != 0 {
			s.Errorf("while the query fails: got %+v, want a ready sandbox without addresses", in)
		}
		heal()
		s.sleep(5 * time.Second)
		if in := s.observed("web").Incarnations[0]; len(in.IPs) != 1 {
			s.Errorf("after the query succeeds: got %+v, want one address", in)
		}
	})
}

// TestObserver_LargeList checks that the observer accepts a list that is larger than the limit for other
// responses.
func TestObserver_LargeList(t *testing.T) {
	const n, each = 100, 200 << 10
	r := runtimetest.New(t, runtimetest.Options{})
	for i := range n {
		config := sandboxOf(fmt.Sprintf("p%02d", i), 0)
		config.Annotations = map[string]string{"large": strings.Repeat("x", each)}
		if _, err := r.RunPodSandbox(t.Context(), config, ""); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := 0
	o := r.Dial(t).NewObserver(cri.ObserverOptions{Instance: instance, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	_ = o.Run(ctx, func(s runtime.Snapshot) { // returns when ctx is done
		seen = len(s.Pods)
		cancel()
	})
	if seen != n {
		t.Errorf("pods in a list of %d MiB: got %d, want %d", n*each>>20, seen, n)
	}
}

// TestObserver_OnPodRelist checks that the observer calls OnRelist for lists of all pods only, and
// OnPodRelist for lists of single pods only.
func TestObserver_OnPodRelist(t *testing.T) {
	inScene(t, runtimetest.Options{}, func(s *scene) {
		s.pod("web")
		var all, single atomic.Int32
		o := s.NewObserver(cri.ObserverOptions{
			Instance: instance, MinRelistInterval: time.Hour, MaxRelistInterval: time.Hour, Logger: slog.New(slog.DiscardHandler),
			OnRelist: func(time.Time, time.Duration) { all.Add(1) }, OnPodRelist: func(time.Duration) { single.Add(1) },
		})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = o.Run(ctx, func(runtime.Snapshot) {}) })
		s.Cleanup(func() {
			cancel()
			running.Wait()
		})
		s.sleep(time.Minute)
		before := all.Load()
		o.Refresh(key("web"), true)
		s.sleep(time.Minute)
		if all.Load() != before || single.Load() != 1 {
			s.Errorf("after a request for one pod: got %d more relists of all pods and %d of single pods; want 0 of all pods and 1 of single pods", all.Load()-before, single.Load())
		}
	})
}
