package boundpods

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/mirror"
	"podd/manifest"
	"podd/manifest/decode"
)

// boundPods contains the pods bound to the node. Its methods perform no I/O.
type boundPods struct {
	node, source string
	lastSnapshot apiserver.Snapshot[*v1.Pod] // the last snapshot that update applied
	pods         map[types.NamespacedName]boundPod
	// missing contains pods that run on this node and that the last list does not contain. podd keeps
	// them running, because the list came from a cluster other than origin.
	missing map[types.NamespacedName]boundPod
	// deleted contains pods that a cluster other than origin has listed and then deleted. These
	// pods are still desired, but are marked as being deleted. It is nil if isOtherCluster is
	// false.
	deleted        []boundPod
	origin         apiserver.Origin // the cluster of the pods in the fields pods and missing
	listOrigin     apiserver.Origin // the cluster that the last list came from
	isOtherCluster bool             // listOrigin and origin are different clusters
}

// maxDeleted limits the length of boundPods.deleted, because boundPods is not notified when these
// pods have stopped. The limit exceeds the number of pods on a node.
const maxDeleted = 1000

// A boundPod is a pod in the API server and the desired pod that was decoded from it.
type boundPod struct {
	object  *v1.Pod
	desired *manifest.Pod
}

// update replaces the pods by the pods of the snapshot s. It drops a pod if a watch has reported
// the deletion of the pod, or if a list of the same cluster does not contain the pod. A list of
// another cluster adds the pods of that cluster and drops no pod.
func (b *boundPods) update(s apiserver.Snapshot[*v1.Pod], now time.Time) {
	next := map[types.NamespacedName]boundPod{}
	for key, p := range s.Items {
		if mirror.IsMirror(p) {
			continue
		}
		if pod := b.decodeOrReuse(key, p, now); pod.desired != nil {
			next[key] = pod
		}
	}
	if s.ListCount != b.lastSnapshot.ListCount {
		b.updateOrigin(s.Origin, next)
	}
	for key := range b.missing {
		if _, exists := next[key]; exists {
			delete(b.missing, key)
		}
	}
	b.updateDeleted(next, now)
	b.lastSnapshot, b.pods = s, next
}

// updateDeleted updates the field deleted. The parameter next contains the pods of the new
// snapshot, and b.pods contains the pods of the previous snapshot. If isOtherCluster is false,
// updateDeleted clears the field. Otherwise it removes each pod that is in next. It then adds each
// pod in b.pods that is neither in next nor in b.missing, and marks the added pod as being deleted.
func (b *boundPods) updateDeleted(next map[types.NamespacedName]boundPod, now time.Time) {
	if !b.isOtherCluster {
		b.deleted = nil
		return
	}
	b.deleted = slices.DeleteFunc(b.deleted, func(p boundPod) bool { _, isListed := next[p.desired.Key]; return isListed })
	for key, p := range b.pods {
		_, isListed := next[key]
		if _, isMissing := b.missing[key]; isListed || isMissing {
			continue
		}
		if p.desired.Deletion == nil {
			object := p.object.DeepCopy()
			object.DeletionTimestamp = &metav1.Time{Time: now}
			p.desired = b.decode(object, now)
		}
		b.deleted = append(b.deleted, p)
	}
	b.deleted = b.deleted[max(0, len(b.deleted)-maxDeleted):]
}

// updateOrigin compares the origin of a new list with the origin of the pods in b. o is the origin
// of the new list, and next contains the pods of this list. updateOrigin updates isOtherCluster,
// origin, listOrigin and missing.
func (b *boundPods) updateOrigin(o apiserver.Origin, next map[types.NamespacedName]boundPod) {
	b.isOtherCluster = !o.IsSameCluster(b.origin) && !o.HasMoved(b.origin)
	isSameListOrigin := b.listOrigin.ServiceUID+b.listOrigin.NodeUID != "" && o.IsSameCluster(b.listOrigin)
	b.listOrigin = o
	if !b.isOtherCluster {
		b.missing, b.origin = nil, o
		return
	}
	if isSameListOrigin { // the field missing is up to date, because the previous list came from the same cluster
		return
	}
	missing := maps.Clone(b.pods)
	maps.Copy(missing, b.missing)
	maps.DeleteFunc(missing, func(key types.NamespacedName, _ boundPod) bool { _, isListed := next[key]; return isListed })
	b.missing = missing
}

// decodeOrReuse returns the boundPod of p. It reuses the desired pod that was decoded from the
// previous version if no change since that version affects how the pod runs. This saves decoding,
// because most changes are podd's own status updates.
func (b *boundPods) decodeOrReuse(key types.NamespacedName, p *v1.Pod, now time.Time) boundPod {
	previous, exists := b.pods[key]
	if !exists {
		previous, exists = b.missing[key]
	}
	exists = exists && previous.object.UID == p.UID
	if exists && isEquivalent(previous.object, p) {
		return boundPod{p, previous.desired}
	}
	if exists {
		if at, err := time.Parse(time.RFC3339Nano, previous.desired.Object.Annotations[manifest.AnnotationConfigSeen]); err == nil {
			now = at
		}
	}
	return boundPod{p, b.decode(p, now)}
}

// decode returns the desired pod for p, or nil if p must not run on this node.
func (b *boundPods) decode(p *v1.Pod, now time.Time) *manifest.Pod {
	return decode.FromAPI(p, decode.Options{Kind: manifest.KindAPI, Source: b.source, Path: b.source, NodeName: b.node, Now: now})
}

// isEquivalent reports whether two versions of a pod are equal apart from the fields of the
// status that the node writes.
func isEquivalent(a, b *v1.Pod) bool {
	return a == b || manifest.IsTerminal(a.Status.Phase) == manifest.IsTerminal(b.Status.Phase) && a.Generation == b.Generation &&
		equality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		equality.Semantic.DeepEqual(externalConditions(a), externalConditions(b)) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// externalConditions returns the conditions of p that clients other than the kubelet write.
func externalConditions(p *v1.Pod) []v1.PodCondition {
	return slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c v1.PodCondition) bool {
		switch c.Type {
		case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers, v1.PodResizePending, v1.PodResizeInProgress:
			return true
		}
		return false
	})
}

// desiredPods returns all pods that must run, including missing and deleted pods, in the order of
// their creation. The kubelet admits pods in the same order.
func (b *boundPods) desiredPods() []*manifest.Pod {
	pods := make([]*manifest.Pod, 0, len(b.pods)+len(b.missing)+len(b.deleted))
	for _, m := range []map[types.NamespacedName]boundPod{b.pods, b.missing} {
		for _, p := range m {
			pods = append(pods, p.desired)
		}
	}
	for _, p := range b.deleted {
		pods = append(pods, p.desired)
	}
	slices.SortFunc(pods, func(a, b *manifest.Pod) int {
		return cmp.Or(a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return pods
}
