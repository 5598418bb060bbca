package boundpods

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
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

// TestBoundPods_Deleted checks pods that disappear from the snapshot. A pod that is missing in a new
// list must be deleted only if the list comes from the cluster that has bound the pod. A pod whose
// deletion a watch reports must always be deleted.
func TestBoundPods_Deleted(t *testing.T) {
	a, b, c := clustertest.NewPodWithUID("a"), clustertest.NewPodWithUID("b"), clustertest.NewPodWithUID("c")
	one, two := apiserver.Origin{CADigest: "ca", ServiceUID: "s1", NodeUID: "n1"}, apiserver.Origin{CADigest: "ca", ServiceUID: "s2", NodeUID: "n2"}
	deleted := func(p *v1.Pod, seconds int64) *v1.Pod {
		p = p.DeepCopy()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(5, 0)}, &seconds
		return p
	}
	for _, test := range []struct {
		name           string
		snapshots      []apiserver.Snapshot[*v1.Pod]
		want           string // the desired pods, as clustertest.PodNames returns them
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
		got, want := strings.Fields(clustertest.PodNames(pods.desiredPods())), strings.Fields(test.want)
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
	mirror := clustertest.NewPodWithUID("mirror")
	mirror.Annotations = map[string]string{manifest.AnnotationConfigMirror: "x"}
	pods.update(podSnapshot(1, apiserver.Origin{}, clustertest.NewPodWithUID("a"), mirror), time.Unix(100, 0))
	first := pods.desiredPods()
	if clustertest.PodNames(first) != "a" {
		t.Fatalf("with a mirror pod: got pods %q, want \"a\"", clustertest.PodNames(first))
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
		changed, pods := clustertest.NewPodWithUID("a"), pods
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
