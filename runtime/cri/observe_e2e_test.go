//go:build e2e

package cri_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// TestObserverOutlivesRuntime kills the runtime, kills a container while the runtime is not
// running, and starts the runtime again.
func TestObserverOutlivesRuntime(t *testing.T) {
	for _, flavor := range tools.Flavors() {
		t.Run(string(flavor), func(t *testing.T) {
			s := stack.ForTest(t, stack.Options{Flavor: flavor})
			c, err := cri.Dial(cri.Options{Endpoint: s.Endpoint()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			snapshots, observer := observeReal(t, c)
			_, short := realPod(t, s, c, "short", "sleep 1000")
			realPod(t, s, c, "long", "sleep 1000")
			awaitState(t, snapshots, "short", runtime.Running)
			if err := s.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.StopContainer(t.Context(), short, time.Second); err == nil {
				t.Error("StopContainer without a runtime: got no error, want one")
			}
			killContainer(t, s, short)
			awaitUnreachable(t, observer)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c := awaitState(t, snapshots, "short", runtime.Exited); c.FinishedAt.IsZero() {
				t.Errorf("container that was killed while the runtime was not running: got %+v, want a finish time", c)
			}
			realPod(t, s, c, "next", "sleep 1000")
			awaitState(t, snapshots, "next", runtime.Running)
			awaitState(t, snapshots, "long", runtime.Running)
			for _, name := range []string{"short", "long", "next"} {
				for _, in := range snapshots.pod(name).Incarnations {
					if err := c.RemovePodSandbox(t.Context(), in.ID); err != nil {
						t.Error(err)
					}
				}
			}
			snapshots.await(t, "no pod is observed", func(pods map[types.NamespacedName]*runtime.Pod) bool { return len(pods) == 0 })
		})
	}
}

// A snapshotLog contains the snapshots that an observer has emitted so far.
type snapshotLog struct {
	mu   sync.Mutex // guards all following fields
	pods map[types.NamespacedName]*runtime.Pod
	news chan struct{}
}

func (s *snapshotLog) take(snapshot runtime.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if snapshot.IsComplete {
		clear(s.pods)
	}
	for key, pod := range snapshot.Pods {
		if pod == nil {
			delete(s.pods, key)
		} else {
			s.pods[key] = pod
		}
	}
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *snapshotLog) pod(name string) runtime.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.pods[key(name)]; pod != nil {
		return *pod
	}
	return runtime.Pod{}
}

// await waits until isReached returns true for the observed pods.
func (s *snapshotLog) await(t *testing.T, what string, isReached func(map[types.NamespacedName]*runtime.Pod) bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		s.mu.Lock()
		good := isReached(s.pods)
		s.mu.Unlock()
		if good {
			return
		}
		select {
		case <-s.news:
		case <-limit.C:
			t.Fatalf("waited 1m until %s: got no snapshot with this result", what)
		}
	}
}

func observeReal(t *testing.T, c *cri.Client) (*snapshotLog, *cri.Observer) {
	s := &snapshotLog{pods: map[types.NamespacedName]*runtime.Pod{}, news: make(chan struct{}, 1)}
	o := c.NewObserver(cri.ObserverOptions{Instance: instance, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = o.Run(ctx, s.take) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s, o
}

// realPod creates a pod with one container.
func realPod(t *testing.T, s *stack.Stack, c *cri.Client, name, script string) (sandbox, container string) {
	t.Helper()
	config := sandboxOf(name, 0)
	config.Linux = &api.LinuxPodSandboxConfig{CgroupParent: s.CgroupParent()}
	sandbox, err := c.RunPodSandbox(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	container, err = c.CreateContainer(t.Context(), sandbox, &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: "app"}, Image: &api.ImageSpec{Image: stack.BusyboxImage, UserSpecifiedImage: stack.BusyboxImage},
		Command: []string{"/bin/sh", "-c", script}, Labels: config.Labels, Linux: &api.LinuxContainerConfig{},
	}, config)
	if err == nil {
		err = c.StartContainer(t.Context(), container)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sandbox, container
}

func awaitState(t *testing.T, s *snapshotLog, name string, state runtime.ContainerState) runtime.Container {
	t.Helper()
	var found runtime.Container
	s.await(t, name+" is "+string(state), func(pods map[types.NamespacedName]*runtime.Pod) bool {
		pod := pods[key(name)]
		if pod == nil || len(pod.Incarnations[0].Containers) == 0 {
			return false
		}
		found = pod.Incarnations[0].Containers[0]
		return found.State == state
	})
	return found
}

// killContainer kills the process of a container.
func killContainer(t *testing.T, s *stack.Stack, container string) {
	t.Helper()
	pid, err := s.ContainerPID(container)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitUnreachable waits until the observer reports that the runtime is unreachable.
func awaitUnreachable(t *testing.T, o *cri.Observer) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); o.Health().Err == nil; <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("health of the observer without a runtime: got %+v, want an error", o.Health())
		}
	}
}
