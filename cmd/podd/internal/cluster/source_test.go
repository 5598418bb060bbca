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

	"podd/manifest"
	"podd/server"
)

// podSnapshot returns a snapshot of pods.
func podSnapshot(lists int, from origin, pods ...*v1.Pod) snapshot[*v1.Pod] {
	items := map[types.NamespacedName]*v1.Pod{}
	for _, p := range pods {
		items[objectKey(p)] = p
	}
	return snapshot[*v1.Pod]{items, lists, from}
}

// newPodWithUID returns a pod with a UID that contains its name.
func newPodWithUID(name string) *v1.Pod {
	p := newBoundPod(name, "web:1")
	p.UID = types.UID("uid-" + name)
	return p
}

// names returns the names of pods. For a deleted pod, ":" and its grace period follow.
func names(all []*manifest.Pod) string {
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

// TestBoundPods_Deleted checks that a list without a pod deletes the pod only if the list comes
// from the cluster that has bound the pod. A watch must always delete the pod.
func TestBoundPods_Deleted(t *testing.T) {
	a, b, c := newPodWithUID("a"), newPodWithUID("b"), newPodWithUID("c")
	one, two := origin{"ca", "s1", "n1"}, origin{"ca", "s2", "n2"}
	deleted := func(p *v1.Pod, seconds int64) *v1.Pod {
		p = p.DeepCopy()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(5, 0)}, &seconds
		return p
	}
	for _, test := range []struct {
		name           string
		snapshots      []snapshot[*v1.Pod]
		want           string
		isOtherCluster bool
	}{
		{"deleted by a watch", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(1, one, a)}, "a", false},
		{"deleted by a list", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, one, a)}, "a", false},
		{"Node replaced", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "s1", "n2"}, a)}, "a", false},
		{"Service replaced", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "s2", "n1"}, a)}, "a", false},
		{"empty cluster", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "", ""})}, "a b", true},
		{"empty cluster, then with a pod that a watch deletes", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "", ""}), podSnapshot(3, two, c), podSnapshot(3, two)}, "a b c:30s", true},
		{"other cluster deletes its pod by a list", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, c), podSnapshot(3, two)}, "a b c:30s", true},
		{"other cluster deletes its pod with a grace period", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, c), podSnapshot(2, two, deleted(c, 7)), podSnapshot(2, two)}, "a b c:7s", true},
		{"other cluster lists a pod and deletes it", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, two, b), podSnapshot(2, two)}, "a b:30s", true},
		{"other cluster creates a pod with the same name", []snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(2, two), podSnapshot(3, two, c)}, "a c", true},
		{"third cluster", []snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(3, origin{"ca", "s3", "n3"}, b)}, "a b c", true},
		{"back to the first cluster, deleted pods are gone", []snapshot[*v1.Pod]{podSnapshot(1, one, a), podSnapshot(2, two, c), podSnapshot(2, two), podSnapshot(3, one, a)}, "a", false},
		{"other cluster", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "s2", "n2"}, c)}, "c a b", true},
		{"back to the first cluster", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"ca", "", ""}), podSnapshot(3, one, a)}, "a", false},
		{"moved by the user to a cluster with another CA", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"other", "s2", "n2"}, c)}, "c", false},
		{"CA replaced", []snapshot[*v1.Pod]{podSnapshot(1, one, a, b), podSnapshot(2, origin{"other", "s1", "n1"}, b)}, "b", false},
	} {
		pods := boundPods{node: "n1", source: server.ClusterSource}
		for _, s := range test.snapshots {
			pods.update(s, time.Now())
		}
		got, want := strings.Fields(names(pods.desiredPods())), strings.Fields(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || pods.isOtherCluster != test.isOtherCluster {
			t.Errorf("%s: got %v, other cluster %v; want %v, %v", test.name, got, pods.isOtherCluster, want, test.isOtherCluster)
		}
	}
}

// TestBoundPods_Reused checks that the desired pod is reused after changes of the status that podd
// writes, and that mirror pods are ignored.
func TestBoundPods_Reused(t *testing.T) {
	pods := boundPods{node: "n1", source: server.ClusterSource}
	mirror := newPodWithUID("mirror")
	mirror.Annotations = map[string]string{manifest.AnnotationConfigMirror: "x"}
	pods.update(podSnapshot(1, origin{}, newPodWithUID("a"), mirror), time.Unix(100, 0))
	first := pods.desiredPods()
	if names(first) != "a" {
		t.Fatalf("got %s, want a", names(first))
	}
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		same   bool
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
		pods.update(podSnapshot(1, origin{}, changed), time.Unix(200, 0))
		now := pods.desiredPods()
		if (now[0] == first[0]) != test.same {
			t.Errorf("%s: got reused %v, want %v", name, now[0] == first[0], test.same)
		}
		sameSeen := now[0].Object.Annotations[manifest.AnnotationConfigSeen] == first[0].Object.Annotations[manifest.AnnotationConfigSeen]
		if sameSeen != (name != "other UID") {
			t.Errorf("%s: got annotations %v", name, now[0].Object.Annotations)
		}
	}
}

// runSource runs a test with a pod and a function that returns the last batch of the source.
func runSource(t *testing.T, path string, test func(*testNode, func() *manifest.Batch)) {
	runNode(t, func(l *testNode, o *Options) { o.OriginFile = path; l.fakeAPI.putPod(newPodWithUID("a"), "ADDED") }, func(l *testNode) {
		var last *manifest.Batch
		ctx, cancel := context.WithCancel(l.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := l.cluster.Source().Run(ctx, func(b manifest.Batch) {
				last = &b
				if stored, err := readOrigin(path); stored == (origin{}) || err != nil {
					t.Errorf("batch emitted before the origin was stored: %v", err)
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

func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
		first := last()
		if first == nil || !first.IsComplete || names(first.Pods) != "a" || first.Node.Labels[v1.LabelHostname] != "n1" {
			t.Fatalf("first batch: got %+v, want a complete batch with pod a and the labels of n1", first)
		}
		l.change(func() { p := newPodWithUID("a"); p.Status.Phase = v1.PodRunning; l.putPod(p, "MODIFIED") })
		if last() != first {
			t.Error("after an update of only the pod status: got a new batch, want none")
		}
		l.change(func() { n := l.node.DeepCopy(); n.Labels["x"] = "y"; l.putNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["x"] != "y" || b.Pods[0] != first.Pods[0] {
			t.Errorf("new node label: got %+v, want the new label and the unchanged pod", b)
		}
		l.change(func() {
			p := newPodWithUID("a")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(5))
			l.putPod(p, "MODIFIED")
		})
		b := last()
		if deletions, _ := l.cluster.deletions.get(); b.Pods[0].Deletion == nil || len(deletions) != 1 || deletions["uid-a"] != b.Version {
			t.Errorf("deleted: got %+v, deletions %v; want the deletion of pod a in this batch", b, deletions)
		}
		l.change(func() { l.putPod(newPodWithUID("b"), "ADDED"); l.putPod(newPodWithUID("a"), "DELETED") })
		if b := last(); names(b.Pods) != "b" {
			t.Errorf("replaced: got %s, want b", names(b.Pods))
		}
	})
	// After a restart, the API server loses its data, and then gets its data back.
	runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
		if b := last(); !b.IsComplete {
			t.Errorf("the same cluster: got %+v, want a complete batch", b)
		}
		l.change(func() {
			l.interruptWatches()
			l.service, l.node, l.pods = "s2", nil, nil
			l.version++
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
		})
		l.advance(time.Minute)
		b := last()
		if b.IsComplete || names(b.Pods) != "a" || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Message, path) {
			t.Errorf("data lost: got %+v, want an incomplete batch with pod a and a problem", b)
		}
		l.change(func() {
			l.interruptWatches()
			l.service, l.version = "s1", l.version+1
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
		})
		l.advance(time.Minute)
		if b := last(); !b.IsComplete || len(b.Pods)+len(b.Problems) > 0 {
			t.Errorf("data back without the pod: got %+v, want a complete batch without pods and problems", b)
		}
	})
}

// TestSource_OutdatedNode checks a new pod that does not match the labels of the watched Node. The
// pod must be emitted with the labels that the Node has in the API server, because the watch of the
// Node may be later than the watch of the pods.
func TestSource_OutdatedNode(t *testing.T) {
	runSource(t, filepath.Join(t.TempDir(), "cluster.json"), func(l *testNode, last func() *manifest.Batch) {
		core := func(name string) *v1.Pod {
			p := newPodWithUID(name)
			p.Spec.NodeSelector = map[string]string{"tier": "core"}
			return p
		}
		reads := func() (n int) {
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
		before := reads()
		l.change(func() { l.putPod(core("b"), "ADDED") })
		if b := last(); b.Node.Labels["tier"] != "edge" || reads() != before+1 {
			t.Errorf("a pod for another node: got labels %v and %d reads of the Node, want tier=edge and 1 read", b.Node.Labels, reads()-before)
		}
		l.change(func() { // the Node changes, but its event does not arrive
			n := l.node.DeepCopy()
			l.version++
			n.Labels["tier"], n.ResourceVersion = "core", strconv.Itoa(l.version)
			l.node = n
			l.putPod(core("c"), "ADDED")
		})
		if b := last(); b.Node.Labels["tier"] != "core" || names(b.Pods) != "a b c" {
			t.Errorf("a pod for a label that has no event yet: got labels %v and pods %s, want tier=core and a b c", b.Node.Labels, names(b.Pods))
		}
		before = reads()
		l.change(func() { l.putPod(core("d"), "ADDED"); l.putPod(newPodWithUID("a"), "DELETED") })
		if b := last(); b.Node.Labels["tier"] != "core" || names(b.Pods) != "b c d" || reads() != before {
			t.Errorf("after the Node was read: got labels %v, pods %s and %d reads, want tier=core, b c d and no read", b.Node.Labels, names(b.Pods), reads()-before)
		}
		l.change(func() { n := l.node.DeepCopy(); n.Labels["tier"] = "lab"; l.putNode(n, "MODIFIED") })
		if b := last(); b.Node.Labels["tier"] != "lab" {
			t.Errorf("a newer event: got labels %v, want tier=lab", b.Node.Labels)
		}
	})
}

// TestSource_InvalidOrigin checks that a stored origin with invalid content does not delay pods
// and is replaced.
func TestSource_InvalidOrigin(t *testing.T) {
	for name, text := range map[string]string{"truncated": `{"authority":`, "empty": "", "another type": "[1]"} {
		path := filepath.Join(t.TempDir(), "cluster.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runSource(t, path, func(l *testNode, last func() *manifest.Batch) {
			if b := last(); b == nil || !b.IsComplete || names(b.Pods) != "a" {
				t.Errorf("%s: got %+v, want a complete batch with pod a", name, b)
			}
		})
		if stored, err := readOrigin(path); stored.ServiceUID == "" || err != nil {
			t.Errorf("%s: got stored origin %v, %v; want an origin with a Service", name, stored, err)
		}
	}
}

// TestSource_Unreachable checks that nothing is emitted without a list, and that an origin can be
// stored and read.
func TestSource_Unreachable(t *testing.T) {
	c := New(Options{NodeName: "n1", OriginFile: filepath.Join(t.TempDir(), "cluster.json")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Source().Run(ctx, func(b manifest.Batch) { t.Errorf("got batch %+v, want none", b) }); err != nil {
		t.Error(err)
	}
	if o := (origin{"a", "b", "c"}); o.write(c.o.OriginFile) != nil {
		t.Error("storing an origin failed")
	} else if got, err := readOrigin(c.o.OriginFile); got != o || err != nil {
		t.Errorf("got origin %v, %v; want %v", got, err, o)
	}
}
