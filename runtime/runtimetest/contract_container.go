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

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

func testContainer(t *testing.T, b *bench) {
	config := b.sandboxConfig("one", 0)
	sandbox := b.run(config)
	id := b.create(sandbox, config, "app", "sleep 0.2; exit 3")
	c := b.status(id)
	if c.State != runtime.Created || !c.StartedAt.IsZero() || !c.FinishedAt.IsZero() || c.Name != "app" {
		t.Errorf("created: got %+v", c)
	}
	if err := b.Client.StartContainer(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	c = b.exited(id)
	if c.ExitCode != 3 || c.Reason != "Error" || c.StartedAt.IsZero() || c.FinishedAt.Before(c.StartedAt) {
		t.Errorf("exited: got %+v", c)
	}
	if c.Labels[runtime.LabelContainerName] != "app" || c.Annotations[runtime.AnnotationContainerHash] != "v1:app" {
		t.Errorf("got labels %v, annotations %v, want those of the config", c.Labels, c.Annotations)
	}
	if want := filepath.Join(config.LogDirectory, "app.log"); c.LogPath != want {
		t.Errorf("got log path %q, want %q", c.LogPath, want)
	}
	if err := b.Client.StartContainer(b.ctx(), id); err == nil {
		t.Error("starting a container again: got no error")
	}
	if c = b.exited(b.start(sandbox, config, "good", "exit 0")); c.ExitCode != 0 || c.Reason != "Completed" {
		t.Errorf("exit with 0: got %d, %q, want 0, Completed", c.ExitCode, c.Reason)
	}
	for range 2 {
		if err := b.Client.RemoveContainer(b.ctx(), id); err != nil {
			t.Fatalf("removing: %v", err)
		}
	}
	if _, err := b.Client.ContainerStatus(b.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("status of a removed container: got %v, want %v", err, runtime.ErrNotFound)
	}
	if err := b.Client.StartContainer(b.ctx(), id); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("starting a removed container: got %v, want %v", err, runtime.ErrNotFound)
	}
}

// testContainerUser checks the user of the first process after it has run. A runtime without
// supplemental groups policies, such as containerd 1.6, need not report it.
func testContainerUser(t *testing.T, b *bench) {
	sandbox := b.sandboxConfig("user", 0)
	id := b.run(sandbox)
	config := b.containerConfig(sandbox, "app", "exit 0")
	security := config.Linux.SecurityContext
	security.RunAsUser, security.RunAsGroup = &api.Int64Value{Value: 1000}, &api.Int64Value{Value: 2000}
	security.SupplementalGroups = []int64{3000}
	container, err := b.Client.CreateContainer(b.ctx(), id, config, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Client.StartContainer(b.ctx(), container); err != nil {
		t.Fatal(err)
	}
	node, err := b.Client.Node(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	u := b.exited(container).User
	if u == nil && !node.SupplementalGroupsPolicy {
		return
	}
	// Runtimes differ in whether the primary group is among the supplemental ones.
	if u == nil || u.UID != 1000 || u.GID != 2000 || !slices.Contains(u.Groups, 3000) {
		t.Errorf("got user %+v, want 1000, group 2000 and supplemental group 3000", u)
	}
}

func testContainerName(t *testing.T, b *bench) {
	config := b.sandboxConfig("names", 0)
	sandbox := b.run(config)
	id := b.start(sandbox, config, "app", "exit 0")
	b.exited(id)
	// CRI-O returns the existing container. Nothing is created in either case.
	again, err := b.Client.CreateContainer(b.ctx(), sandbox, b.containerConfig(config, "app", "exit 0"), config)
	if again != id && !errors.Is(err, runtime.ErrNameReserved) {
		t.Errorf("name of an exited container: got %s, %v, want %s or %v", again, err, id, runtime.ErrNameReserved)
	}
	next := b.containerConfig(config, "app", "exit 0")
	next.Metadata.Attempt = 1
	if _, err := b.Client.CreateContainer(b.ctx(), sandbox, next, config); err != nil {
		t.Errorf("next attempt: %v", err)
	}
	if err := b.Client.RemoveContainer(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	b.create(sandbox, config, "app", "exit 0")
}

func testCreateFails(t *testing.T, b *bench) {
	config := b.sandboxConfig("none", 0)
	sandbox := b.run(config)
	absent := b.containerConfig(config, "app", "exit 0")
	absent.Image = &api.ImageSpec{Image: "podd.test/absent:1"}
	if _, err := b.Client.CreateContainer(b.ctx(), sandbox, absent, config); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("creating a container of a missing image: got %v, want %v", err, runtime.ErrNotFound)
	}
	good := b.containerConfig(config, "app", "exit 0")
	if _, err := b.Client.CreateContainer(b.ctx(), strings.Repeat("f", 64), good, config); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("creating a container in no sandbox: got %v, want %v", err, runtime.ErrNotFound)
	}
	if err := b.Client.StopPodSandbox(b.ctx(), sandbox); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Client.CreateContainer(b.ctx(), sandbox, good, config); err == nil {
		t.Error("creating a container in a stopped sandbox: got no error")
	}
}

func testStartFails(t *testing.T, b *bench) {
	config := b.sandboxConfig("bad", 0)
	sandbox := b.run(config)
	c := b.containerConfig(config, "app", "")
	c.Command = []string{"/no/such/program"}
	id, err := b.Client.CreateContainer(b.ctx(), sandbox, c, config)
	created := err == nil
	if created {
		err = b.Client.StartContainer(b.ctx(), id)
	}
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") || strings.Contains(err.Error(), "shim") {
		t.Errorf("got error %v, want one that names the program and not the shim", err)
	}
	if !created { // CRI-O: runc looks up the program at the creation of the container
		if all, err := b.Client.SandboxContainers(b.ctx(), sandbox); err != nil || len(all) > 0 {
			t.Errorf("containers after a failed creation: got %+v, %v, want none", all, err)
		}
		return
	}
	if got := b.exited(id); got.ExitCode != 128 || got.Reason != "StartError" || !got.StartedAt.Before(time.Unix(1, 0)) {
		t.Errorf("got %+v, want it exited with 128, StartError, never started", got)
	}
}

func testStop(t *testing.T, b *bench) {
	config := b.sandboxConfig("polite", 0)
	sandbox := b.run(config)
	id := b.start(sandbox, config, "app", "trap 'exit 0' TERM; echo up; sleep 1000 & wait")
	b.logged(config, "app", "up")
	began := time.Now()
	if err := b.Client.StopContainer(b.ctx(), id, 50*time.Second); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("got a stop after %v, want it on TERM", took)
	}
	if c := b.status(id); c.State != runtime.Exited || c.ExitCode != 0 {
		t.Errorf("got %+v, want it exited with 0", c)
	}
	if err := b.Client.StopContainer(b.ctx(), id, time.Second); err != nil {
		t.Errorf("stopping it again: got %v", err)
	}
	if err := b.Client.StopContainer(b.ctx(), b.create(sandbox, config, "idle", "exit 0"), time.Second); err != nil {
		t.Errorf("stopping a container that never ran: got %v", err)
	}
	if err := b.Client.StopContainer(b.ctx(), strings.Repeat("f", 64), 0); err != nil {
		t.Errorf("stopping a container that does not exist: got %v", err)
	}
}

func testStopKills(t *testing.T, b *bench) {
	config := b.sandboxConfig("stubborn", 0)
	sandbox := b.run(config)
	id := b.start(sandbox, config, "app", "trap '' TERM; echo up; sleep 1000")
	b.logged(config, "app", "up")
	began := time.Now()
	if err := b.Client.StopContainer(b.ctx(), id, 900*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Errorf("got the kill after %v, want at least 900ms", took)
	}
	if c := b.status(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("got %+v, want it exited with 137", c)
	}
	id = b.start(sandbox, config, "now", "trap '' TERM; sleep 1000")
	if err := b.Client.StopContainer(b.ctx(), id, 0); err != nil {
		t.Fatal(err)
	}
	if c := b.status(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("without a grace period: got %+v, want it exited with 137", c)
	}
}

// testStopShorter checks that a stop with a shorter grace period takes precedence over one in
// progress.
func testStopShorter(t *testing.T, b *bench) {
	config := b.sandboxConfig("late", 0)
	id := b.start(b.run(config), config, "app", "trap '' TERM; echo up; sleep 1000")
	b.logged(config, "app", "up")
	first := make(chan error, 1)
	go func() { first <- b.Client.StopContainer(b.ctx(), id, 500*time.Second) }()
	b.wait(200 * time.Millisecond)
	if err := b.Client.StopContainer(b.ctx(), id, time.Second); err != nil {
		t.Errorf("the shorter stop: %v", err)
	}
	if err := <-first; err != nil {
		t.Errorf("the longer stop: %v", err)
	}
	if c := b.status(id); c.State != runtime.Exited || c.ExitCode != 137 {
		t.Errorf("got %+v, want it exited with 137", c)
	}
}

func testLog(t *testing.T, b *bench) {
	config := b.sandboxConfig("loud", 0)
	id := b.start(b.run(config), config, "app", "echo hello; sleep 1000")
	b.logged(config, "app", "hello")
	path := filepath.Join(config.LogDirectory, "app.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Client.ReopenContainerLog(b.ctx(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("after the log was reopened: %v", err)
	}
}

// logged waits until a container has written a line to its log.
func (b *bench) logged(sandbox *api.PodSandboxConfig, container, line string) {
	b.t.Helper()
	path := filepath.Join(sandbox.LogDirectory, container+".log")
	var last string
	for range 6000 {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			b.t.Fatal(err)
		}
		for l := range strings.Lines(string(content)) {
			last = l
			// <RFC3339Nano> stdout F <text>
			if fields := strings.SplitN(strings.TrimSuffix(l, "\n"), " ", 4); len(fields) == 4 && fields[1] == "stdout" && fields[2] == "F" && fields[3] == line {
				if _, err := time.Parse(time.RFC3339Nano, fields[0]); err != nil {
					b.t.Errorf("time in the log: %v", err)
				}
				return
			}
		}
		b.wait(10 * time.Millisecond)
	}
	b.t.Fatalf("want %q in the log, got the last line %q", line, last)
}

func testExec(t *testing.T, b *bench) {
	config := b.sandboxConfig("exec", 0)
	id := b.start(b.run(config), config, "app", "sleep 1000")
	got, err := b.Client.ExecSync(b.ctx(), id, []string{"/bin/sh", "-c", "echo twelve bytes; exit 4"}, time.Minute, 6)
	if err != nil || got.ExitCode != 4 || string(got.Stdout) != "twelve" || !got.Truncated {
		t.Errorf("exit 4: got %+v, %v", got, err)
	}
	if got, err = b.Client.ExecSync(b.ctx(), id, []string{"/bin/sh", "-c", "echo all"}, 0, 100); err != nil || string(got.Stdout) != "all\n" || got.Truncated {
		t.Errorf("without a limit: got %+v, %v", got, err)
	}
	_, err = b.Client.ExecSync(b.ctx(), id, []string{"/bin/sleep", "100"}, time.Second, 10)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("slow command: got %v, want %v and nothing else", err, context.DeadlineExceeded)
	}
	if _, err := b.Client.ExecSync(b.ctx(), strings.Repeat("f", 64), []string{"true"}, 0, 10); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("command in no container: got %v, want %v", err, runtime.ErrNotFound)
	}
}

func testImages(t *testing.T, b *bench) {
	i, present, err := b.Client.ImageStatus(b.ctx(), b.Image)
	if err != nil || !present || i.ID == "" {
		t.Fatalf("image status: got %+v, %v, %v", i, present, err)
	}
	if byID, present, err := b.Client.ImageStatus(b.ctx(), i.ID); err != nil || !present || byID.ID != i.ID {
		t.Errorf("image status by ID: got %+v, %v, %v", byID, present, err)
	}
	if i, present, err := b.Client.ImageStatus(b.ctx(), "podd.test/absent:1"); err != nil || present {
		t.Errorf("status of a missing image: got %+v, %v, %v", i, present, err)
	}
	if i, present, err := b.Client.ImageStatus(b.ctx(), "Not A Name"); err != nil || present {
		t.Errorf("status of an invalid name: got %+v, %v, %v", i, present, err)
	}
	var failed *runtime.PullError
	if _, err := b.Client.PullImage(b.ctx(), "Not A Name", nil, nil); !errors.As(err, &failed) || failed.Reason != "InvalidImageName" {
		t.Errorf("pulling an invalid name: got %v, want the reason InvalidImageName", err)
	}
	all, err := b.Client.ListImages(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, one := range all {
		found = found || one.ID == i.ID
	}
	if !found {
		t.Errorf("want %s in the list, got %d other images", i.ID, len(all))
	}
	if err := b.Client.RemoveImage(b.ctx(), "podd.test/absent:1"); err != nil {
		t.Errorf("removing a missing image: got %v", err)
	}
	if images, _, err := b.Client.ImageFsInfo(b.ctx()); err != nil || len(images) == 0 || images[0].Mountpoint == "" {
		t.Errorf("got filesystems %+v, %v", images, err)
	}
}
