package resource

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
)

// A containerMetrics is the resource usage of one container.
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
	Window            metav1.Duration `json:"window"` // always zero, although the usage is an average of some seconds
	Usage             v1.ResourceList `json:"usage"`
}

type podMetrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Timestamp         metav1.Time        `json:"timestamp"`
	Window            metav1.Duration    `json:"window"`
	Containers        []containerMetrics `json:"containers"`
}

// DeepCopyObject implements runtime.Object. The copy is shallow, because
// measurements are immutable.
func (m *nodeMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// DeepCopyObject implements runtime.Object. The copy is shallow, because
// measurements are immutable.
func (m *podMetrics) DeepCopyObject() runtime.Object { c := *m; return &c }

// metricsDefinitions returns the resources of metrics.k8s.io.
func metricsDefinitions() []*Definition {
	const group, version = "metrics.k8s.io", "v1beta1"
	return []*Definition{
		{Group: group, Version: version, Name: "nodes", Kind: "NodeMetrics", Singular: "node", Verbs: metricsVerbs, goType: newGoType[nodeMetrics](), Measure: nodeMetricsItems},
		{Group: group, Version: version, Name: "pods", Kind: "PodMetrics", Singular: "pod", Namespaced: true, Verbs: metricsVerbs, goType: newGoType[podMetrics](), Measure: podMetricsItems},
	}
}

func nodeMetricsItems(u *server.Usage, v *server.View) []Item {
	amounts := resourceList(u.Node)
	if amounts == nil {
		return nil
	}
	measuredAt := metav1.NewTime(u.At)
	m := &nodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: v.Node, CreationTimestamp: measuredAt}, Timestamp: measuredAt, Usage: amounts}
	if v.NodeObject != nil {
		m.Labels = v.NodeObject.Labels
	}
	return []Item{{server.Key{Name: v.Node}, m}}
}

func podMetricsItems(u *server.Usage, v *server.View) []Item {
	var items []Item
	measuredAt := metav1.NewTime(u.At)
	for _, p := range v.Pods {
		usage, isMeasured := u.Pods[p.Key()]
		if !isMeasured {
			continue
		}
		m := &podMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Pod.Namespace, Name: p.Pod.Name, Labels: p.Pod.Labels, CreationTimestamp: measuredAt},
			Timestamp:  measuredAt, Containers: []containerMetrics{},
		}
		for _, name := range slices.Sorted(maps.Keys(usage.Containers)) {
			if amounts := resourceList(usage.Containers[name]); amounts != nil {
				m.Containers = append(m.Containers, containerMetrics{name, amounts})
			}
		}
		items = append(items, Item{p.Key(), m})
	}
	return items
}

// resourceList returns the usage of CPU and memory. It returns nil until the CPU usage has been
// measured.
func resourceList(a server.ResourceUsage) v1.ResourceList {
	if a.NanoCores == nil {
		return nil
	}
	return v1.ResourceList{
		v1.ResourceCPU:    *quantity.NewScaledQuantity(int64(*a.NanoCores), quantity.Nano),
		v1.ResourceMemory: *quantity.NewQuantity(int64(a.WorkingSetBytes), quantity.BinarySI),
	}
}
