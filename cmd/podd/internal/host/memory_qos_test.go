package host

import (
	"log/slog"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/config"
	"podd/reconcile"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/node"
	"podd/reconcile/render"
)

// TestNewRenderNode_MemoryQoS checks that a container without a memory limit is throttled at a part of
// the memory that is not reserved. As in the kubelet, eviction thresholds do not reduce this memory, and
// it does not depend on enforceNodeAllocatable.
func TestNewRenderNode_MemoryQoS(t *testing.T) {
	capacity, err := node.ReadMemInfo("MemTotal")
	if err != nil {
		t.Fatal(err)
	}
	const reserved, page = 64 << 20, 4096
	cfg := &config.Config{Paths: config.Paths{RootDir: "/"}, Resources: config.Resources{
		Reserved:               v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(reserved, resource.BinarySI)},
		Eviction:               hardThresholds(pressure.MemoryAvailable, pressure.Limit{Amount: 100 << 20}),
		MemoryThrottlingFactor: 0.5,
	}}
	want := strconv.FormatInt((capacity-reserved)/2/page*page, 10)
	for _, enforced := range []bool{false, true} {
		cfg.EnforceReserved = enforced
		n, err := NewRenderNode(cfg, &reconcile.Instance{}, node.Addresses{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		n.UsesCgroupV2, n.PageSize = true, page
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
		if got := render.ContainerResources(n, pod, &pod.Spec.Containers[0]).Unified["memory.high"]; got != want {
			t.Errorf("EnforceReserved %t: got memory.high %s, want %s", enforced, got, want)
		}
	}
}
