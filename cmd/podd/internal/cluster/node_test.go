package cluster

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/server"
)

// TestRun_NewHost checks that the first status of a new host sets the extended resources of an existing
// Node to 0, but later statuses and other hosts keep what administrators have set.
func TestRun_NewHost(t *testing.T) {
	const gpu = v1.ResourceName("example.com/gpu")
	for isNew, want := range map[bool]int64{true: 0, false: 2} {
		prepare := func(l *testNode, o *Options) {
			o.IsNewHost = isNew
			amounts := v1.ResourceList{gpu: resource.MustParse("2"), v1.ResourceCPU: resource.MustParse("64")}
			l.node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts.DeepCopy()}}
		}
		runNode(t, prepare, func(l *testNode) {
			check := func(when string, want int64) {
				t.Helper()
				s := l.storedNode().Status
				if capacity, allocatable := s.Capacity[gpu], s.Allocatable[gpu]; capacity.Value() != want || allocatable.Value() != want || s.Capacity.Cpu().Value() != 2 {
					t.Errorf("new host %t, %s: got capacity %v, allocatable %v, want %d of %s and 2 CPUs", isNew, when, s.Capacity, s.Allocatable, want, gpu)
				}
			}
			check("first status", want)
			n := l.storedNode().DeepCopy()
			n.Status.Capacity[gpu], n.Status.Allocatable[gpu] = resource.MustParse("3"), resource.MustParse("3")
			l.change(func() { l.putNode(n, "MODIFIED") })
			l.advance(10 * time.Minute)
			check("after a change by an administrator", 3)
		})
	}
}

// TestRun_NodeSyncedFile checks that podd creates the file after the first successful sync of the Node.
func TestRun_NodeSyncedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-synced")
	prepare := func(l *testNode, o *Options) {
		o.Node.NodeSyncedFile = file
		l.fault = func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/nodes") {
				return nil, errors.New("the API server is unreachable")
			}
			return nil, nil
		}
	}
	runNode(t, prepare, func(l *testNode) {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("before the first sync: got error %v, want %v", err, fs.ErrNotExist)
		}
		l.change(func() { l.fault = nil })
		l.advance(time.Minute)
		if _, err := os.Stat(file); err != nil {
			t.Errorf("after the first sync: got error %v, want none", err)
		}
	})
}

// TestRun_ConfigCondition checks that podd writes its condition KubeletConfigOk, and removes it when the
// View no longer contains it. Conditions of other clients must remain.
func TestRun_ConfigCondition(t *testing.T) {
	withCondition := clustertest.NewLocalNode()
	withCondition.Status.Conditions = append(withCondition.Status.Conditions, v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue})
	prepare := func(l *testNode, _ *Options) {
		n := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: "KernelDeadlock", Status: v1.ConditionFalse}}}}
		l.putNode(n, "ADDED")
		l.state = server.NewLatestView(&server.View{Revision: 1, NodeObject: withCondition})
	}
	runNode(t, prepare, func(l *testNode) {
		check := func(when string, want bool) {
			t.Helper()
			stored := l.storedNode()
			clustertest.NodeCondition(t, stored, "KernelDeadlock")
			if got := slices.ContainsFunc(stored.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == server.ConfigCondition }); got != want {
				t.Errorf("%s: got conditions %v, want KubeletConfigOk %t", when, stored.Status.Conditions, want)
			}
		}
		check("at the start", true)
		publish := func(n *v1.Node) {
			next := *l.state.View()
			next.Revision, next.NodeObject = next.Revision+1, n
			l.state.Publish(&next)
			l.advance(time.Second)
		}
		publish(clustertest.NewLocalNode())
		check("after the condition was removed from the View", false)
		l.countRequests()
		l.advance(time.Minute)
		if n := l.countRequests("PATCH nodes"); n[0] > 0 {
			t.Errorf("after the condition was removed: got %d patches of the Node in a minute, want none", n[0])
		}
		publish(withCondition)
		check("after the condition was added again", true)
	})
}
