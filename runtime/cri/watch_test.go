package cri_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

const instance = "ours"

// A scene is a runtime in memory with an observer in a synctest bubble.
type scene struct {
	*testing.T
	*runtimetest.Runtime
	observer *cri.Observer

	mu        sync.Mutex // guards all following fields
	snapshots []runtime.Snapshot
	view      map[types.NamespacedName]*runtime.Pod // the observed pods after all snapshots
}

// inScene runs a test in a synctest bubble. When the test begins, the observer has completed its first pass,
// which lists all pods.
func inScene(t *testing.T, o runtimetest.Options, test func(*scene)) {
	inSceneWithClient(t, o, func(_ *testing.T, r *runtimetest.Runtime) *cri.Client { return r.Client }, test)
}

// inSceneWithClient works like inScene, but with a separate client for the observer.
func inSceneWithClient(t *testing.T, o runtimetest.Options, client func(*testing.T, *runtimetest.Runtime) *cri.Client, test func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, o)
		r.AddImages("app", "busybox")
		s := &scene{T: t, Runtime: r, view: map[types.NamespacedName]*runtime.Pod{}}
		s.observe(client(t, r))
		synctest.Wait()
		test(s)
	})
}

// observe starts an observer, which runs until the test ends.
func (s *scene) observe(c *cri.Client) {
	s.observer = c.NewObserver(cri.ObserverOptions{Instance: instance, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.observer.Run(ctx, s.take); err != context.Canceled {
			s.Errorf("Run: got error %v, want Canceled", err)
		}
	})
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (s *scene) take(snapshot runtime.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots = append(s.snapshots, snapshot)
	if snapshot.IsComplete {
		clear(s.view)
	}
	for key, pod := range snapshot.Pods {
		if pod == nil {
			delete(s.view, key)
		} else {
			s.view[key] = pod
		}
	}
}

// taken returns the snapshots since the last call.
func (s *scene) taken() []runtime.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.snapshots
	s.snapshots = nil
	return all
}

// observed returns the pod as the observer has emitted it last, or nil if there is none.
func (s *scene) observed(name string) *runtime.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view[key(name)]
}

// container returns the first container of a pod's newest incarnation.
func (s *scene) container(name string) runtime.Container {
	pod := s.observed(name)
	if pod == nil || len(pod.Incarnations[0].Containers) == 0 {
		return runtime.Container{}
	}
	return pod.Incarnations[0].Containers[0]
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

func sandboxOf(name string, attempt uint32) *api.PodSandboxConfig {
	return &api.PodSandboxConfig{
		Metadata: &api.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name, Attempt: attempt},
		Labels: map[string]string{
			runtime.LabelPodName: name, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: "uid-" + name,
			runtime.LabelInstance: instance,
		},
	}
}

// sandbox creates a sandbox and returns its ID.
func (s *scene) sandbox(config *api.PodSandboxConfig) string {
	s.Helper()
	id, err := s.RunPodSandbox(s.Context(), config, "")
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// start creates and starts a container named app.
func (s *scene) start(sandbox string, config *api.PodSandboxConfig, attempt uint32) string {
	s.Helper()
	id, err := s.CreateContainer(s.Context(), sandbox, &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: "app", Attempt: attempt}, Image: &api.ImageSpec{Image: "app"},
		Labels: config.Labels,
	}, config)
	if err == nil {
		err = s.StartContainer(s.Context(), id)
	}
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// pod creates a pod with one container and waits until it is observed.
func (s *scene) pod(name string) (sandbox, container string) {
	s.Helper()
	config := sandboxOf(name, 0)
	sandbox = s.sandbox(config)
	container = s.start(sandbox, config, 0)
	s.observer.Refresh(key(name), true)
	synctest.Wait()
	return sandbox, container
}

func (s *scene) pods(n int) {
	s.Helper()
	for i := range n {
		s.pod(fmt.Sprintf("p%02d", i))
	}
}
