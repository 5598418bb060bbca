package kube

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
)

// Usage measures what pods and the node use. It must be safe for concurrent use.
type Usage interface {
	Usage(ctx context.Context) (*server.Usage, error)
}

// containerMetrics is what one container uses.
type containerMetrics struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}

// nodeMetrics and podMetrics are NodeMetrics and PodMetrics of
// metrics.k8s.io/v1beta1.
type nodeMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time     `json:"timestamp"`
	Window            metav1.Duration `json:"window"` // zero: the last seconds
	Usage             v1.ResourceList `json:"usage"`
}

type podMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time        `json:"timestamp"`
	Window            metav1.Duration    `json:"window"`
	Containers        []containerMetrics `json:"containers"`
}

// DeepCopyObject implements runtime.Object. What a sample has never changes.
func (m *nodeMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// DeepCopyObject implements runtime.Object. What a sample has never changes.
func (m *podMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// measure makes the items of what is used.
type measure func(*server.Usage, *server.View) []item

func measured() []*resource {
	const group, version = "metrics.k8s.io", "v1beta1"
	return []*resource{
		{group: group, version: version, name: "nodes", kind: "NodeMetrics", singular: "node", verbs: asks, goType: typed[nodeMetrics](), measure: usedByNode},
		{group: group, version: version, name: "pods", kind: "PodMetrics", singular: "pod", namespaced: true, verbs: asks, goType: typed[podMetrics](), measure: usedByPods},
	}
}

// measured are the entries of what is measured now.
func (a *API) measured(ctx context.Context, res *resource) ([]*entry, uint64, error) {
	used, err := a.Usage.Usage(ctx)
	if err != nil {
		return nil, 0, err
	}
	rev := uint64(used.At.UnixMicro())
	var all []*entry
	for _, i := range res.measure(used, a.State.View()) {
		all = append(all, res.entry(i, rev))
	}
	return all, rev, nil
}

func usedByNode(u *server.Usage, v *server.View) []item {
	amounts := amountsOf(u.Node)
	if amounts == nil {
		return nil
	}
	at := metav1.NewTime(u.At)
	m := &nodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: v.Node, CreationTimestamp: at}, Timestamp: at, Usage: amounts}
	if v.Machine != nil {
		m.Labels = v.Machine.Labels
	}
	return []item{{server.Key{Name: v.Node}, m}}
}

// usedByPods are in the order of the View's pods.
func usedByPods(u *server.Usage, v *server.View) []item {
	var all []item
	at := metav1.NewTime(u.At)
	for _, p := range v.Pods {
		used, measured := u.Pods[p.Key()]
		if !measured {
			continue
		}
		m := &podMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Pod.Namespace, Name: p.Pod.Name, Labels: p.Pod.Labels, CreationTimestamp: at},
			Timestamp:  at, Containers: []containerMetrics{},
		}
		for _, name := range slices.Sorted(maps.Keys(used.Containers)) {
			if amounts := amountsOf(used.Containers[name]); amounts != nil {
				m.Containers = append(m.Containers, containerMetrics{name, amounts})
			}
		}
		all = append(all, item{p.Key(), m})
	}
	return all
}

// amountsOf is nil while the processor time a second is not known yet.
func amountsOf(a server.Amounts) v1.ResourceList {
	if a.NanoCores == nil {
		return nil
	}
	return v1.ResourceList{
		v1.ResourceCPU:    *quantity.NewScaledQuantity(int64(*a.NanoCores), quantity.Nano),
		v1.ResourceMemory: *quantity.NewQuantity(int64(a.WorkingSet), quantity.BinarySI),
	}
}
