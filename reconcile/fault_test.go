package reconcile_test

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

var reserved = status.Error(codes.Unknown, `failed to reserve sandbox name "x": name "x" is reserved for "y"`)

// attempt returns the attempt number of the sandbox or container that a request creates.
func attempt(request any) uint32 {
	switch q := request.(type) {
	case *cri.RunPodSandboxRequest:
		return q.GetConfig().GetMetadata().GetAttempt()
	case *cri.CreateContainerRequest:
		return q.GetConfig().GetMetadata().GetAttempt()
	}
	return 0
}

// makeForeign creates a pod with this name and a container app. The sandbox has no label of a podd
// instance.
func (m *machine) makeForeign(name string) { m.makeKubeletPod(name, "foreign-"+name, nil) }

// makeKubeletPod creates a pod of a kubelet.
func (m *machine) makeKubeletPod(name, uid string, annotations map[string]string) {
	m.t.Helper()
	config := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: uid}, Annotations: annotations,
		Labels: map[string]string{runtime.LabelPodName: name, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: uid},
	}
	id, err := m.RunPodSandbox(context.Background(), config, "")
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := m.CreateContainer(context.Background(), id, &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "app"}, Image: &cri.ImageSpec{Image: "web:1"},
		Labels: map[string]string{
			runtime.LabelPodName: name, runtime.LabelPodNamespace: "default", runtime.LabelPodUID: uid,
			runtime.LabelContainerName: "app",
		},
	}, config)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.StartContainer(context.Background(), c); err != nil {
		m.t.Fatal(err)
	}
}

// killSandbox stops the ready sandbox of a pod from outside.
func (m *machine) killSandbox(name string) {
	m.t.Helper()
	for _, inc := range m.report(name).Observed {
		if inc.Ready && !inc.Foreign && m.KillSandbox(inc.ID) {
			return
		}
	}
	m.t.Fatalf("ready sandboxes of %s: got none, want one", name)
}
