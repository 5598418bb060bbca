package runtimetest

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
		t.Errorf("got %+v, want it ready", node)
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
		t.Errorf("got labels %v, annotations %v, want those of the config", s.Labels, s.Annotations)
	}
	if s.CreatedAt.Before(before.Add(-time.Minute)) || s.CreatedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("got the creation time %v, want about %v", s.CreatedAt, time.Now())
	}
	ready := func() int {
		t.Helper()
		key := types.NamespacedName{Namespace: config.Metadata.Namespace, Name: config.Metadata.Name}
		all, err := b.Client.ReadySandboxes(b.ctx(), key)
		if err != nil || len(all) == 1 && (all[0].ID != id || !all[0].Ready || all[0].UID != s.UID || all[0].Labels[runtime.LabelInstance] != b.instance()) {
			t.Errorf("ready sandboxes: got %+v, %v", all, err)
		}
		return len(all)
	}
	if n := ready(); n != 1 {
		t.Errorf("got %d ready sandboxes, want 1 as soon as the call has returned", n)
	}
	for range 2 {
		if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
			t.Fatalf("stopping: %v", err)
		}
	}
	if s, err = b.Client.PodSandboxStatus(b.ctx(), id); err != nil || s.Ready {
		t.Errorf("after the stop: got %+v, %v, want it not ready", s, err)
	}
	if n := ready(); n != 0 {
		t.Errorf("after the stop: got %d ready sandboxes, want none", n)
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
		t.Errorf("stopping a removed sandbox: got %v", err)
	}
}

func testSandboxName(t *testing.T, b *bench) {
	config := b.sandboxConfig("twin", 3)
	id := b.run(config)
	// CRI-O returns the existing sandbox. Nothing is created in either case.
	if again, err := b.Client.RunPodSandbox(b.ctx(), config, ""); again != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("second sandbox with the same name: got %s, %v, want %s or %v", again, err, id, runtime.ErrNameReserved)
	}
	if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if again, err := b.Client.RunPodSandbox(b.ctx(), config, ""); again != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("second sandbox while the first is stopped: got %s, %v, want %s or %v", again, err, id, runtime.ErrNameReserved)
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
		t.Errorf("got %+v, %v, want it ready and without an address", s, err)
	}
}

func testSandboxEnds(t *testing.T, b *bench) {
	config := b.sandboxConfig("pair", 0)
	id := b.run(config)
	running := b.start(id, config, "running", "trap 'exit 137' TERM; echo up; sleep 1000 & wait")
	b.logged(config, "running", "up")
	created := b.create(id, config, "created", "sleep 1000")
	if err := b.Client.StopPodSandbox(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if c := b.exited(running); c.ExitCode != 137 {
		t.Errorf("stopped with its sandbox: got exit code %d, want 137", c.ExitCode)
	}
	// CRI-O can take as long to stop a created container as one that ignores the signal.
	if err := b.Client.StopContainer(b.ctx(), created, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Client.StartContainer(b.ctx(), created); err == nil {
		t.Error("starting a container in a stopped sandbox: got no error")
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
