package cluster

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/clustertest"
)

// TestRun_NewHost checks that the first status of a new host sets the extended resources of an existing
// Node to 0, but later statuses and other hosts keep what administrators have set.
func TestRun_NewHost(t *testing.T) {
	const gpu = v1.ResourceName("example.com/gpu")
	for isNew, want := range map[bool]int64{true: 0, false: 2} {
		prepare := func(l *testNode, o *Options) {
			o.IsNewHost = isNew
			amounts := v1.ResourceList{gpu: resource.MustParse("2"), v1.ResourceCPU: resource.MustParse("64")}
			l.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts.DeepCopy()}}
		}
		runNode(t, prepare, func(l *testNode) {
			check := func(when string, want int64) {
				t.Helper()
				s := l.StoredNode().Status
				if capacity, allocatable := s.Capacity[gpu], s.Allocatable[gpu]; capacity.Value() != want || allocatable.Value() != want || s.Capacity.Cpu().Value() != 2 {
					t.Errorf("new host %t, %s: got capacity %v, allocatable %v, want %d of %s and 2 CPUs", isNew, when, s.Capacity, s.Allocatable, want, gpu)
				}
			}
			check("first status", want)
			n := l.StoredNode().DeepCopy()
			n.Status.Capacity[gpu], n.Status.Allocatable[gpu] = resource.MustParse("3"), resource.MustParse("3")
			l.Change(func() { l.PutNode(n, "MODIFIED") })
			clustertest.Advance(10 * time.Minute)
			check("after a change by an administrator", 3)
		})
	}
}
