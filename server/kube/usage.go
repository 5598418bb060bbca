package kube

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
)

// Usage measures what pods and the node use. It must be safe for concurrent use.
type Usage interface {
	// Usage is the newest sample, which may be as old as a few seconds. What was
	// not measured yet is not in it.
	Usage(ctx context.Context) (Sample, error)
}

// Sample is what was used over a window that ended at a time. Amounts are of cpu
// and memory.
type Sample struct {
	Time   time.Time
	Window time.Duration
	Node   v1.ResourceList
	Pods   map[server.Key][]ContainerUsage // in the order of their containers
}

// ContainerUsage is what one container used.
type ContainerUsage struct {
	Name  string          `json:"name"`
	Usage v1.ResourceList `json:"usage"`
}

// nodeMetrics and podMetrics are NodeMetrics and PodMetrics of
// metrics.k8s.io/v1beta1.
type nodeMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time     `json:"timestamp"`
	Window            metav1.Duration `json:"window"`
	Usage             v1.ResourceList `json:"usage"`
}

type podMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time      `json:"timestamp"`
	Window            metav1.Duration  `json:"window"`
	Containers        []ContainerUsage `json:"containers"`
}

// DeepCopyObject implements runtime.Object. What a sample has never changes.
func (m *nodeMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// DeepCopyObject implements runtime.Object. What a sample has never changes.
func (m *podMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// measure makes the items of a sample.
type measure func(Sample, *server.View) []item

func measured() []*resource {
	const group, version = "metrics.k8s.io", "v1beta1"
	return []*resource{
		{group: group, version: version, name: "nodes", kind: "NodeMetrics", singular: "node", verbs: asks, goType: typed[nodeMetrics](), measure: usedByNode},
		{group: group, version: version, name: "pods", kind: "PodMetrics", singular: "pod", namespaced: true, verbs: asks, goType: typed[podMetrics](), measure: usedByPods},
	}
}

// measured are the entries of what is measured now.
func (a *API) measured(ctx context.Context, res *resource) ([]*entry, uint64, error) {
	sample, err := a.Usage.Usage(ctx)
	if err != nil {
		return nil, 0, err
	}
	rev := uint64(sample.Time.UnixMicro())
	var all []*entry
	for _, i := range res.measure(sample, a.State.View()) {
		all = append(all, res.entry(i, rev))
	}
	return all, rev, nil
}

func usedByNode(s Sample, v *server.View) []item {
	if s.Node == nil {
		return nil
	}
	m := &nodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: v.Node, CreationTimestamp: metav1.NewTime(s.Time)}, Timestamp: metav1.NewTime(s.Time), Window: metav1.Duration{Duration: s.Window}, Usage: s.Node}
	if v.Machine != nil {
		m.Labels = v.Machine.Labels
	}
	return []item{{server.Key{Name: v.Node}, m}}
}

// usedByPods are in the order of the View's pods.
func usedByPods(s Sample, v *server.View) []item {
	var all []item
	for _, p := range v.Pods {
		used, measured := s.Pods[p.Key()]
		if !measured {
			continue
		}
		all = append(all, item{p.Key(), &podMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Pod.Namespace, Name: p.Pod.Name, Labels: p.Pod.Labels, CreationTimestamp: metav1.NewTime(s.Time)},
			Timestamp:  metav1.NewTime(s.Time), Window: metav1.Duration{Duration: s.Window}, Containers: used,
		}})
	}
	return all
}
