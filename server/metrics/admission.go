package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"podd/server"
)

// admissionCounts contains the metrics about admitted pods.
type admissionCounts struct {
	admitted         *prometheus.CounterVec
	containersPerPod prometheus.Histogram
	counted          *podSet // the pods that were counted, so that each pod is counted once
}

func newAdmissionCounts() admissionCounts {
	return admissionCounts{
		admitted: newCounterVec("kubelet_pod_level_resources_admission_total", "Admitted pods, by whether the pod or its containers have resources, and by QoS class.",
			"config_mode", "qos_class"),
		containersPerPod: newHistogram("kubelet_containers_per_pod_count", "Number of regular containers of admitted pods.", prometheus.ExponentialBuckets(1, 2, 5)),
		counted:          newPodSet(),
	}
}

// update counts a pod when it is first admitted; see Metrics.UpdatePod.
func (c admissionCounts) update(before, after *server.PodView, isAdmitted bool) {
	p := after.Pod
	if before != nil && before.Pod.UID != p.UID {
		c.counted.remove(before.Pod.UID)
	}
	if !isAdmitted || p.DeletionTimestamp != nil || !c.counted.add(p.UID) {
		return
	}
	c.containersPerPod.Observe(float64(len(p.Spec.Containers)))
	c.admitted.WithLabelValues(resourceLevels(p), strings.ToLower(string(p.Status.QOSClass))).Inc()
}

// resourceLevels returns the kubelet's label value that states whether the pod itself, its
// containers or both have requests or limits.
func resourceLevels(p *v1.Pod) string {
	podHasResources, containersHaveResources := resourcehelper.IsPodLevelResourcesSet(p), hasResources(p.Spec.InitContainers) || hasResources(p.Spec.Containers)
	switch {
	case podHasResources && containersHaveResources:
		return "pod_and_container_level"
	case podHasResources:
		return "pod_level"
	case containersHaveResources:
		return "container_level"
	}
	return ""
}

func hasResources(containers []v1.Container) bool {
	for i := range containers {
		if r := &containers[i].Resources; len(r.Requests) > 0 || len(r.Limits) > 0 {
			return true
		}
	}
	return false
}
