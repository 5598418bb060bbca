package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
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
		l.fakeAPI.putPod(clustertest.NewPodWithUID("a"), "ADDED")
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
		l.advance(0)
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
		l.change(func() { p := clustertest.NewPodWithUID("a"); p.Status.Phase = v1.PodRunning; l.putPod(p, "MODIFIED") })
		if last() != first {
			t.Error("after a change of only the pod status: got a new batch, want none")
		}
		l.change(func() { n := l.node.DeepCopy(); n.Labels["x"] = "y"; l.putNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["x"] != "y" || b.Pods[0] != first.Pods[0] {
			t.Errorf("after a change of a Node label: got batch %+v, want the new label and the unchanged pod", b)
		}
		l.change(func() {
			p := clustertest.NewPodWithUID("a")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(5))
			l.putPod(p, "MODIFIED")
		})
		b := last()
		if deletions, _ := l.cluster.deletions.Get(); b.Pods[0].Deletion == nil || len(deletions) != 1 || deletions["uid-a"] != b.Version {
			t.Errorf("pod a being deleted: got batch %+v, deletions %v; want the deletion of pod a with the version of this batch", b, deletions)
		}
		l.change(func() {
			l.putPod(clustertest.NewPodWithUID("b"), "ADDED")
			l.putPod(clustertest.NewPodWithUID("a"), "DELETED")
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
		l.change(func() {
			l.interruptWatches()
			l.service, l.node, l.pods = "s2", nil, nil
			l.version++
			l.changes = nil
		})
		l.advance(time.Minute)
		b := last()
		if b.IsComplete || clustertest.PodNames(b.Pods) != "a" || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Message, path) {
			t.Errorf("data lost: got batch %+v, want an incomplete batch with pod a, and one problem that contains %q", b, path)
		}
		l.change(func() {
			l.interruptWatches()
			l.service, l.version = "s1", l.version+1
			l.changes = nil
		})
		l.advance(time.Minute)
		if b := last(); !b.IsComplete || len(b.Pods)+len(b.Problems) > 0 {
			t.Errorf("data restored without pod a: got batch %+v, want a complete batch without pods and problems", b)
		}
	})
}

// TestSource_OutdatedNode checks a new pod that does not match the labels of the cached Node. Because
// the watch of the Node may lag behind the watch of the pods, podd must read the Node before it emits
// the pod. The batch must contain the labels that the Node has in the API server.
func TestSource_OutdatedNode(t *testing.T) {
	runSource(t, filepath.Join(t.TempDir(), "cluster.json"), func(l *testNode, last func() *manifest.Batch) {
		newCorePod := func(name string) *v1.Pod {
			p := clustertest.NewPodWithUID(name)
			p.Spec.NodeSelector = map[string]string{"tier": "core"}
			return p
		}
		nodeReads := func() (n int) {
			l.fakeAPI.mu.Lock()
			defer l.fakeAPI.mu.Unlock()
			for _, r := range l.requests {
				if r == "GET nodes" {
					n++
				}
			}
			return n
		}
		last()
		before := nodeReads()
		l.change(func() { l.putPod(newCorePod("b"), "ADDED") })
		if b := last(); b.Node.Labels["tier"] != "edge" || nodeReads() != before+1 {
			t.Errorf("pod that selects tier=core on a Node with tier=edge: got labels %v, %d reads of the Node; want the label tier=edge, 1 read", b.Node.Labels, nodeReads()-before)
		}
		l.change(func() { // the Node changes, but its watch does not report the change
			n := l.node.DeepCopy()
			l.version++
			n.Labels["tier"], n.ResourceVersion = "core", strconv.Itoa(l.version)
			l.node = n
			l.putPod(newCorePod("c"), "ADDED")
		})
		if b := last(); b.Node.Labels["tier"] != "core" || clustertest.PodNames(b.Pods) != "a b c" {
			t.Errorf("Node changed to tier=core, but not reported by its watch: got labels %v, pods %q; want the label tier=core, pods \"a b c\"", b.Node.Labels, clustertest.PodNames(b.Pods))
		}
		before = nodeReads()
		l.change(func() { l.putPod(newCorePod("d"), "ADDED"); l.putPod(clustertest.NewPodWithUID("a"), "DELETED") })
		if b := last(); b.Node.Labels["tier"] != "core" || clustertest.PodNames(b.Pods) != "b c d" || nodeReads() != before {
			t.Errorf("next pod that selects tier=core: got labels %v, pods %q, %d reads of the Node; want the label tier=core, pods \"b c d\", no reads", b.Node.Labels, clustertest.PodNames(b.Pods), nodeReads()-before)
		}
		l.change(func() { n := l.node.DeepCopy(); n.Labels["tier"] = "lab"; l.putNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["tier"] != "lab" {
			t.Errorf("Node changed to tier=lab, and reported by its watch: got labels %v, want tier=lab", b.Node.Labels)
		}
	})
}

// TestSource_InvalidOrigin checks that podd emits the pods and replaces the origin file if the content
// of the file is invalid.
func TestSource_InvalidOrigin(t *testing.T) {
	for name, text := range map[string]string{"truncated": `{"authority":`, "empty": "", "another type": "[1]"} {
		path := filepath.Join(t.TempDir(), "cluster.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
			if b := last(); b == nil || !b.IsComplete || clustertest.PodNames(b.Pods) != "a" {
				t.Errorf("%s: got batch %+v, want a complete batch with pod a", name, b)
			}
		})
		if stored, err := apiserver.ReadOrigin(path); stored.ServiceUID == "" || err != nil {
			t.Errorf("%s: got stored origin %v, %v; want an origin with a Service", name, stored, err)
		}
	}
}

// TestSource_Unreachable checks that the Source emits no batch before the pods were listed, and that
// apiserver.ReadOrigin returns the origin that write has stored.
func TestSource_Unreachable(t *testing.T) {
	c := New(Options{NodeName: "n1", OriginFile: filepath.Join(t.TempDir(), "cluster.json")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Source().Run(ctx, func(b manifest.Batch) { t.Errorf("got batch %+v, want none", b) }); err != nil {
		t.Error(err)
	}
	o := apiserver.Origin{CADigest: "a", ServiceUID: "b", NodeUID: "c"}
	if err := o.Write(c.o.OriginFile); err != nil {
		t.Fatalf("storing an origin: got error %v, want none", err)
	}
	if got, err := apiserver.ReadOrigin(c.o.OriginFile); got != o || err != nil {
		t.Errorf("reading the stored origin: got %v, error %v; want %v", got, err, o)
	}
}
