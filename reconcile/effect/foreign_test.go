package effect

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podd/runtime"
)

// foreignPod is a runtime with one sandbox of another agent. It records the grace period of
// each container that is stopped.
type foreignPod struct {
	Runtime
	containers []runtime.Container

	mu      sync.Mutex // guards stopped
	stopped map[string]time.Duration
}

func (p *foreignPod) SandboxContainers(context.Context, string) ([]runtime.Container, error) {
	return p.containers, nil
}

func (p *foreignPod) StopContainer(_ context.Context, id string, grace time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped[id] = grace
	return nil
}

func (*foreignPod) StopPodSandbox(context.Context, string) error   { return nil }
func (*foreignPod) RemovePodSandbox(context.Context, string) error { return nil }

func TestEndForeign(t *testing.T) {
	p := &foreignPod{stopped: map[string]time.Duration{}, containers: []runtime.Container{
		{ID: "running", State: runtime.Running, Annotations: map[string]string{runtime.AnnotationPodTerminationGracePeriod: "7"}},
		{ID: "created", State: runtime.Created},
		{ID: "unknown", State: runtime.Unknown},
		{ID: "exited", State: runtime.Exited},
	}}
	if err := (&Runner{Runtime: p}).stopForeign(t.Context(), "sandbox"); err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"running": 7 * time.Second, "created": 0, "unknown": 0}
	if diff := cmp.Diff(want, p.stopped); diff != "" {
		t.Errorf("grace periods of the stopped containers: (-want +got)\n%s", diff)
	}
}
