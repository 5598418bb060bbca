package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
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

// seenPods is what a cluster has after so many lists.
func seenPods(anew int, of origin, pods ...*v1.Pod) snapshot[*v1.Pod] {
	items := map[types.NamespacedName]*v1.Pod{}
	for _, p := range pods {
		items[keyOf(p)] = p
	}
	return snapshot[*v1.Pod]{items, anew, of}
}

func withUID(name string) *v1.Pod {
	p := bound(name, "web:1")
	p.UID = types.UID("uid-" + name)
	return p
}

func names(all []*manifest.Pod) string {
	var names []string
	for _, p := range all {
		if name := p.Key.Name; p.Deletion != nil {
			names = append(names, name+":"+p.Deletion.Grace.String())
		} else {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// A list without a pod ends it where the list is of the cluster that had the pod;
// what a watch told the end of has ended.
func TestBound(t *testing.T) {
	a, b, c := withUID("a"), withUID("b"), withUID("c")
	one, two := origin{"ca", "s1", "n1"}, origin{"ca", "s2", "n2"}
	deleted := func(p *v1.Pod, seconds int64) *v1.Pod {
		p = p.DeepCopy()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(5, 0)}, &seconds
		return p
	}
	for _, test := range []struct {
		note    string
		seen    []snapshot[*v1.Pod]
		want    string
		strange bool
	}{
		{"a watch ends a pod", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(1, one, a)}, "a", false},
		{"a list ends a pod", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, one, a)}, "a", false},
		{"the node was made anew", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "s1", "n2"}, a)}, "a", false},
		{"the Service was made anew", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "s2", "n1"}, a)}, "a", false},
		{"empty", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "", ""})}, "a b", true},
		{"empty, then made anew", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "", ""}), seenPods(3, two, c), seenPods(3, two)}, "a b c:30s", true},
		{"it ends its own by a list", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, two, c), seenPods(3, two)}, "a b c:30s", true},
		{"with the grace it gave", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, two, c), seenPods(2, two, deleted(c, 7)), seenPods(2, two)}, "a b c:7s", true},
		{"it knows one of them, and ends it", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, two, b), seenPods(2, two)}, "a b:30s", true},
		{"another of that name", []snapshot[*v1.Pod]{seenPods(1, one, a), seenPods(2, two, c), seenPods(2, two), seenPods(3, two, c)}, "a c", true},
		{"a third cluster's", []snapshot[*v1.Pod]{seenPods(1, one, a), seenPods(2, two, c), seenPods(3, origin{"ca", "s3", "n3"}, b)}, "a b c", true},
		{"the first is back, and what had ended has", []snapshot[*v1.Pod]{seenPods(1, one, a), seenPods(2, two, c), seenPods(2, two), seenPods(3, one, a)}, "a", false},
		{"another cluster's", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "s2", "n2"}, c)}, "c a b", true},
		{"back again", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"ca", "", ""}), seenPods(3, one, a)}, "a", false},
		{"moved by the user", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"other", "s2", "n2"}, c)}, "c", false},
		{"the authority was replaced", []snapshot[*v1.Pod]{seenPods(1, one, a, b), seenPods(2, origin{"other", "s1", "n1"}, b)}, "b", false},
	} {
		pods := boundPods{node: "n1", source: server.ClusterSource}
		for _, s := range test.seen {
			pods.update(s, time.Now())
		}
		got, want := strings.Fields(names(pods.list())), strings.Fields(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || pods.isOtherCluster != test.strange {
			t.Errorf("%s: got %v, strange %v; want %v, %v", test.note, got, pods.isOtherCluster, want, test.strange)
		}
	}
}

// What podd itself says of a pod is no news of it; mirror pods are none.
func TestBoundKeeps(t *testing.T) {
	pods := boundPods{node: "n1", source: server.ClusterSource}
	mirror := withUID("mirror")
	mirror.Annotations = map[string]string{manifest.AnnotationConfigMirror: "x"}
	pods.update(seenPods(1, origin{}, withUID("a"), mirror), time.Unix(100, 0))
	first := pods.list()
	if names(first) != "a" {
		t.Fatalf("got %s", names(first))
	}
	for note, test := range map[string]struct {
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
		"label":    {func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
		"image":    {func(p *v1.Pod) { p.Spec.Containers[0].Image = "web:2" }, false},
		"deleted":  {func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)} }, false},
		"finished": {func(p *v1.Pod) { p.Status.Phase = v1.PodFailed }, false},
		"another":  {func(p *v1.Pod) { p.UID = "other" }, false},
	} {
		is, pods := withUID("a"), pods
		test.change(is)
		pods.update(seenPods(1, origin{}, is), time.Unix(200, 0))
		now := pods.list()
		if (now[0] == first[0]) != test.same {
			t.Errorf("%s: kept %v", note, now[0] == first[0])
		}
		seen := now[0].Spec.Annotations[manifest.AnnotationConfigSeen] == first[0].Spec.Annotations[manifest.AnnotationConfigSeen]
		if seen != (note != "another") {
			t.Errorf("%s: seen first at %v", note, now[0].Spec.Annotations)
		}
	}
}

// sourced runs a test with what the source emitted last.
func sourced(t *testing.T, path string, test func(*life, func() *manifest.Batch)) {
	alone(t, func(l *life, o *Options) { o.Origin = path; l.fakeAPI.putPod(withUID("a"), "ADDED") }, func(l *life) {
		var last *manifest.Batch
		ctx, cancel := context.WithCancel(l.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := l.cluster.Source().Run(ctx, func(b manifest.Batch) {
				last = &b
				if of, err := readOrigin(path); of == (origin{}) || err != nil {
					t.Errorf("pods may begin whose cluster is not remembered: %v", err)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}()
		l.after(0)
		test(l, func() *manifest.Batch { synctest.Wait(); return last })
		cancel()
		<-done
	})
}

func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	sourced(t, path, func(l *life, last func() *manifest.Batch) {
		first := last()
		if first == nil || !first.Complete || names(first.Pods) != "a" || first.Node.Labels[v1.LabelHostname] != "n1" {
			t.Fatalf("first: got %+v", first)
		}
		l.with(func() { p := withUID("a"); p.Status.Phase = v1.PodRunning; l.putPod(p, "MODIFIED") })
		if last() != first {
			t.Error("a status is news")
		}
		l.with(func() { n := l.node.DeepCopy(); n.Labels["x"] = "y"; l.put(n, "MODIFIED") })
		if b := last(); b.Node.Labels["x"] != "y" || b.Pods[0] != first.Pods[0] {
			t.Errorf("a label: got %+v", b)
		}
		l.with(func() {
			p := withUID("a")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(5))
			l.putPod(p, "MODIFIED")
		})
		b := last()
		if ending, _ := l.cluster.deletions.get(); b.Pods[0].Deletion == nil || len(ending) != 1 || ending["uid-a"] != b.Version {
			t.Errorf("deleted: got %+v, ending %v", b, ending)
		}
		l.with(func() { l.putPod(withUID("b"), "ADDED"); l.putPod(withUID("a"), "DELETED") })
		if b := last(); names(b.Pods) != "b" {
			t.Errorf("gone: got %s", names(b.Pods))
		}
	})
	// Another life finds the same names in a cluster that was made anew.
	sourced(t, path, func(l *life, last func() *manifest.Batch) {
		if b := last(); !b.Complete {
			t.Errorf("the same cluster: got %+v", b)
		}
		l.with(func() {
			l.cut()
			l.service, l.node, l.pods = "s2", nil, nil
			l.version++
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
		})
		l.after(time.Minute)
		b := last()
		if b.Complete || names(b.Pods) != "a" || len(b.Problems) != 1 || !strings.Contains(b.Problems[0].Message, path) {
			t.Errorf("another cluster: got %+v", b)
		}
		l.with(func() {
			l.cut()
			l.service, l.version = "s1", l.version+1
			l.changed = map[string]int{"pods": l.version, "nodes": l.version}
		})
		l.after(time.Minute)
		if b := last(); !b.Complete || len(b.Pods)+len(b.Problems) > 0 {
			t.Errorf("it is back without a pod: got %+v", b)
		}
	})
}

// What is broken of what was remembered keeps nobody from being told of pods.
func TestSourceForgot(t *testing.T) {
	for note, text := range map[string]string{"cut short": `{"authority":`, "empty": "", "of another kind": "[1]"} {
		path := filepath.Join(t.TempDir(), "cluster.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sourced(t, path, func(l *life, last func() *manifest.Batch) {
			if b := last(); b == nil || !b.Complete || names(b.Pods) != "a" {
				t.Errorf("%s: got %+v", note, b)
			}
		})
		if of, err := readOrigin(path); of.Service == "" || err != nil {
			t.Errorf("%s: afterwards %v, %v", note, of, err)
		}
	}
}

// A cluster that cannot be reached says nothing of its pods.
func TestSourceOfNobody(t *testing.T) {
	c := New(Options{Node: "n1", Origin: filepath.Join(t.TempDir(), "cluster.json")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Source().Run(ctx, func(b manifest.Batch) { t.Errorf("emitted %+v", b) }); err != nil {
		t.Error(err)
	}
	if o := (origin{"a", "b", "c"}); o.write(c.o.Origin) != nil {
		t.Error("not remembered")
	} else if got, err := readOrigin(c.o.Origin); got != o || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
