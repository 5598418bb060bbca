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
	// Image is present and has /bin/sh, sleep, echo and exit.
	Image string
	// Events reports whether GetContainerEvents is supported.
	Events bool
	// CgroupParent is the parent cgroup of sandboxes; "": the runtime's default.
	CgroupParent string
}

// TestRuntime tests the behavior of a runtime on which podd relies. It calls newRuntime
// once for every part; the runtime may be shared between them and with other tests.
//
// All implementations and fakes of CRI for podd must pass it. podd must not rely on
// behavior that it does not test.
func TestRuntime(t *testing.T, newRuntime func(t *testing.T) Subject) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"version and status", testNode},
		{"sandbox lifecycle", testSandbox},
		{"sandbox name is reserved", testSandboxName},
		{"sandbox on the host's network", testHostNetwork},
		{"sandbox stops and removes its containers", testSandboxEnds},
		{"container lifecycle", testContainer},
		{"container name is reserved", testContainerName},
		{"container status has the user", testContainerUser},
		{"container creation fails", testCreateFails},
		{"container start fails", testStartFails},
		{"container stops on TERM", testStop},
		{"container is killed after its grace period", testStopKills},
		{"grace period of a container is shortened", testStopShorter},
		{"container writes its log", testLog},
		{"commands run in a container", testExec},
		{"resources of a running container change", testResources},
		{"images", testImages},
		{"observer reports the lifecycle of a pod", testObserver},
		{"observer recognizes foreign sandboxes", testObserverForeign},
	} {
		t.Run(part.name, func(t *testing.T) {
			b := &bench{Subject: newRuntime(t), t: t, namespace: fmt.Sprintf("contract-%d", time.Now().UnixNano()), logs: t.TempDir()}
			part.test(t, b)
		})
	}
}

// bench creates pods for one part of the contract and removes them afterwards.
type bench struct {
	Subject
	t         *testing.T
	namespace string
	logs      string
}

// instance returns the label value of sandboxes that are ours.
func (b *bench) instance() string { return b.namespace }

func (b *bench) sandboxConfig(name string, attempt uint32) *api.PodSandboxConfig {
	dir := filepath.Join(b.logs, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	uid := "uid-" + name
	return &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Namespace: b.namespace, Uid: uid, Attempt: attempt},
		Hostname:     name,
		LogDirectory: dir,
		Labels: map[string]string{
			runtime.LabelPodName: name, runtime.LabelPodNamespace: b.namespace, runtime.LabelPodUID: uid,
			runtime.LabelInstance: b.instance(),
		},
		Annotations: map[string]string{runtime.AnnotationHash: "v1:" + name},
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent:    b.CgroupParent,
			SecurityContext: &api.LinuxSandboxSecurityContext{NamespaceOptions: &api.NamespaceOption{Pid: api.NamespaceMode_CONTAINER}},
		},
	}
}

// run creates a sandbox that is removed after the test.
func (b *bench) run(config *api.PodSandboxConfig) string {
	b.t.Helper()
	id, err := b.Client.RunPodSandbox(b.ctx(), config, "")
	if err != nil {
		b.t.Fatalf("running the sandbox: %v", err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		b.kill(ctx, id)
		if err := b.Client.RemovePodSandbox(ctx, id); err != nil {
			b.t.Errorf("removing the sandbox: %v", err)
		}
	})
	return id
}

// kill kills the containers of a sandbox, because not every runtime does that when the
// sandbox is stopped or removed: CRI-O gives them as long as the call lasts.
func (b *bench) kill(ctx context.Context, sandbox string) {
	b.t.Helper()
	all, err := b.Client.SandboxContainers(ctx, sandbox)
	if err != nil {
		b.t.Errorf("listing the containers of the sandbox: %v", err)
	}
	for _, c := range all {
		if err := b.Client.StopContainer(ctx, c.ID, 0); err != nil {
			b.t.Errorf("killing container %s: %v", c.Name, err)
		}
	}
}

func (b *bench) ctx() context.Context { return b.t.Context() }

func (b *bench) containerConfig(sandbox *api.PodSandboxConfig, name, script string) *api.ContainerConfig {
	return &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: name},
		Image:    &api.ImageSpec{Image: b.Image, UserSpecifiedImage: "as/written"},
		Command:  []string{"/bin/sh", "-c", script},
		LogPath:  name + ".log",
		Labels: map[string]string{
			runtime.LabelPodName: sandbox.Metadata.Name, runtime.LabelPodNamespace: b.namespace,
			runtime.LabelPodUID: sandbox.Metadata.Uid, runtime.LabelContainerName: name,
			runtime.LabelInstance: b.instance(),
		},
		Annotations: map[string]string{runtime.AnnotationContainerHash: "v1:" + name},
		Linux: &api.LinuxContainerConfig{
			Resources: &api.LinuxContainerResources{CpuShares: 128},
			// CRI-O requires the options of the sandbox.
			SecurityContext: &api.LinuxContainerSecurityContext{NamespaceOptions: sandbox.Linux.SecurityContext.NamespaceOptions},
		},
	}
}

// create creates a container that runs script in a sandbox with this config.
func (b *bench) create(sandboxID string, sandbox *api.PodSandboxConfig, name, script string) string {
	b.t.Helper()
	id, err := b.Client.CreateContainer(b.ctx(), sandboxID, b.containerConfig(sandbox, name, script), sandbox)
	if err != nil {
		b.t.Fatalf("creating container %s: %v", name, err)
	}
	return id
}

// start creates and starts a container.
func (b *bench) start(sandboxID string, sandbox *api.PodSandboxConfig, name, script string) string {
	b.t.Helper()
	id := b.create(sandboxID, sandbox, name, script)
	if err := b.Client.StartContainer(b.ctx(), id); err != nil {
		b.t.Fatalf("starting container %s: %v", name, err)
	}
	return id
}

func (b *bench) status(id string) runtime.Container {
	b.t.Helper()
	c, err := b.Client.ContainerStatus(b.ctx(), id)
	if err != nil {
		b.t.Fatalf("querying the container: %v", err)
	}
	return c
}

// exited waits until a container has exited.
func (b *bench) exited(id string) runtime.Container {
	b.t.Helper()
	for range 6000 {
		if c := b.status(id); c.State == runtime.Exited {
			return c
		}
		b.wait(10 * time.Millisecond)
	}
	b.t.Fatal("the container has not exited within a minute")
	return runtime.Container{}
}

func (b *bench) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.ctx().Done():
	case <-timer.C:
	}
}
