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
	at := metav1.NewTime(u.At)
	m := &nodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: v.Node, CreationTimestamp: at}, Timestamp: at, Usage: amounts}
	if v.NodeObject != nil {
		m.Labels = v.NodeObject.Labels
	}
	return []Item{{server.Key{Name: v.Node}, m}}
}

func podMetricsItems(u *server.Usage, v *server.View) []Item {
	var all []Item
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
			if amounts := resourceList(used.Containers[name]); amounts != nil {
				m.Containers = append(m.Containers, containerMetrics{name, amounts})
			}
		}
		all = append(all, Item{p.Key(), m})
	}
	return all
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
