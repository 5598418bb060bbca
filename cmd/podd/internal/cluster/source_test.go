package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/manifest"
	"podd/server"
)

// podSnapshot returns a snapshot of pods after a number of lists. from identifies the cluster of the
// last list.
func podSnapshot(lists int, from apiserver.Origin, pods ...*v1.Pod) apiserver.Snapshot[*v1.Pod] {
	items := map[types.NamespacedName]*v1.Pod{}
	for _, p := range pods {
		items[apiserver.ObjectKey(p)] = p
	}
	return apiserver.Snapshot[*v1.Pod]{Items: items, ListCount: lists, Origin: from}
}

// newPodWithUID returns a pod with the UID "uid-" and its name.
func newPodWithUID(name string) *v1.Pod {
	p := newBoundPod(name, "web:1")
	p.UID = types.UID("uid-" + name)
	return p
}

// podNames returns the names of pods. A deleted pod is shown as its name, ":" and its grace period.
func podNames(all []*manifest.Pod) string {
	var names []string
	for _, p := range all {
		if name := p.Key.Name; p.Deletion != nil {
			names = append(names, name+":"+p.Deletion.GracePeriod.String())
		} else {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// TestBoundPods_Deleted checks pods that disappear from the snapshot. A pod that is missing in a new
// list must be deleted only if the list comes from the cluster that has bound the pod. A pod whose
// deletion a watch reports must always be deleted.
func TestBoundPods_Deleted(t *testing.T) {
	a, b, c := newPodWithUID("a"), newPodWithUID("b"), newPodWithUID("c")
	one, two := apiserver.Origin{CADigest: "ca", ServiceUID: "s1", NodeUID: "n1"}, apiserver.Origin{CADigest: "ca", ServiceUID: "s2", NodeUID: "n2"} // CA, UID of the Service, UID of the Node
	deleted := func(p *v1.Pod, seconds int64) *v1.Pod {
		p = p.DeepCopy()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(5, 0)}, &seconds
		return p
	}
	for _, test := range []struct {
		name           string
		snapshots      []apiserver.Snapshot[*v1.Pod]
		want           string // the desired pods, as podNames returns them
		isOtherCluster bool
	}{
		{"deleted by a watch", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(1, one, a)}, "a", false},
		{"deleted by a list", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, one, a)}, "a", false},
		{"Node replaced", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca", ServiceUID: "s1", NodeUID: "n2"}, a)}, "a", false},
		{"Service replaced", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca", ServiceUID: "s2", NodeUID: "n1"}, a)}, "a", false},
		{"empty cluster", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca"})}, "a b", true},
		{"empty cluster, then with a pod that a watch deletes", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca"}), podSnapshot(3, two, c), podSnapshot(3, two)}, "a b c:30s", true},
		{"other cluster deletes its pod by a list", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, c), podSnapshot(3, two)}, "a b c:30s", true},
		{"other cluster deletes its pod with a grace period", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, c), podSnapshot(2, two, deleted(c, 7)), podSnapshot(2, two)}, "a b c:7s", true},
		{"other cluster lists a pod and deletes it", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, b), podSnapshot(2, two)}, "a b:30s", true},
		{"other cluster creates a pod with the same name", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(2, two), podSnapshot(3, two, c)}, "a c", true},
		{"third cluster", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(3, apiserver.Origin{CADigest: "ca", ServiceUID: "s3", NodeUID: "n3"}, b)}, "a b c", true},
		{"back to the first cluster, without the deleted pod of the other cluster", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(2, two), podSnapshot(3, one, a)}, "a", false},
		{"other cluster", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca", ServiceUID: "s2", NodeUID: "n2"}, c)}, "c a b", true},
		{"back to the first cluster", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "ca"}), podSnapshot(3, one, a)}, "a", false},
		{"moved by the user to a cluster with another CA", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "other", ServiceUID: "s2", NodeUID: "n2"}, c)}, "c", false},
		{"CA replaced", []apiserver.Snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, apiserver.Origin{CADigest: "other", ServiceUID: "s1", NodeUID: "n1"}, b)}, "b", false},
	} {
		pods := boundPods{node: "n1", source: server.ClusterSource}
		for _, s := range test.snapshots {
			pods.update(s, time.Now())
		}
		got, want := strings.Fields(podNames(pods.desiredPods())), strings.Fields(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || pods.isOtherCluster != test.isOtherCluster {
			t.Errorf("%s: got pods %v, isOtherCluster %t; want pods %v, isOtherCluster %t", test.name, got, pods.isOtherCluster, want, test.isOtherCluster)
		}
	}
}

// TestBoundPods_Reused checks that boundPods keeps the desired pod if only status fields change that
// podd writes, and replaces it after any other change. boundPods must ignore mirror pods.
func TestBoundPods_Reused(t *testing.T) {
	pods := boundPods{node: "n1", source: server.ClusterSource}
	mirror := newPodWithUID("mirror")
	mirror.Annotations = map[string]string{manifest.AnnotationConfigMirror: "x"}
	pods.update(podSnapshot(1, apiserver.Origin{}, newPodWithUID("a"), mirror), time.Unix(100, 0))
	first := pods.desiredPods()
	if podNames(first) != "a" {
		t.Fatalf("with a mirror pod: got pods %q, want \"a\"", podNames(first))
	}
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		isKept bool
	}{
		"status": {func(p *v1.Pod) {
			p.ResourceVersion, p.Status.Phase = "9", v1.PodRunning
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}, true},
		"gate": {func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: "x.io/gate", Status: v1.ConditionTrue}}
		}, false},
		"label":     {func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
		"image":     {func(p *v1.Pod) { p.Spec.Containers[0].Image = "web:2" }, false},
		"deleted":   {func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)} }, false},
		"finished":  {func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, false},
		"other UID": {func(p *v1.Pod) { p.UID = "other" }, false},
	} {
		changed, pods := newPodWithUID("a"), pods
		test.change(changed)
		pods.update(podSnapshot(1, apiserver.Origin{}, changed), time.Unix(200, 0))
		now := pods.desiredPods()
		if (now[0] == first[0]) != test.isKept {
			t.Errorf("%s: got desired pod kept %t, want %t", name, now[0] == first[0], test.isKept)
		}
		isSeenTimeKept := now[0].Object.Annotations[manifest.AnnotationConfigSeen] == first[0].Object.Annotations[manifest.AnnotationConfigSeen]
		if want := name != "other UID"; isSeenTimeKept != want {
			t.Errorf("%s: got annotation %s kept %t, want %t", name, manifest.AnnotationConfigSeen, isSeenTimeKept, want)
		}
	}
}

// runSource starts a node with pod a and a Source. The Source stores its origin in the file with the
// given path. runSource calls test with a function that returns the last batch of the Source.
func runSource(t *testing.T, path string, test func(*testNode, func() *manifest.Batch)) {
	runNode(t, func(l *testNode, o *Options) { o.OriginFile = path; l.fakeAPI.putPod(newPodWithUID("a"), "ADDED") }, func(l *testNode) {
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
		if first == nil || !first.IsComplete || podNames(first.Pods) != "a" || first.Node.Labels[v1.LabelHostname] != "n1" {
			t.Fatalf("first batch: got %+v, want a complete batch with pod a and the labels of n1", first)
		}
		l.change(func() { p := newPodWithUID("a"); p.Status.Phase = v1.PodRunning; l.putPod(p, "MODIFIED") })
		if last() != first {
			t.Error("after a change of only the pod status: got a new batch, want none")
		}
		l.change(func() { n := l.node.DeepCopy(); n.Labels["x"] = "y"; l.putNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["x"] != "y" || b.Pods[0] != first.Pods[0] {
			t.Errorf("after a change of a Node label: got batch %+v, want the new label and the unchanged pod", b)
		}
		l.change(func() {
			p := newPodWithUID("a")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(5))
			l.putPod(p, "MODIFIED")
		})
		b := last()
		if deletions, _ := l.cluster.deletions.Get(); b.Pods[0].Deletion == nil || len(deletions) != 1 || deletions["uid-a"] != b.Version {
			t.Errorf("pod a being deleted: got batch %+v, deletions %v; want the deletion of pod a with the version of this batch", b, deletions)
		}
		l.change(func() { l.putPod(newPodWithUID("b"), "ADDED"); l.putPod(newPodWithUID("a"), "DELETED") })
		if b := last(); podNames(b.Pods) != "b" {
			t.Errorf("after pod b replaced pod a: got pods %q, want \"b\"", podNames(b.Pods))
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
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
		})
		l.advance(time.Minute)
		b := last()
		if b.IsComplete || podNames(b.Pods) != "a" || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Message, path) {
			t.Errorf("data lost: got batch %+v, want an incomplete batch with pod a, and one problem that contains %q", b, path)
		}
		l.change(func() {
			l.interruptWatches()
			l.service, l.version = "s1", l.version+1
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
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
			p := newPodWithUID(name)
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
		if b := last(); b.Node.Labels["tier"] != "core" || podNames(b.Pods) != "a b c" {
			t.Errorf("Node changed to tier=core, but not reported by its watch: got labels %v, pods %q; want the label tier=core, pods \"a b c\"", b.Node.Labels, podNames(b.Pods))
		}
		before = nodeReads()
		l.change(func() { l.putPod(newCorePod("d"), "ADDED"); l.putPod(newPodWithUID("a"), "DELETED") })
		if b := last(); b.Node.Labels["tier"] != "core" || podNames(b.Pods) != "b c d" || nodeReads() != before {
			t.Errorf("next pod that selects tier=core: got labels %v, pods %q, %d reads of the Node; want the label tier=core, pods \"b c d\", no reads", b.Node.Labels, podNames(b.Pods), nodeReads()-before)
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
			if b := last(); b == nil || !b.IsComplete || podNames(b.Pods) != "a" {
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
