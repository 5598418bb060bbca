package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func testContainer(t *testing.T, f *fixture) {
	config := f.sandboxConfig("one", 0)
	sandbox := f.runSandbox(config)
	id := f.createContainer(sandbox, config, "app", "sleep 0.2; exit 3")
	c := f.containerStatus(id)
	if c.State != runtime.Created || !c.StartedAt.IsZero() || !c.FinishedAt.IsZero() || c.Name != "app" {
		t.Errorf("after the creation: got %+v, want app in state created, without times", c)
	}
	if err := f.Client.StartContainer(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	c = f.waitUntilExited(id)
	if c.ExitCode != 3 || c.Reason != "Error" || c.StartedAt.IsZero() || c.FinishedAt.Before(c.StartedAt) {
		t.Errorf("after the exit: got %+v, want exit code 3, reason Error, and both times", c)
	}
	if c.Labels[runtime.LabelContainerName] != "app" || c.Annotations[runtime.AnnotationContainerHash] != "v1:app" {
		t.Errorf("got labels %v, annotations %v; want those of the config", c.Labels, c.Annotations)
	}
	if want := filepath.Join(config.LogDirectory, "app.log"); c.LogPath != want {
		t.Errorf("got log path %q, want %q", c.LogPath, want)
	}
	if err := f.Client.StartContainer(f.ctx(), id); err == nil {
		t.Error("starting an exited container: got no error, want one")
	}
	if c = f.waitUntilExited(f.startContainer(sandbox, config, "good", "exit 0")); c.ExitCode != 0 || c.Reason != "Completed" {
		t.Errorf("exit with 0: got exit code %d, reason %q; want 0, \"Completed\"", c.ExitCode, c.Reason)
	}
	for range 2 {
		if err := f.Client.RemoveContainer(f.ctx(), id); err != nil {
			t.Fatalf("removing the container: %v", err)
		}
	}
	if _, err := f.Client.ContainerStatus(f.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("status of a removed container: got error %v, want %v", err, runtime.ErrNotFound)
	}
	if err := f.Client.StartContainer(f.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("starting a removed container: got error %v, want %v", err, runtime.ErrNotFound)
	}
}

// testContainerUser checks the user in the status of a container that has exited. A runtime
// without supplemental groups policies, such as containerd 1.6, may report no user.
func testContainerUser(t *testing.T, f *fixture) {
	sandbox := f.sandboxConfig("user", 0)
	id := f.runSandbox(sandbox)
	config := f.containerConfig(sandbox, "app", "exit 0")
	security := config.Linux.SecurityContext
	security.RunAsUser, security.RunAsGroup = &api.Int64Value{Value: 1000}, &api.Int64Value{Value: 2000}
	security.SupplementalGroups = []int64{3000}
	container, err := f.Client.CreateContainer(f.ctx(), id, config, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Client.StartContainer(f.ctx(), container); err != nil {
		t.Fatal(err)
	}
	node, err := f.Client.Node(f.ctx())
	if err != nil {
		t.Fatal(err)
	}
	u := f.waitUntilExited(container).User
	if u == nil && !node.SupplementalGroupsPolicy {
		return
	}
	// Groups may also contain the primary group, which only some runtimes list among the
	// supplemental groups.
	if u == nil || u.UID != 1000 || u.GID != 2000 || !slices.Contains(u.Groups, 3000) {
		t.Errorf("got user %+v, want 1000, group 2000 and supplemental group 3000", u)
	}
}

func testContainerName(t *testing.T, f *fixture) {
	config := f.sandboxConfig("names", 0)
	sandbox := f.runSandbox(config)
	id := f.startContainer(sandbox, config, "app", "exit 0")
	f.waitUntilExited(id)
	// containerd returns an error and CRI-O returns the existing container. Both create nothing.
	secondID, err := f.Client.CreateContainer(f.ctx(), sandbox, f.containerConfig(config, "app", "exit 0"), config)
	if secondID != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("creating a container with the name of an exited one: got ID %q (error %v), want ID %q or error %v", secondID, err, id, runtime.ErrNameReserved)
	}
	next := f.containerConfig(config, "app", "exit 0")
	next.Metadata.Attempt = 1
	if _, err := f.Client.CreateContainer(f.ctx(), sandbox, next, config); err != nil {
		t.Errorf("creating a container with the next attempt number: got error %v, want none", err)
	}
	if err := f.Client.RemoveContainer(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	f.createContainer(sandbox, config, "app", "exit 0")
}

func testCreateFails(t *testing.T, f *fixture) {
	config := f.sandboxConfig("none", 0)
	sandbox := f.runSandbox(config)
	absent := f.containerConfig(config, "app", "exit 0")
	absent.Image = &api.ImageSpec{Image: "podd.test/absent:1"}
	if _, err := f.Client.CreateContainer(f.ctx(), sandbox, absent, config); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("creating a container of a missing image: got error %v, want %v", err, runtime.ErrNotFound)
	}
	good := f.containerConfig(config, "app", "exit 0")
	if _, err := f.Client.CreateContainer(f.ctx(), strings.Repeat("f", 64), good, config); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("creating a container in a sandbox that does not exist: got error %v, want %v", err, runtime.ErrNotFound)
	}
	if err := f.Client.StopPodSandbox(f.ctx(), sandbox); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Client.CreateContainer(f.ctx(), sandbox, good, config); err == nil {
		t.Error("creating a container in a stopped sandbox: got no error, want one")
	}
}

func testStartFails(t *testing.T, f *fixture) {
	config := f.sandboxConfig("bad", 0)
	sandbox := f.runSandbox(config)
	c := f.containerConfig(config, "app", "")
	c.Command = []string{"/no/such/program"}
	id, err := f.Client.CreateContainer(f.ctx(), sandbox, c, config)
	created := err == nil
	if created {
		err = f.Client.StartContainer(f.ctx(), id)
	}
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") || strings.Contains(err.Error(), "shim") {
		t.Errorf("got error %v, want one that names the program and not the shim", err)
	}
	if !created { // in CRI-O, runc looks up the program when the container is created
		if containers, err := f.Client.SandboxContainers(f.ctx(), sandbox); err != nil || len(containers) > 0 {
			t.Errorf("containers after a failed creation: got %+v (error %v), want none", containers, err)
		}
		return
	}
	if got := f.waitUntilExited(id); got.ExitCode != 128 || got.Reason != "StartError" || !got.StartedAt.Before(time.Unix(1, 0)) {
		t.Errorf("got %+v, want an exited container with exit code 128, reason StartError and no start time", got)
	}
}

func testStopSignal(t *testing.T, f *fixture) {
	config := f.sandboxConfig("polite", 0)
	sandbox := f.runSandbox(config)
	id := f.startContainer(sandbox, config, "app", "trap 'exit 0' TERM; echo up; sleep 1000 & wait")
	f.waitUntilLogged(config, "app", "up")
	began := time.Now()
	if err := f.Client.StopContainer(f.ctx(), id, 2*waitLimit); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > waitLimit {
		t.Errorf("stopping took %v, want less than %v because the container exits on TERM", took, waitLimit)
	}
	if c := f.containerStatus(id); c.State != runtime.Exited || c.ExitCode != 0 {
		t.Errorf("got %+v, want an exited container with exit code 0", c)
	}
	if err := f.Client.StopContainer(f.ctx(), id, time.Second); err != nil {
		t.Errorf("stopping an exited container: got error %v, want none", err)
	}
	if err := f.Client.StopContainer(f.ctx(), f.createContainer(sandbox, config, "idle", "exit 0"), time.Second); err != nil {
		t.Errorf("stopping a container that never ran: got error %v, want none", err)
	}
	if err := f.Client.StopContainer(f.ctx(), strings.Repeat("f", 64), 0); err != nil {
		t.Errorf("stopping a container that does not exist: got error %v, want none", err)
	}
}

func testGracePeriodExceeded(t *testing.T, f *fixture) {
	config := f.sandboxConfig("stubborn", 0)
	sandbox := f.runSandbox(config)
	id := f.startContainer(sandbox, config, "app", "trap '' TERM; echo up; sleep 1000")
	f.waitUntilLogged(config, "app", "up")
	began := time.Now()
	if err := f.Client.StopContainer(f.ctx(), id, 900*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("stopping took %v, want the whole grace period of 900ms", took)
	}
	if c := f.containerStatus(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("got %+v, want an exited container with exit code 137", c)
	}
	id = f.startContainer(sandbox, config, "now", "trap '' TERM; sleep 1000")
	if err := f.Client.StopContainer(f.ctx(), id, 0); err != nil {
		t.Fatal(err)
	}
	if c := f.containerStatus(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("without a grace period: got %+v, want an exited container with exit code 137", c)
	}
}

// testShorterGracePeriod checks that a StopContainer with a shorter grace period takes
// precedence over a StopContainer in progress.
func testShorterGracePeriod(t *testing.T, f *fixture) {
	config := f.sandboxConfig("late", 0)
	id := f.startContainer(f.runSandbox(config), config, "app", "trap '' TERM; echo up; sleep 1000")
	f.waitUntilLogged(config, "app", "up")
	first := make(chan error, 1)
	go func() { first <- f.Client.StopContainer(f.ctx(), id, 500*time.Second) }()
	f.wait(200 * time.Millisecond)
	if err := f.Client.StopContainer(f.ctx(), id, time.Second); err != nil {
		t.Errorf("stopping with the shorter grace period: got error %v, want none", err)
	}
	if err := <-first; err != nil {
		t.Errorf("stopping with the longer grace period: got error %v, want none", err)
	}
	if c := f.containerStatus(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("got %+v, want an exited container with exit code 137", c)
	}
}

func testLog(t *testing.T, f *fixture) {
	config := f.sandboxConfig("loud", 0)
	id := f.startContainer(f.runSandbox(config), config, "app", "echo hello; sleep 1000")
	f.waitUntilLogged(config, "app", "hello")
	path := filepath.Join(config.LogDirectory, "app.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := f.Client.ReopenContainerLog(f.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("finding the new log after ReopenContainerLog: %v", err)
	}
}

// waitUntilLogged waits until a container has written a line to its log.
func (f *fixture) waitUntilLogged(sandbox *api.PodSandboxConfig, container, line string) {
	f.t.Helper()
	path := filepath.Join(sandbox.LogDirectory, container+".log")
	var last string
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); f.wait(10 * time.Millisecond) {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.t.Fatal(err)
		}
		for l := range strings.Lines(string(content)) {
			last = l
			// <RFC3339Nano> stdout F <text>
			if fields := strings.SplitN(strings.TrimSuffix(l, "\n"), " ", 4); len(fields) == 4 && fields[1] == "stdout" && fields[2] == "F" && fields[3] == line {
				if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil {
					f.t.Errorf("parsing the time in the log: %v", err)
				}
				return
			}
		}
	}
	f.t.Fatalf("waited %s for a line in the log: got %q as the last one, want %q", waitLimit, last, line)
}

func testExec(t *testing.T, f *fixture) {
	config := f.sandboxConfig("exec", 0)
	id := f.startContainer(f.runSandbox(config), config, "app", "sleep 1000")
	got, err := f.Client.ExecSync(f.ctx(), id, []string{"/bin/sh", "-c", "echo twelve bytes; exit 4"}, waitLimit, 6)
	if err != nil || got.ExitCode != 4 || string(got.Stdout) != "twelve" || !got.Truncated {
		t.Errorf("command with a limit of 6 bytes of output: got %+v (error %v), want exit code 4 and the truncated output \"twelve\"", got, err)
	}
	if got, err = f.Client.ExecSync(f.ctx(), id, []string{"/bin/sh", "-c", "echo all"}, 0, 100); err != nil || string(got.Stdout) != "all\n" || got.Truncated {
		t.Errorf("command with less output than the limit: got %+v (error %v), want the output \"all\\n\"", got, err)
	}
	_, err = f.Client.ExecSync(f.ctx(), id, []string{"/bin/sleep", "100"}, time.Second, 10)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("command that exceeds its timeout: got error %v, want only %v", err, context.DeadlineExceeded)
	}
	if _, err := f.Client.ExecSync(f.ctx(), strings.Repeat("f", 64), []string{"true"}, 0, 10); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("command in a container that does not exist: got error %v, want %v", err, runtime.ErrNotFound)
	}
}

func testImages(t *testing.T, f *fixture) {
	i, present, err := f.Client.ImageStatus(f.ctx(), f.Image)
	if err != nil || !present || i.ID == "" {
		t.Fatalf("status of an image: got %+v, present %t, error %v; want a present image with an ID", i, present, err)
	}
	if byID, present, err := f.Client.ImageStatus(f.ctx(), i.ID); err != nil || !present || byID.ID != i.ID {
		t.Errorf("status of an image by its ID: got %+v, present %t, error %v; want the present image %s", byID, present, err, i.ID)
	}
	if i, present, err := f.Client.ImageStatus(f.ctx(), "podd.test/absent:1"); err != nil || present {
		t.Errorf("status of a missing image: got %+v, present %t, error %v; want present false and no error", i, present, err)
	}
	if i, present, err := f.Client.ImageStatus(f.ctx(), "Not A Name"); err != nil || present {
		t.Errorf("status of an invalid name: got %+v, present %t, error %v; want present false and no error", i, present, err)
	}
	var failed *runtime.PullError
	if _, err := f.Client.PullImage(f.ctx(), "Not A Name", nil, nil); !errors.As(err, &failed) || failed.Reason != "InvalidImageName" {
		t.Errorf("pulling an invalid name: got error %v, want the reason InvalidImageName", err)
	}
	all, err := f.Client.ListImages(f.ctx())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, one := range all {
		found = found || one.ID == i.ID
	}
	if !found {
		t.Errorf("list of images: got %d without image %s; want it in the list", len(all), i.ID)
	}
	f.checkContainerImage(i.ID)
	if err := f.Client.RemoveImage(f.ctx(), "podd.test/absent:1"); err != nil {
		t.Errorf("removing a missing image: got error %v, want none", err)
	}
	if images, _, err := f.Client.ImageFsInfo(f.ctx()); err != nil || len(images) == 0 || images[0].Mountpoint == "" {
		t.Errorf("file systems of images: got %+v (error %v), want at least one with a mount point", images, err)
	}
}

// checkContainerImage checks that the list of the images of containers contains an exited container
// of the image with the ID id.
func (f *fixture) checkContainerImage(id string) {
	f.t.Helper()
	sandbox := f.sandboxConfig("images", 0)
	container := f.startContainer(f.runSandbox(sandbox), sandbox, "app", "exit 0")
	f.waitUntilExited(container)
	all, err := f.Client.ListContainerImages(f.ctx())
	if err != nil {
		f.t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(c runtime.ContainerImage) bool { return c.ID == container })
	if at < 0 {
		f.t.Fatalf("images of containers: got %+v, want the exited container %s among them", all, container)
	}
	c := all[at]
	if want := (types.NamespacedName{Namespace: f.namespace, Name: "images"}); c.Pod != want {
		f.t.Errorf("pod of a container: got %s, want %s", c.Pod, want)
	}
	if i, isPresent, err := f.Client.ImageStatus(f.ctx(), c.Image); err != nil || !isPresent || i.ID != id {
		f.t.Errorf("image %q of a container: got %s, present %t, error %v; want %s, present true and no error", c.Image, i.ID, isPresent, err, id)
	}
	if mounted, err := f.Client.MountedImages(f.ctx(), container); err != nil || len(mounted) > 0 {
		f.t.Errorf("mounted images of a container: got %q, error %v; want none", mounted, err)
	}
	if _, err := f.Client.MountedImages(f.ctx(), "0123456789"); !errors.Is(err, runtime.ErrNotFound) {
		f.t.Errorf("mounted images of a missing container: got error %v, want %v", err, runtime.ErrNotFound)
	}
}
