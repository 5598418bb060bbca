package meter

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/eviction/pressure"
	"podd/runtime"
	"podd/runtime/stats"
)

// TestPodUsage_UnresponsiveRuntime checks that the memory and the processes of pods are measured
// without the runtime, and that no measurement is reused. The container has no cgroup, like
// a container that was killed while the runtime does not respond.
func TestPodUsage_UnresponsiveRuntime(t *testing.T) {
	for _, resource := range []v1.ResourceName{v1.ResourceMemory, pressure.ResourcePIDs} {
		pods := []stats.Pod{{UID: "u1", Cgroups: []string{"/"}, Containers: []stats.Container{{ID: "c1", Name: "app"}}}}
		m := &Meter{sampler: stats.New(stats.Options{
			Pods: func() []stats.Pod { return pods },
			RuntimeUsage: func(ctx context.Context) (map[string]runtime.Usage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		usage, err := m.PodUsage(ctx, resource)
		if err != nil || ctx.Err() != nil || usage["u1"] == nil || usage["u1"].MemoryBytes == 0 {
			t.Errorf("%s: got %+v, error %v, context %v; want the memory of the pod's cgroup before the timeout", resource, usage, err, ctx.Err())
		}
		pods = append(pods, stats.Pod{UID: "u2", Cgroups: []string{"/"}})
		if usage, err = m.PodUsage(ctx, resource); err != nil || usage["u2"] == nil {
			t.Errorf("%s: got %+v, error %v, want the new pod", resource, usage, err)
		}
	}
}
