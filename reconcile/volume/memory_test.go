package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func container(memory string, policy ...v1.ContainerRestartPolicy) v1.Container {
	c := v1.Container{}
	if memory != "" {
		c.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
	}
	if len(policy) > 0 {
		c.RestartPolicy = &policy[0]
	}
	return c
}

func TestMemorySize(t *testing.T) {
	const mi = 1 << 20
	always := v1.ContainerRestartPolicyAlways
	list := func(c ...v1.Container) []v1.Container { return c }
	for _, test := range []struct {
		name  string
		spec  v1.PodSpec
		limit string
		node  int64
		want  int64
	}{
		{"no limit", v1.PodSpec{Containers: list(container(""))}, "", 0, 0},
		{"node", v1.PodSpec{Containers: list(container(""))}, "", 10 * mi, 10 * mi},
		{"volume limit", v1.PodSpec{Containers: list(container(""))}, "5Mi", 10 * mi, 5 * mi},
		{"volume limit above the node", v1.PodSpec{}, "50Mi", 10 * mi, 10 * mi},
		{"volume limit of zero", v1.PodSpec{}, "0", 10 * mi, 10 * mi},
		{"sum of containers", v1.PodSpec{Containers: list(container("2Mi"), container("3Mi"))}, "9Mi", 0, 5 * mi},
		{"one container without a limit", v1.PodSpec{Containers: list(container("2Mi"), container(""))}, "9Mi", 0, 9 * mi},
		{"larger init container", v1.PodSpec{Containers: list(container("2Mi")), InitContainers: list(container("4Mi"))}, "9Mi", 0, 4 * mi},
		{"sidecar before the init container", v1.PodSpec{Containers: list(container("2Mi")), InitContainers: list(container("1Mi", always), container("4Mi"))}, "", 0, 5 * mi},
		{"sidecar after the init container", v1.PodSpec{Containers: list(container("2Mi")), InitContainers: list(container("4Mi"), container("1Mi", always))}, "", 0, 4 * mi},
		{"pod limit", v1.PodSpec{Containers: list(container("")), Resources: &v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("7Mi")}}}, "9Mi", 0, 7 * mi},
		{"overhead", v1.PodSpec{Containers: list(container("2Mi")), Overhead: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}}, "9Mi", 0, 3 * mi},
	} {
		var limit *resource.Quantity
		if test.limit != "" {
			q := resource.MustParse(test.limit)
			limit = &q
		}
		if got := memorySize(&v1.Pod{Spec: test.spec}, limit, test.node); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
