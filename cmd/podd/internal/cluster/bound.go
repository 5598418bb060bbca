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
)

// boundPods are those bound to the node, as they are to run. What is decided here
// is decided on values alone.
type boundPods struct {
	node, source string
	seen         sighting[*v1.Pod] // what they are made of
	pods         map[types.NamespacedName]boundPod
	// missing are those that the last list lacked, where it proves nothing.
	missing map[types.NamespacedName]boundPod
	// ended are those that another cluster than that of the pods had, and has no more.
	ended   []boundPod
	origin  origin // of the pods
	listed  origin // of the last list
	strange bool   // the last list was another cluster's
}

// mostEnded bounds what is remembered, for nobody tells that one is gone from here; a
// node runs fewer.
const mostEnded = 1000

// boundPod is a pod as it was read and as it is to run.
type boundPod struct {
	read *v1.Pod
	made *manifest.Pod
}

// take takes what is bound now. A pod that a watch told the end of is gone; one
// that a list lacks is, too, if that is of the cluster that had it. Where not all that
// is here is known to be of that cluster, no absence tells an end, but ended does.
func (b *boundPods) take(seen sighting[*v1.Pod], now time.Time) {
	next := map[types.NamespacedName]boundPod{}
	for key, p := range seen.items {
		if isMirror(p) {
			continue
		}
		if pod := b.pod(key, p, now); pod.made != nil {
			next[key] = pod
		}
	}
	if seen.anew != b.seen.anew {
		b.judge(seen.origin, next)
	}
	for key := range b.missing {
		if _, there := next[key]; there {
			delete(b.missing, key)
		}
	}
	b.end(next, now)
	b.seen, b.pods = seen, next
}

// end keeps those that there were before next and that are not missing.
func (b *boundPods) end(next map[types.NamespacedName]boundPod, now time.Time) {
	if !b.strange {
		b.ended = nil
		return
	}
	b.ended = slices.DeleteFunc(b.ended, func(p boundPod) bool { _, again := next[p.made.Key]; return again })
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
		b.ended = append(b.ended, p)
	}
	b.ended = b.ended[max(0, len(b.ended)-mostEnded):]
}

// judge looks at a new list, which has next.
func (b *boundPods) judge(of origin, next map[types.NamespacedName]boundPod) {
	b.strange = !of.sameAs(b.origin) && !of.moved(b.origin)
	again := b.listed.Service+b.listed.Node != "" && of.sameAs(b.listed)
	b.listed = of
	if !b.strange {
		b.missing, b.origin = nil, of
		return
	}
	if again { // it lists its own
		return
	}
	missing := maps.Clone(b.pods)
	maps.Copy(missing, b.missing)
	maps.DeleteFunc(missing, func(key types.NamespacedName, _ boundPod) bool { _, there := next[key]; return there })
	b.missing = missing
}

// pod is what was made of it before where it still says the same: most changes are
// of what podd itself says of it.
func (b *boundPods) pod(key types.NamespacedName, p *v1.Pod, now time.Time) boundPod {
	before, known := b.pods[key]
	if !known {
		before, known = b.missing[key]
	}
	known = known && before.read.UID == p.UID
	if known && saysTheSame(before.read, p) {
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
	return manifest.FromAPI(p, manifest.Options{Kind: manifest.KindAPI, Source: b.source, Path: b.source, Node: b.node, Now: now})
}

// saysTheSame of what is to run: whoever runs it writes the rest.
func saysTheSame(a, b *v1.Pod) bool {
	return a == b || terminal(a) == terminal(b) && a.Generation == b.Generation &&
		equality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		equality.Semantic.DeepEqual(others(a), others(b)) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func terminal(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// others are the conditions that no node agent writes.
func others(p *v1.Pod) []v1.PodCondition {
	return slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c v1.PodCondition) bool {
		switch c.Type {
		case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers, v1.PodResizePending, v1.PodResizeInProgress:
			return true
		}
		return false
	})
}

// list has all of them, the oldest first: so a kubelet admits them.
func (b *boundPods) list() []*manifest.Pod {
	all := make([]*manifest.Pod, 0, len(b.pods)+len(b.missing)+len(b.ended))
	for _, m := range []map[types.NamespacedName]boundPod{b.pods, b.missing} {
		for _, p := range m {
			all = append(all, p.made)
		}
	}
	for _, p := range b.ended {
		all = append(all, p.made)
	}
	slices.SortFunc(all, func(a, b *manifest.Pod) int {
		return cmp.Or(a.Spec.CreationTimestamp.Compare(b.Spec.CreationTimestamp.Time), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return all
}
