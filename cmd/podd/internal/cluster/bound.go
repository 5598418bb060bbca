package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
)

// boundPods contains the pods bound to the node. Its methods decide on values alone.
type boundPods struct {
	node, source string
	cached       snapshot[*v1.Pod] // the snapshot that pods was made from
	pods         map[types.NamespacedName]boundPod
	// missing contains pods that the last list lacks, which does not prove that they are
	// deleted.
	missing map[types.NamespacedName]boundPod
	// deleted contains pods that another cluster than that of pods had listed, and lists no
	// more.
	deleted        []boundPod
	origin         origin // of the pods
	listed         origin // of the last list
	isOtherCluster bool   // the last list was that of another cluster
}

// maxDeleted limits the deleted pods, because boundPods does not learn when they have
// stopped. A node runs fewer pods.
const maxDeleted = 1000

// A boundPod is a pod of the API server and the pod to run.
type boundPod struct {
	read *v1.Pod
	made *manifest.Pod
}

// update applies a snapshot. A pod is deleted if a watch reported it, or if a list of the
// same cluster lacks it. While the lists come from another cluster, absence from a list
// does not delete a pod, but the pods of that other cluster are still tracked.
func (b *boundPods) update(seen snapshot[*v1.Pod], now time.Time) {
	next := map[types.NamespacedName]boundPod{}
	for key, p := range seen.items {
		if isMirror(p) {
			continue
		}
		if pod := b.pod(key, p, now); pod.made != nil {
			next[key] = pod
		}
	}
	if seen.lists != b.cached.lists {
		b.compareOrigin(seen.origin, next)
	}
	for key := range b.missing {
		if _, there := next[key]; there {
			delete(b.missing, key)
		}
	}
	b.updateDeleted(next, now)
	b.cached, b.pods = seen, next
}

// updateDeleted remembers pods that were there before next and that are not missing.
func (b *boundPods) updateDeleted(next map[types.NamespacedName]boundPod, now time.Time) {
	if !b.isOtherCluster {
		b.deleted = nil
		return
	}
	b.deleted = slices.DeleteFunc(b.deleted, func(p boundPod) bool { _, again := next[p.made.Key]; return again })
	for key, p := range b.pods {
		_, there := next[key]
		if _, missing := b.missing[key]; there || missing {
			continue
		}
		if p.made.Deletion == nil {
			read := p.read.DeepCopy()
			read.DeletionTimestamp = &metav1.Time{Time: now}
			p.made = b.make(read, now)
		}
		b.deleted = append(b.deleted, p)
	}
	b.deleted = b.deleted[max(0, len(b.deleted)-maxDeleted):]
}

// compareOrigin compares the cluster of a new list, which contains next, with that of the
// pods.
func (b *boundPods) compareOrigin(of origin, next map[types.NamespacedName]boundPod) {
	b.isOtherCluster = !of.sameAs(b.origin) && !of.hasMoved(b.origin)
	again := b.listed.Service+b.listed.Node != "" && of.sameAs(b.listed)
	b.listed = of
	if !b.isOtherCluster {
		b.missing, b.origin = nil, of
		return
	}
	if again { // the other cluster has already listed pods
		return
	}
	missing := maps.Clone(b.pods)
	maps.Copy(missing, b.missing)
	maps.DeleteFunc(missing, func(key types.NamespacedName, _ boundPod) bool { _, there := next[key]; return there })
	b.missing = missing
}

// pod returns the pod to run. It reuses the previous one if nothing that matters has
// changed, because most changes are podd's own status updates.
func (b *boundPods) pod(key types.NamespacedName, p *v1.Pod, now time.Time) boundPod {
	before, known := b.pods[key]
	if !known {
		before, known = b.missing[key]
	}
	known = known && before.read.UID == p.UID
	if known && sameForRunning(before.read, p) {
		return boundPod{p, before.made}
	}
	if known {
		if at, err := time.Parse(time.RFC3339Nano, before.made.Spec.Annotations[manifest.AnnotationConfigSeen]); err == nil {
			now = at
		}
	}
	return boundPod{p, b.make(p, now)}
}

func (b *boundPods) make(p *v1.Pod, now time.Time) *manifest.Pod {
	return decode.FromAPI(p, decode.Options{Kind: manifest.KindAPI, Source: b.source, Path: b.source, Node: b.node, Now: now})
}

// sameForRunning reports whether everything but the node's own part of the status is
// equal.
func sameForRunning(a, b *v1.Pod) bool {
	return a == b || terminal(a) == terminal(b) && a.Generation == b.Generation &&
		equality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		equality.Semantic.DeepEqual(foreignConditions(a), foreignConditions(b)) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func terminal(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// foreignConditions returns the conditions that no kubelet writes.
func foreignConditions(p *v1.Pod) []v1.PodCondition {
	return slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c v1.PodCondition) bool {
		switch c.Type {
		case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers, v1.PodResizePending, v1.PodResizeInProgress:
			return true
		}
		return false
	})
}

// list returns all pods, the oldest first, which is the order of admission in a kubelet.
func (b *boundPods) list() []*manifest.Pod {
	all := make([]*manifest.Pod, 0, len(b.pods)+len(b.missing)+len(b.deleted))
	for _, m := range []map[types.NamespacedName]boundPod{b.pods, b.missing} {
		for _, p := range m {
			all = append(all, p.made)
		}
	}
	for _, p := range b.deleted {
		all = append(all, p.made)
	}
	slices.SortFunc(all, func(a, b *manifest.Pod) int {
		return cmp.Or(a.Spec.CreationTimestamp.Compare(b.Spec.CreationTimestamp.Time), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return all
}
