package runtimetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/cri"
)

// A Subject is a runtime to test with TestRuntime.
type Subject struct {
	Client *cri.Client
	// Image is the name of an image that is present on the node. It must contain /bin/sh, sleep
	// and echo.
	Image string
	// HasEvents reports whether GetContainerEvents is supported.
	HasEvents bool
	// CgroupParent is the parent cgroup of sandboxes. "" means the runtime's default.
	CgroupParent string
}

// TestRuntime tests whether a runtime has the behavior on which podd relies. It calls newRuntime
// once for every part. The parts and other tests may share one runtime. All implementations and
// fakes of CRI for podd must pass this test. podd must not rely on behavior that this test does not
// check.
func TestRuntime(t *testing.T, newRuntime func(t *testing.T) Subject) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *fixture)
	}{
		{"version and status", testNode},
		{"sandbox lifecycle", testSandbox},
		{"UIDs of all pods", testPodUIDs},
		{"sandbox name is reserved", testSandboxName},
		{"sandbox on the host's network", testHostNetwork},
		{"sandbox status has the user namespace", testUserNamespace},
		{"sandbox stops and removes its containers", testSandboxStopsContainers},
		{"container lifecycle", testContainer},
		{"container name is reserved", testContainerName},
		{"container status has the user", testContainerUser},
		{"container creation fails", testCreateFails},
		{"container start fails", testStartFails},
		{"container stops on TERM", testStopSignal},
		{"container is killed after its grace period", testGracePeriodExceeded},
		{"grace period of a container is shortened", testShorterGracePeriod},
		{"container writes its log", testLog},
		{"commands run in a container", testExec},
		{"resources of a running container change", testResources},
		{"resources of a sandbox change", testSandboxResources},
		{"images", testImages},
		{"observer reports the lifecycle of a pod", testObserver},
		{"observer recognizes foreign sandboxes", testObserverForeign},
	} {
		t.Run(part.name, func(t *testing.T) {
			f := &fixture{Subject: newRuntime(t), t: t, namespace: fmt.Sprintf("contract-%d", time.Now().UnixNano()), logDir: t.TempDir()}
			part.test(t, f)
		})
	}
}

// waitLimit is the time after which a wait for an event that does not happen fails. It is long enough for
// a busy host.
const waitLimit = 5 * time.Minute

// A fixture creates pods for one part of the contract and removes them after the test.
type fixture struct {
	Subject
	t         *testing.T
	namespace string
	logDir    string
}

// instance returns the value of the label with which the fixture's sandboxes are created.
func (f *fixture) instance() string { return f.namespace }

func (f *fixture) sandboxConfig(name string, attempt uint32) *api.PodSandboxConfig {
	dir := filepath.Join(f.logDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
	uid := "uid-" + name
	return &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Namespace: f.namespace, Uid: uid, Attempt: attempt},
		Hostname:     name,
		LogDirectory: dir,
		Labels: map[string]string{
			runtime.LabelPodName: name, runtime.LabelPodNamespace: f.namespace, runtime.LabelPodUID: uid,
			runtime.LabelInstance: f.instance(),
		},
		Annotations: map[string]string{runtime.AnnotationPodHash: "v1:" + name},
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent:    f.CgroupParent,
			SecurityContext: &api.LinuxSandboxSecurityContext{NamespaceOptions: &api.NamespaceOption{Pid: api.NamespaceMode_CONTAINER}},
		},
	}
}

// runSandbox creates a sandbox and returns its ID. The sandbox is removed after the test.
func (f *fixture) runSandbox(config *api.PodSandboxConfig) string {
	f.t.Helper()
	id, err := f.Client.RunPodSandbox(f.ctx(), config, "")
	if err != nil {
		f.t.Fatalf("running the sandbox: %v", err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		f.killContainers(ctx, id)
		if err := f.Client.RemovePodSandbox(ctx, id); err != nil {
			f.t.Errorf("removing the sandbox: %v", err)
		}
	})
	return id
}

// killContainers kills the containers of a sandbox. This is necessary before the sandbox is stopped
// or removed, because otherwise CRI-O lets the containers run until the deadline of the call.
func (f *fixture) killContainers(ctx context.Context, sandbox string) {
	f.t.Helper()
	containers, err := f.Client.SandboxContainers(ctx, sandbox)
	if err != nil {
		f.t.Errorf("listing the containers of the sandbox: %v", err)
	}
	for _, c := range containers {
		if err := f.Client.StopContainer(ctx, c.ID, 0); err != nil {
			f.t.Errorf("killing container %s: %v", c.Name, err)
		}
	}
}

func (f *fixture) ctx() context.Context { return f.t.Context() }

func (f *fixture) containerConfig(sandbox *api.PodSandboxConfig, name, script string) *api.ContainerConfig {
	return &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: name},
		Image:    &api.ImageSpec{Image: f.Image, UserSpecifiedImage: "as/written"},
		Command:  []string{"/bin/sh", "-c", script},
		LogPath:  name + ".log",
		Labels: map[string]string{
			runtime.LabelPodName: sandbox.Metadata.Name, runtime.LabelPodNamespace: f.namespace,
			runtime.LabelPodUID: sandbox.Metadata.Uid, runtime.LabelContainerName: name,
			runtime.LabelInstance: f.instance(),
		},
		Annotations: map[string]string{runtime.AnnotationContainerHash: "v1:" + name},
		Linux: &api.LinuxContainerConfig{
			Resources: &api.LinuxContainerResources{CpuShares: 128},
			// CRI-O requires that a container and its sandbox have the same PID namespace.
			SecurityContext: &api.LinuxContainerSecurityContext{NamespaceOptions: sandbox.Linux.SecurityContext.NamespaceOptions},
		},
	}
}

// createContainer creates a container that runs script in a sandbox with the given config, and
// returns its ID.
func (f *fixture) createContainer(sandboxID string, sandbox *api.PodSandboxConfig, name, script string) string {
	f.t.Helper()
	id, err := f.Client.CreateContainer(f.ctx(), sandboxID, f.containerConfig(sandbox, name, script), sandbox)
	if err != nil {
		f.t.Fatalf("creating container %s: %v", name, err)
	}
	return id
}

// startContainer creates and starts a container that runs script, and returns its ID.
func (f *fixture) startContainer(sandboxID string, sandbox *api.PodSandboxConfig, name, script string) string {
	f.t.Helper()
	id := f.createContainer(sandboxID, sandbox, name, script)
	if err := f.Client.StartContainer(f.ctx(), id); err != nil {
		f.t.Fatalf("starting container %s: %v", name, err)
	}
	return id
}

// containerStatus returns the status of a container.
func (f *fixture) containerStatus(id string) runtime.Container {
	f.t.Helper()
	c, err := f.Client.ContainerStatus(f.ctx(), id)
	if err != nil {
		f.t.Fatalf("querying the container: %v", err)
	}
	return c
}

// waitUntilExited waits until a container has exited, and returns its status.
func (f *fixture) waitUntilExited(id string) runtime.Container {
	f.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; f.wait(10 * time.Millisecond) {
		if c := f.containerStatus(id); c.State == runtime.Exited {
			return c
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("waited %s for the exit of the container: got it running", waitLimit)
		}
	}
}

// wait waits for d, or until the context of the test is done.
func (f *fixture) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-f.ctx().Done():
	case <-timer.C:
	}
}
