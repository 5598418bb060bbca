package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
)

// runSource starts a node with pod a and a Source. The Source stores its origin in the file with the
// given path. runSource calls test with a function that returns the last batch of the Source.
func runSource(t *testing.T, path string, test func(*testNode, func() *manifest.Batch)) {
	runNode(t, func(l *testNode, o *Options) {
		o.OriginFile = path
		l.PutPod(clustertest.NewPodWithUID("a"), "ADDED")
	}, func(l *testNode) {
		var last *manifest.Batch
		ctx, cancel := context.WithCancel(l.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := l.cluster.Source().Run(ctx, func(b manifest.Batch) {
				last = &b
				if stored, err := apiserver.ReadOrigin(path); stored == (apiserver.Origin{}) || err != nil {
					t.Errorf("batch before the origin was stored: got stored origin %v, error %v; want an origin", stored, err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}()
		clustertest.Advance(0)
		test(l, func() *manifest.Batch { synctest.Wait(); return last })
		cancel()
		<-done
	})
}

// TestSource checks the batches after changes of the pod and of the Node, and after the API server has
// lost its data.
func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
		first := last()
		if first == nil || !first.IsComplete || clustertest.PodNames(first.Pods) != "a" || first.Node.Labels[v1.LabelHostname] != "n1" {
			t.Fatalf("first batch: got %+v, want a complete batch with pod a and the labels of n1", first)
		}
		l.Change(func() { p := clustertest.NewPodWithUID("a"); p.Status.Phase = v1.PodRunning; l.PutPod(p, "MODIFIED") })
		if last() != first {
			t.Error("after a change of only the pod status: got a new batch, want none")
		}
		l.Change(func() { n := l.Node.DeepCopy(); n.Labels["x"] = "y"; l.PutNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["x"] != "y" || b.Pods[0] != first.Pods[0] {
			t.Errorf("after a change of a Node label: got batch %+v, want the new label and the unchanged pod", b)
		}
		l.Change(func() {
			p := clustertest.NewPodWithUID("a")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(5))
			l.PutPod(p, "MODIFIED")
		})
		b := last()
		if deletions, _ := l.cluster.deletions.Get(); b.Pods[0].Deletion == nil || len(deletions) != 1 || deletions["uid-a"] != b.Version {
			t.Errorf("pod a being deleted: got batch %+v, deletions %v; want the deletion of pod a with the version of this batch", b, deletions)
		}
		l.Change(func() {
			l.PutPod(clustertest.NewPodWithUID("b"), "ADDED")
			l.PutPod(clustertest.NewPodWithUID("a"), "DELETED")
		})
		if b := last(); clustertest.PodNames(b.Pods) != "b" {
			t.Errorf("after pod b replaced pod a: got pods %q, want \"b\"", clustertest.PodNames(b.Pods))
		}
	})
	// After a restart, the API server loses its data, and then gets its data back.
	runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
		if b := last(); !b.IsComplete {
			t.Errorf("restart with the same cluster: got batch %+v, want a complete batch", b)
		}
		l.Change(func() {
			l.InterruptWatches()
			l.Service, l.Node, l.Pods = "s2", nil, nil
			l.Version++
			l.ForgetChanges()
		})
		clustertest.Advance(time.Minute)
		b := last()
		if b.IsComplete || clustertest.PodNames(b.Pods) != "a" || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Message, path) {
			t.Errorf("data lost: got batch %+v, want an incomplete batch with pod a, and one problem that contains %q", b, path)
		}
		l.Change(func() {
			l.InterruptWatches()
			l.Service, l.Version = "s1", l.Version+1
			l.ForgetChanges()
		})
		clustertest.Advance(time.Minute)
		if b := last(); !b.IsComplete || len(b.Pods)+len(b.Problems) > 0 {
			t.Errorf("data restored without pod a: got batch %+v, want a complete batch without pods and problems", b)
		}
	})
}
