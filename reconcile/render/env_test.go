package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// inputOf returns an input for the only container of a pod.
func inputOf(c v1.Container) ContainerInput {
	if c.Name == "" {
		c.Name = "main"
	}
	p := podOf(v1.PodSpec{Containers: []v1.Container{c}})
	p.Object.Labels = map[string]string{"app": "web"}
	p.Object.Annotations = map[string]string{"example.com/note": "hi"}
	p.Object.Spec.ServiceAccountName = "robot"
	return ContainerInput{
		Pod: p, Container: &p.Object.Spec.Containers[0],
		Node: Node{
			Name: "node1", HostIPs: []string{"192.0.2.1", "2001:db8::1"},
			Capacity:    Resources{MilliCPU: 4000, Memory: 8 << 30, EphemeralStorage: 100 << 30},
			Allocatable: Resources{MilliCPU: 3500},
		},
		PodIPs: []string{"10.88.0.3", "fd00::3"},
	}
}

// field returns the source of a variable with a field of the pod.
func field(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}

// TestFields checks the values of the fields of the downward API.
func TestFields(t *testing.T) {
	for path, want := range map[string]string{
		"metadata.name":                              "pod",
		"metadata.namespace":                         "ns",
		"metadata.uid":                               "u1",
		"metadata.labels['app']":                     "web",
		"metadata.labels['none']":                    "",
		"metadata.annotations['example.com/note']":   "hi",
		"spec.nodeName":                              "node1",
		"spec.serviceAccountName":                    "robot",
		"status.hostIP":                              "192.0.2.1",
		"status.hostIPs":                             "192.0.2.1,2001:db8::1",
		"status.podIP":                               "10.88.0.3",
		"status.podIPs":                              "10.88.0.3,fd00::3",
		"metadata.annotations['with']bracket']":      "",
		"metadata.labels['']":                        "",
		"metadata.annotations['example.com/absent']": "",
	} {
		got, err := oneVar(inputOf(v1.Container{}), v1.EnvVar{ValueFrom: field(path)})
		if err != nil || got != want {
			t.Errorf("%s: got %q (error %v), want %q", path, got, err, want)
		}
	}
}

// oneVar returns the value of the variable v in a container that has no other variable.
func oneVar(in ContainerInput, v v1.EnvVar) (string, error) {
	c := *in.Container
	v.Name = "X"
	c.Env = []v1.EnvVar{v}
	in.Container = &c
	e, err := newEnvironment(&in)
	if err != nil {
		return "", err
	}
	value, _ := e.lookup("X")
	return value, nil
}

// TestFields_HostNetwork checks that a pod with the host network has the addresses of the node.
func TestFields_HostNetwork(t *testing.T) {
	in := inputOf(v1.Container{})
	in.Pod.Object.Spec.HostNetwork = true
	in.PodIPs = nil
	if got, err := oneVar(in, v1.EnvVar{ValueFrom: field("status.podIPs")}); err != nil || got != "192.0.2.1,2001:db8::1" {
		t.Errorf("status.podIPs: got %q (error %v), want the addresses of the node", got, err)
	}
}

// TestResourceFields checks the values of resource fields with divisors.
func TestResourceFields(t *testing.T) {
	in := inputOf(v1.Container{Resources: amounts("250m", "1500m", "100Mi", "")})
	in.Pod.Object.Spec.InitContainers = []v1.Container{{Name: "init", Resources: amounts("2", "", "", "3Gi")}}
	for _, tt := range []struct{ container, field, divisor, want string }{
		{"", "requests.cpu", "", "1"},
		{"", "requests.cpu", "1m", "250"},
		{"", "limits.cpu", "", "2"},
		{"", "limits.cpu", "1m", "1500"},
		{"", "requests.memory", "1Mi", "100"},
		{"", "requests.memory", "", "104857600"},
		{"", "limits.memory", "1Gi", "8"}, // the amounts of the node
		{"", "requests.ephemeral-storage", "", "0"},
		{"", "limits.ephemeral-storage", "1Gi", "100"},
		{"", "limits.hugepages-2Mi", "1Mi", "0"},
		{"init", "requests.cpu", "", "2"},
		{"init", "limits.memory", "1Mi", "3072"},
		{"init", "limits.cpu", "1m", "3500"}, // allocatable takes precedence over capacity
	} {
		ref := &v1.ResourceFieldSelector{ContainerName: tt.container, Resource: tt.field}
		if tt.divisor != "" {
			ref.Divisor = resource.MustParse(tt.divisor)
		}
		got, err := oneVar(in, v1.EnvVar{ValueFrom: &v1.EnvVarSource{ResourceFieldRef: ref}})
		if err != nil || got != tt.want {
			t.Errorf("container %q, %s divided by %q: got %q (error %v), want %q", tt.container, tt.field, tt.divisor, got, err, tt.want)
		}
	}
}

// TestResourceFields_PodLevel checks the order of KEP-2837: the limit is the limit of the
// container, otherwise the limit of the pod, otherwise the allocatable resources of the node. A
// request has no such fallback, as in the kubelet, because the request of the pod belongs to no
// single container.
func TestResourceFields_PodLevel(t *testing.T) {
	in := inputOf(v1.Container{Resources: amounts("", "1500m", "", "")})
	in.Pod.Object.Spec.Containers = []v1.Container{*in.Container}
	in.Pod.Object.Spec.InitContainers = []v1.Container{{Name: "init"}}
	whole := amounts("500m", "2500m", "32Mi", "64Mi")
	whole.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
	in.Pod.Object.Spec.Resources = &whole
	for _, tt := range []struct{ container, field, want string }{
		{"", "limits.cpu", "2"},
		{"", "limits.memory", "67108864"},
		{"init", "limits.cpu", "3"},
		{"init", "limits.memory", "67108864"},
		{"", "limits.ephemeral-storage", "107374182400"},
		{"", "limits.hugepages-2Mi", "0"},
		{"", "requests.cpu", "0"},
		{"", "requests.memory", "0"},
	} {
		ref := &v1.ResourceFieldSelector{ContainerName: tt.container, Resource: tt.field}
		got, err := oneVar(in, v1.EnvVar{ValueFrom: &v1.EnvVarSource{ResourceFieldRef: ref}})
		if err != nil || got != tt.want {
			t.Errorf("container %q, %s: got %q (error %v), want %q", tt.container, tt.field, got, err, tt.want)
		}
	}
	delete(whole.Limits, v1.ResourceMemory)
	ref := &v1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Gi")}
	if got, err := oneVar(in, v1.EnvVar{ValueFrom: &v1.EnvVarSource{ResourceFieldRef: ref}}); err != nil || got != "8" {
		t.Errorf("memory limit without a limit of the pod: got %q (error %v), want \"8\", the memory of the node", got, err)
	}
}

// TestEnvironmentOrder checks that a variable can refer to the variables before it.
func TestEnvironmentOrder(t *testing.T) {
	in := inputOf(v1.Container{
		Env: []v1.EnvVar{
			{Name: "EARLY", Value: "$(LATE)"}, // not defined yet
			{Name: "HOST", ValueFrom: field("spec.nodeName")},
			{Name: "URL", Value: "http://$(HOST):$(PORT)"},
			{Name: "PORT", Value: "80"},
			{Name: "LATE", Value: "$(URL)$(PORT)"},
			{Name: "PORT", Value: "8$(PORT)"}, // second PORT: replaces the value only
			{Name: "EMPTY"},
		},
		Command: []string{"$(HOST)", "$$(HOST)", "$(NOPE)"},
		Args:    []string{"--port=$(PORT)", "$(EMPTY)"},
	})
	c, err := Container(in)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range c.Envs {
		got = append(got, v.Key+"="+string(v.Value))
	}
	want := []string{"EARLY=$(LATE)", "HOST=node1", "URL=http://node1:$(PORT)", "PORT=880", "LATE=http://node1:$(PORT)80", "EMPTY="}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"node1", "$(HOST)", "$(NOPE)"}, c.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"--port=880", ""}, c.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
}

// TestEnvironmentErrors checks that errors name the container and the variable, and do
// not contain values.
func TestEnvironmentErrors(t *testing.T) {
	const secret = "hunter2"
	resourceRef := func(container, field string) *v1.EnvVarSource {
		return &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: container, Resource: field}}
	}
	for name, from := range map[string]*v1.EnvVarSource{
		"unknown field":             field("spec.containers"),
		"no subscript":              field("spec.nodeName['x']"),
		"unknown container":         resourceRef("ghost", "limits.cpu"),
		"unknown resource":          resourceRef("", "limits.gpu"),
		"neither request nor limit": resourceRef("", "capacity.cpu"),
		"Secret missing":            {SecretKeyRef: &v1.SecretKeySelector{Key: "k"}},
		"ConfigMap missing":         {ConfigMapKeyRef: &v1.ConfigMapKeySelector{Key: "k"}},
		"no source":                 {},
	} {
		_, err := Container(inputOf(v1.Container{Env: []v1.EnvVar{
			{Name: "PASSWORD", Value: secret}, {Name: "BROKEN", ValueFrom: from},
		}}))
		if err == nil {
			t.Errorf("%s: got no error, want one", name)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, `"BROKEN"`) || !strings.Contains(text, `"main"`) || strings.Contains(text, secret) {
			t.Errorf("%s: got %q, want the container and the variable, and no values", name, text)
		}
	}
	if _, err := Container(inputOf(v1.Container{EnvFrom: []v1.EnvFromSource{{}}})); err == nil {
		t.Error("envFrom: got no error, want one")
	}
}
