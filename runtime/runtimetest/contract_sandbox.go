package runtimetest

import (
	"errors"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func testNode(t *testing.T, b *bench) {
	node, err := b.Client.Node(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if node.Name == "" || node.Version == "" || node.APIVersion != "v1" {
		t.Errorf("got name %q, version %q, API %q", node.Name, node.Version, node.APIVersion)
	}
	if !node.Reachable || !node.Ready || !node.NetworkReady {
		t.Errorf("not ready: %+v", node)
	}
	if node.CgroupDriver != "cgroupfs" && node.CgroupDriver != "systemd" {
		t.Errorf("got cgroup driver %q", node.CgroupDriver)
	}
}

func testSandbox(t *testing.T, b *bench) {
	config := b.sandboxConfig("web", 0)
	before := time.Now()
	id := b.run(config)
	s, err := b.Client.PodSandboxStatus(b.ctx(), id)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != id || string(s.UID) != config.Metadata.Uid || !s.Ready || len(s.IPs) == 0 {
		t.Errorf("got %+v", s)
	}
	if s.Labels[runtime.LabelInstance] != b.instance() || s.Annotations[runtime.AnnotationHash] != "v1:web" {
		t.Errorf("labels or annotations are lost: %v %v", s.Labels, s.Annotations)
	}
	if s.CreatedAt.Before(before.Add(-time.Minute)) || s.CreatedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("made at %v, it is %v", s.CreatedAt, time.Now())
	}
	for range 2 {
		if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
			t.Fatalf("stopping: %v", err)
		}
	}
	if s, err = b.Client.PodSandboxStatus(b.ctx(), id); err != nil || s.Ready {
		t.Errorf("after the stop: %+v, %v", s, err)
	}
	for range 2 {
		if err := b.Client.RemovePodSandbox(b.ctx(), id); err != nil {
			t.Fatalf("removing: %v", err)
		}
	}
	if _, err := b.Client.PodSandboxStatus(b.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("status of a removed sandbox: got %v, want %v", err, runtime.ErrNotFound)
	}
	if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
		t.Errorf("stopping a removed sandbox: %v", err)
	}
}

func testSandboxName(t *testing.T, b *bench) {
	config := b.sandboxConfig("twin", 3)
	id := b.run(config)
	if _, err := b.Client.RunPodSandbox(b.ctx(), config, ""); !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("a second of the same name: got %v, want %v", err, runtime.ErrNameReserved)
	}
	if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Client.RunPodSandbox(b.ctx(), config, ""); !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("while the first is stopped: got %v, want %v", err, runtime.ErrNameReserved)
	}
	b.run(b.sandboxConfig("twin", 4))
	if err := b.Client.RemovePodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	b.run(config)
}

func testHostNetwork(t *testing.T, b *bench) {
	config := b.sandboxConfig("host", 0)
	config.Hostname = ""
	config.Linux.SecurityContext.NamespaceOptions.Network = api.NamespaceMode_NODE
	s, err := b.Client.PodSandboxStatus(b.ctx(), b.run(config))
	if err != nil || !s.Ready || len(s.IPs) != 0 {
		t.Errorf("got %+v, %v; want it ready and without an address", s, err)
	}
}

func testSandboxEnds(t *testing.T, b *bench) {
	config := b.sandboxConfig("pair", 0)
	id := b.run(config)
	running := b.start(id, config, "running", "sleep 1000")
	created := b.create(id, config, "created", "sleep 1000")
	if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if c := b.exited(running); c.ExitCode != 137 {
		t.Errorf("stopped with its sandbox: got exit code %d, want 137", c.ExitCode)
	}
	if err := b.Client.StartContainer(b.ctx(), created); err == nil {
		t.Error("a container starts in a sandbox that is stopped")
	}
	if err := b.Client.RemovePodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{running, created} {
		if _, err := b.Client.ContainerStatus(b.ctx(), c); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("container of a removed sandbox: got %v, want %v", err, runtime.ErrNotFound)
		}
	}
}
