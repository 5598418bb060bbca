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
	b         *bench
	snapshots chan runtime.Snapshot
	pods      map[types.NamespacedName]*runtime.Pod
}

// observe runs an observer of the bench's instance until the test ends.
func (b *bench) observe() (*watcher, *cri.Observer) {
	o := b.Client.NewObserver(cri.ObserverOptions{Instance: b.instance(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	w := &watcher{b: b, snapshots: make(chan runtime.Snapshot, 1000), pods: map[types.NamespacedName]*runtime.Pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.Run(ctx, func(s runtime.Snapshot) { w.snapshots <- s })
	}()
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
	return w, o
}

// until processes snapshots until is returns true for the pod, which is nil if it does not
// exist.
func (w *watcher) until(what string, key types.NamespacedName, is func(*runtime.Pod) bool) *runtime.Pod {
	w.b.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for first := true; ; first = false {
		if pod := w.pods[key]; !first && is(pod) {
			return pod
		}
		select {
		case s := <-w.snapshots:
			w.take(s)
		case <-limit.C:
			w.b.t.Fatalf("waiting until %s: got %+v from the observer", what, w.pods[key])
		}
	}
}

func (w *watcher) take(s runtime.Snapshot) {
	if s.Whole {
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

func testObserver(t *testing.T, b *bench) {
	w, o := b.observe()
	config := b.sandboxConfig("seen", 0)
	key := types.NamespacedName{Namespace: b.namespace, Name: "seen"}
	w.until("the pod does not exist", key, func(p *runtime.Pod) bool { return p == nil })
	sandbox := b.run(config)
	id := b.create(sandbox, config, "app", "sleep 1000")
	o.Refresh(key, true)
	w.until("the container is created", key, func(p *runtime.Pod) bool { return one(p).State == runtime.Created })
	if err := b.Client.StartContainer(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	p := w.until("the container runs", key, func(p *runtime.Pod) bool { return one(p).State == runtime.Running })
	if in := p.Incarnations[0]; in.ID != sandbox || !in.Ready || len(in.IPs) == 0 || in.Foreign || string(in.UID) != config.Metadata.Uid {
		t.Errorf("got %+v", in.Sandbox)
	}
	c := one(p)
	if c.ID != id || c.SandboxID != sandbox || c.Name != "app" || c.StartedAt.IsZero() || c.ImageRef == "" {
		t.Errorf("running: got %+v", c)
	}
	if err := b.Client.StopContainer(b.ctx(), id, 0); err != nil {
		t.Fatal(err)
	}
	c = one(w.until("the container has exited", key, func(p *runtime.Pod) bool { return one(p).State == runtime.Exited }))
	if c.ExitCode != 137 || c.Reason == "" || c.FinishedAt.IsZero() || c.StartedAt.IsZero() {
		t.Errorf("exited: got %+v", c)
	}
	if h := o.Health(); h.Err != nil || h.LastRelist.IsZero() {
		t.Errorf("got health %+v", h)
	}
	if err := b.Client.RemovePodSandbox(b.ctx(), sandbox); err != nil {
		t.Fatal(err)
	}
	w.until("the pod is removed", key, func(p *runtime.Pod) bool { return p == nil })
	if b.Events {
		w.untilEvents(o)
	}
}

// untilEvents waits until the observer uses events.
func (w *watcher) untilEvents(o *cri.Observer) {
	w.b.t.Helper()
	for range 600 {
		if o.Health().Events {
			return
		}
		w.b.wait(100 * time.Millisecond)
	}
	w.b.t.Error("the observer does not use events")
}

// one returns the first container of the newest incarnation, or the zero value.
func one(p *runtime.Pod) runtime.Container {
	if p == nil || len(p.Incarnations[0].Containers) == 0 {
		return runtime.Container{}
	}
	return p.Incarnations[0].Containers[0]
}

func testObserverForeign(t *testing.T, b *bench) {
	theirs := b.sandboxConfig("theirs", 0)
	theirs.Labels[runtime.LabelInstance] = "another"
	b.start(b.run(theirs), theirs, "app", "sleep 1000")
	bare := b.sandboxConfig("bare", 0)
	bare.Labels = nil
	b.run(bare)
	ours := b.sandboxConfig("ours", 0)
	b.start(b.run(ours), ours, "app", "sleep 1000")
	w, o := b.observe()
	p := w.until("our pod runs", types.NamespacedName{Namespace: b.namespace, Name: "ours"}, func(p *runtime.Pod) bool { return one(p).State == runtime.Running })
	if p.Incarnations[0].Foreign {
		t.Error("our sandbox: got foreign, want not foreign")
	}
	for _, config := range []*api.PodSandboxConfig{theirs, bare} {
		key := types.NamespacedName{Namespace: b.namespace, Name: config.Metadata.Name}
		for range 2 {
			p := w.until(key.Name+" exists", key, func(p *runtime.Pod) bool { return p != nil })
			if in := p.Incarnations[0]; !in.Foreign || len(in.Containers) != 0 {
				t.Errorf("%s: got %+v, want it foreign and without containers", key.Name, in)
			}
			o.Refresh(key, true)
		}
	}
}
