package runtimetest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
)

// watcher collects the snapshots of an observer.
type watcher struct {
	fixture   *fixture
	snapshots chan runtime.Snapshot
	pods      map[types.NamespacedName]*runtime.Pod
}

// observe runs an observer with the fixture's instance ID until the test ends.
func (f *fixture) observe() (*watcher, *cri.Observer) {
	o := f.Client.NewObserver(cri.ObserverOptions{Instance: f.instance(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	w := &watcher{fixture: f, snapshots: make(chan runtime.Snapshot, 1000), pods: map[types.NamespacedName]*runtime.Pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx, func(s runtime.Snapshot) { w.snapshots <- s })
	}()
	f.t.Cleanup(func() {
		cancel()
		<-done
	})
	return w, o
}

// waitUntil receives snapshots until a call of condition returns true for the pod with this key,
// and returns that pod. condition is called with nil if the pod does not exist. The parameter
// description describes the condition in the test's error.
func (w *watcher) waitUntil(description string, key types.NamespacedName, condition func(*runtime.Pod) bool) *runtime.Pod {
	w.fixture.t.Helper()
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	for first := true; ; first = false {
		if pod := w.pods[key]; !first && condition(pod) {
			return pod
		}
		select {
		case s := <-w.snapshots:
			w.applySnapshot(s)
		case <-limit.C:
			w.fixture.t.Fatalf("waited %s until %s: got %+v from the observer", waitLimit, description, w.pods[key])
		}
	}
}

// applySnapshot applies a snapshot to w.pods.
func (w *watcher) applySnapshot(s runtime.Snapshot) {
	if s.IsComplete {
		clear(w.pods)
	}
	for key, pod := range s.Pods {
		if pod == nil {
			delete(w.pods, key)
		} else {
			w.pods[key] = pod
		}
	}
}

func testObserver(t *testing.T, f *fixture) {
	w, o := f.observe()
	config := f.sandboxConfig("seen", 0)
	key := types.NamespacedName{Namespace: f.namespace, Name: "seen"}
	w.waitUntil("the pod does not exist", key, func(p *runtime.Pod) bool { return p == nil })
	sandbox := f.runSandbox(config)
	id := f.createContainer(sandbox, config, "app", "sleep 1000")
	o.Refresh(key, true)
	w.waitUntil("the container is created", key, func(p *runtime.Pod) bool { return firstContainer(p).State == runtime.Created })
	if err := f.Client.StartContainer(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	p := w.waitUntil("the container runs", key, func(p *runtime.Pod) bool { return firstContainer(p).State == runtime.Running })
	if in := p.Incarnations[0]; in.ID != sandbox || !in.Ready || len(in.IPs) == 0 || in.Foreign || string(in.UID) != config.Metadata.Uid {
		t.Errorf("got %+v, want sandbox %s, ready, not foreign and with an address", in.Sandbox, sandbox)
	}
	c := firstContainer(p)
	if c.ID != id || c.SandboxID != sandbox || c.Name != "app" || c.StartedAt.IsZero() || c.ImageRef == "" {
		t.Errorf("running container: got %+v, want container %s in sandbox %s, with a start time and an image", c, id, sandbox)
	}
	if err := f.Client.StopContainer(f.ctx(), id, 0); err != nil {
		t.Fatal(err)
	}
	c = firstContainer(w.waitUntil("the container has exited", key, func(p *runtime.Pod) bool { return firstContainer(p).State == runtime.Exited }))
	if c.ExitCode != 137 || c.Reason == "" || c.FinishedAt.IsZero() || c.StartedAt.IsZero() {
		t.Errorf("exited container: got %+v, want exit code 137, a reason, and both times", c)
	}
	if h := o.Health(); h.Err != nil || h.LastRelist.IsZero() {
		t.Errorf("got health %+v, want no error and the time of a relist", h)
	}
	if err := f.Client.RemovePodSandbox(f.ctx(), sandbox); err != nil {
		t.Fatal(err)
	}
	w.waitUntil("the pod is removed", key, func(p *runtime.Pod) bool { return p == nil })
	if f.HasEvents {
		w.waitUntilEvents(o)
	}
}

// waitUntilEvents waits until the observer uses events.
func (w *watcher) waitUntilEvents(o *cri.Observer) {
	w.fixture.t.Helper()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); w.fixture.wait(100 * time.Millisecond) {
		if o.Health().HasEvents {
			return
		}
	}
	w.fixture.t.Errorf("waited %s until the observer uses events: got none", waitLimit)
}

// firstContainer returns the first container of the newest incarnation, or the zero value.
func firstContainer(p *runtime.Pod) runtime.Container {
	if p == nil || len(p.Incarnations[0].Containers) == 0 {
		return runtime.Container{}
	}
	return p.Incarnations[0].Containers[0]
}

func testObserverForeign(t *testing.T, f *fixture) {
	theirs := f.sandboxConfig("theirs", 0)
	theirs.Labels[runtime.LabelInstance] = "another"
	f.startContainer(f.runSandbox(theirs), theirs, "app", "sleep 1000")
	bare := f.sandboxConfig("bare", 0)
	bare.Labels = nil
	f.runSandbox(bare)
	ours := f.sandboxConfig("ours", 0)
	f.startContainer(f.runSandbox(ours), ours, "app", "sleep 1000")
	w, o := f.observe()
	p := w.waitUntil("our pod runs", types.NamespacedName{Namespace: f.namespace, Name: "ours"}, func(p *runtime.Pod) bool { return firstContainer(p).State == runtime.Running })
	if p.Incarnations[0].Foreign {
		t.Error("sandbox of our instance: got foreign, want not foreign")
	}
	for _, config := range []*api.PodSandboxConfig{theirs, bare} {
		key := types.NamespacedName{Namespace: f.namespace, Name: config.Metadata.Name}
		for range 2 {
			p := w.waitUntil(key.Name+" exists", key, func(p *runtime.Pod) bool { return p != nil })
			if in := p.Incarnations[0]; !in.Foreign || len(in.Containers) != 0 {
				t.Errorf("%s: got %+v, want a foreign sandbox without containers", key.Name, in)
			}
			o.Refresh(key, true)
		}
	}
}
