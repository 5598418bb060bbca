package runtimetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func testNode(t *testing.T, f *fixture) {
	node, err := f.Client.Node(f.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if node.Name == "" || node.Version == "" || node.APIVersion != "v1" {
		t.Errorf("got name %q, version %q, API %q; want a name, a version, and v1", node.Name, node.Version, node.APIVersion)
	}
	if !node.Reachable || !node.Ready || !node.NetworkReady {
		t.Errorf("got %+v, want a runtime that is reachable and ready, with a network", node)
	}
	if node.CgroupDriver != "cgroupfs" && node.CgroupDriver != "systemd" {
		t.Errorf("got cgroup driver %q, want cgroupfs or systemd", node.CgroupDriver)
	}
}

func testSandbox(t *testing.T, f *fixture) {
	config := f.sandboxConfig("web", 0)
	before := time.Now()
	id := f.runSandbox(config)
	s, err := f.Client.PodSandboxStatus(f.ctx(), id)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != id || string(s.UID) != config.Metadata.Uid || !s.Ready || len(s.IPs) == 0 {
		t.Errorf("got %+v, want sandbox %s, ready and with an address", s, id)
	}
	if s.Labels[runtime.LabelInstance] != f.instance() || s.Annotations[runtime.AnnotationPodHash] != "v1:web" {
		t.Errorf("got labels %v, annotations %v; want those of the config", s.Labels, s.Annotations)
	}
	if s.CreatedAt.Before(before.Add(-time.Minute)) || s.CreatedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("got the creation time %v, want about %v", s.CreatedAt, time.Now())
	}
	ready := func() int {
		t.Helper()
		key := types.NamespacedName{Namespace: config.Metadata.Namespace, Name: config.Metadata.Name}
		readySandboxes, err := f.Client.ReadySandboxes(f.ctx(), key)
		if err != nil || len(readySandboxes) == 1 && (readySandboxes[0].ID != id || !readySandboxes[0].Ready || readySandboxes[0].UID != s.UID || readySandboxes[0].Labels[runtime.LabelInstance] != f.instance()) {
			t.Errorf("ready sandboxes: got %+v (error %v), want none, or only sandbox %s, ready, with the UID and the instance of the pod", readySandboxes, err, id)
		}
		return len(readySandboxes)
	}
	if n := ready(); n != 1 {
		t.Errorf("after RunPodSandbox: got %d ready sandboxes, want 1", n)
	}
	for range 2 {
		if err := f.Client.StopPodSandbox(f.ctx(), id); err != nil {
			t.Fatalf("stopping the sandbox: %v", err)
		}
	}
	if s, err = f.Client.PodSandboxStatus(f.ctx(), id); err != nil || s.Ready {
		t.Errorf("after the stop: got %+v (error %v), want a sandbox that is not ready", s, err)
	}
	if n := ready(); n != 0 {
		t.Errorf("after the stop: got %d ready sandboxes, want none", n)
	}
	for range 2 {
		if err := f.Client.RemovePodSandbox(f.ctx(), id); err != nil {
			t.Fatalf("removing the sandbox: %v", err)
		}
	}
	if _, err := f.Client.PodSandboxStatus(f.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("status of a removed sandbox: got error %v, want %v", err, runtime.ErrNotFound)
	}
	if err := f.Client.StopPodSandbox(f.ctx(), id); err != nil {
		t.Errorf("stopping a removed sandbox: got error %v, want none", err)
	}
}

func testPodUIDs(t *testing.T, f *fixture) {
	sandboxUID, containerUID := types.UID(f.namespace+"-sandbox"), types.UID(f.namespace+"-container")
	config := f.sandboxConfig("uids", 0)
	config.Metadata.Uid, config.Labels = string(sandboxUID), nil
	id := f.runSandbox(config)
	expect := func(name string, hasSandbox, hasContainer bool) {
		t.Helper()
		uids, err := f.Client.PodUIDs(f.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if uids.Has(sandboxUID) != hasSandbox || uids.Has(containerUID) != hasContainer {
			t.Errorf("%s: got %q; want %s among them: %t, and %s: %t", name, sets.List(uids), sandboxUID, hasSandbox, containerUID, hasContainer)
		}
	}
	expect("sandbox without labels", true, false)
	container := f.containerConfig(config, "app", "exit 0")
	container.Labels[runtime.LabelPodUID] = string(containerUID)
	if _, err := f.Client.CreateContainer(f.ctx(), id, container, config); err != nil {
		t.Fatal(err)
	}
	expect("container with the UID of another pod", true, true)
	if err := f.Client.StopPodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	expect("stopped sandbox", true, true)
	if err := f.Client.RemovePodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	expect("removed sandbox", false, false)
}

func testSandboxName(t *testing.T, f *fixture) {
	config := f.sandboxConfig("twin", 3)
	id := f.runSandbox(config)
	// containerd returns an error and CRI-O returns the existing sandbox. Both create nothing.
	if secondID, err := f.Client.RunPodSandbox(f.ctx(), config, ""); secondID != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("second sandbox with the same name: got ID %q (error %v), want ID %q or error %v", secondID, err, id, runtime.ErrNameReserved)
	}
	if err := f.Client.StopPodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if secondID, err := f.Client.RunPodSandbox(f.ctx(), config, ""); secondID != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("second sandbox while the first is stopped: got ID %q (error %v), want ID %q or error %v", secondID, err, id, runtime.ErrNameReserved)
	}
	f.runSandbox(f.sandboxConfig("twin", 4))
	if err := f.Client.RemovePodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	f.runSandbox(config)
}

func testHostNetwork(t *testing.T, f *fixture) {
	config := f.sandboxConfig("host", 0)
	config.Hostname = ""
	config.Linux.SecurityContext.NamespaceOptions.Network = api.NamespaceMode_NODE
	s, err := f.Client.PodSandboxStatus(f.ctx(), f.runSandbox(config))
	if err != nil || !s.Ready || len(s.IPs) != 0 {
		t.Errorf("got %+v (error %v), want a ready sandbox without an address", s, err)
	}
}

// testUserNamespace checks the host IDs in the status of a sandbox, if the runtime supports user
// namespaces.
func testUserNamespace(t *testing.T, f *fixture) {
	node, err := f.Client.Node(f.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if !node.Handlers[""].UserNamespaces {
		return
	}
	want := runtime.IDRange{First: 1 << 30, Length: runtime.DefaultIDsPerPod}
	ids := []*api.IDMapping{{HostId: want.First, Length: want.Length}}
	config := f.sandboxConfig("mapped", 0)
	config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = &api.UserNamespace{Mode: api.NamespaceMode_POD, Uids: ids, Gids: ids}
	mapped, unmapped := f.runSandbox(config), f.runSandbox(f.sandboxConfig("unmapped", 0))
	check := func(when, id string, want ...runtime.IDRange) {
		t.Helper()
		if s, err := f.Client.PodSandboxStatus(f.ctx(), id); err != nil || !slices.Equal(s.MappedIDs, want) {
			t.Errorf("%s: got the IDs %v, error %v; want %v", when, s.MappedIDs, err, want)
		}
	}
	check("with a user namespace", mapped, want)
	check("without a user namespace", unmapped)
	if err := f.Client.StopPodSandbox(f.ctx(), mapped); err != nil {
		t.Fatal(err)
	}
	check("after the stop", mapped, want)
}

func testSandboxStopsContainers(t *testing.T, f *fixture) {
	config := f.sandboxConfig("pair", 0)
	id := f.runSandbox(config)
	runningID := f.startContainer(id, config, "running", "trap 'exit 137' TERM; echo up; sleep 1000 & wait")
	f.waitUntilLogged(config, "running", "up")
	createdID := f.createContainer(id, config, "created", "sleep 1000")
	if err := f.Client.StopPodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if c := f.waitUntilExited(runningID); c.ExitCode != 137 {
		t.Errorf("container of a stopped sandbox: got exit code %d, want 137", c.ExitCode)
	}
	// Kill the created container first, because CRI-O could otherwise wait for it as long as for a
	// container that ignores the stop signal.
	if err := f.Client.StopContainer(f.ctx(), createdID, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Client.StartContainer(f.ctx(), createdID); err == nil {
		t.Error("starting a container in a stopped sandbox: got no error, want one")
	}
	if err := f.Client.RemovePodSandbox(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{runningID, createdID} {
		if _, err := f.Client.ContainerStatus(f.ctx(), c); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("container of a removed sandbox: got error %v, want %v", err, runtime.ErrNotFound)
		}
	}
}
