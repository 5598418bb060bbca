//go:build e2e

package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podMemory returns the memory limit of a pod's cgroup, in bytes.
func (a *agent) podMemory(p *v1.Pod) (string, error) {
	file := filepath.Join("/sys/fs/cgroup/memory", runtimeStack.CgroupParent(), a.node, "kubepods/pod"+string(p.UID), "memory.limit_in_bytes")
	if cgroups.IsCgroup2UnifiedMode() {
		file = filepath.Join("/sys/fs/cgroup", runtimeStack.CgroupParent(), a.node, "kubepods/pod"+string(p.UID), "memory.max")
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// TestResize_PodLevel checks that podd resizes a pod without a restart when the pod-level resources
// in its spec change. The pod's cgroup and its status in the cluster must have the new size.
func TestResize_PodLevel(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "n20").start()
	a.untilReady()
	sized := func(mebi int64) *v1.ResourceRequirements {
		list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("200m"), v1.ResourceMemory: *resource.NewQuantity(mebi<<20, resource.BinarySI)}
		return &v1.ResourceRequirements{Requests: list.DeepCopy(), Limits: list}
	}
	const name = "n20-web"
	createBoundPod(t, a.node, name, func(p *v1.Pod) { p.Spec.Resources = sized(32) }, sleepingContainer("main"))
	hasSize := func(mebi int64) func(*v1.Pod) bool {
		return func(p *v1.Pod) bool {
			s := &p.Status
			// During a resize, the status may contain the new size before the cgroup has it.
			if slices.ContainsFunc(s.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress }) {
				return false
			}
			return isPodReady(p) && s.Resources != nil && s.Resources.Limits.Memory().Value() == mebi<<20 && s.AllocatedResources.Memory().Value() == mebi<<20
		}
	}
	was := a.untilStatus(name, "has 32Mi", hasSize(32))
	for _, mebi := range []int64{64, 48} {
		patch := map[string]any{"spec": map[string]any{"resources": sized(mebi)}}
		if err := plane.do(http.MethodPatch, podsPath+"/"+name+"/resize", patch, nil); err != nil {
			t.Fatal(err)
		}
		now := a.untilStatus(name, fmt.Sprintf("has %dMi", mebi), hasSize(mebi))
		if !maps.Equal(containerIDs(now), containerIDs(was)) {
			t.Errorf("after a resize to %dMi: got containers %v, want %v", mebi, containerIDs(now), containerIDs(was))
		}
		if got, err := a.podMemory(now); err != nil || got != fmt.Sprint(mebi<<20) {
			t.Errorf("memory limit of the pod's cgroup: got %s, error %v; want %d", got, err, mebi<<20)
		}
	}
}
