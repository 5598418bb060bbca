package manifest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQoS(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		l := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	full := v1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi"), Limits: list("cpu", "1", "memory", "1Gi")}
	same := v1.ResourceRequirements{Requests: list("cpu", "1000m", "memory", "1024Mi"), Limits: list("cpu", "1", "memory", "1Gi")}
	tests := []struct {
		name       string
		pod        *v1.ResourceRequirements
		init       []v1.ResourceRequirements
		containers []v1.ResourceRequirements
		want       v1.PodQOSClass
	}{
		{"no resources", nil, nil, []v1.ResourceRequirements{{}}, v1.PodQOSBestEffort},
		{"amounts of zero", nil, nil, []v1.ResourceRequirements{{Requests: list("cpu", "0"), Limits: list("memory", "0")}}, v1.PodQOSBestEffort},
		{"only ephemeral-storage", nil, nil, []v1.ResourceRequirements{{Limits: list("ephemeral-storage", "1Gi")}}, v1.PodQOSBestEffort},
		{"requests equal to limits", nil, nil, []v1.ResourceRequirements{full, same}, v1.PodQOSGuaranteed},
		{"one container without resources", nil, nil, []v1.ResourceRequirements{full, {}}, v1.PodQOSBurstable},
		{"an init container without resources", nil, []v1.ResourceRequirements{{}}, []v1.ResourceRequirements{full}, v1.PodQOSBurstable},
		{"an init container with requests equal to limits", nil, []v1.ResourceRequirements{same}, []v1.ResourceRequirements{full}, v1.PodQOSGuaranteed},
		{"only a request", nil, nil, []v1.ResourceRequirements{{Requests: list("memory", "1Gi")}}, v1.PodQOSBurstable},
		{"limits without requests", nil, nil, []v1.ResourceRequirements{{Limits: full.Limits}}, v1.PodQOSBurstable},
		{"request below limit", nil, nil, []v1.ResourceRequirements{{Requests: list("cpu", "1", "memory", "1Mi"), Limits: full.Limits}}, v1.PodQOSBurstable},
		{"one limit missing", nil, nil, []v1.ResourceRequirements{{Requests: list("cpu", "1"), Limits: list("cpu", "1")}}, v1.PodQOSBurstable},
		{"pod-level requests equal to limits", &full, nil, []v1.ResourceRequirements{{}}, v1.PodQOSGuaranteed},
		{"only pod-level requests", &v1.ResourceRequirements{Requests: list("cpu", "1")}, nil, []v1.ResourceRequirements{full}, v1.PodQOSBurstable},
		{"empty pod-level resources", &v1.ResourceRequirements{}, nil, []v1.ResourceRequirements{full}, v1.PodQOSGuaranteed},
		{"pod-level resources of zero", &v1.ResourceRequirements{Requests: list("cpu", "0")}, nil, []v1.ResourceRequirements{full}, v1.PodQOSBestEffort},
	}
	for _, tt := range tests {
		pod := &v1.Pod{Spec: v1.PodSpec{Resources: tt.pod}}
		for _, r := range tt.init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Resources: r})
		}
		for _, r := range tt.containers {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: r})
		}
		if got := QoS(pod); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
