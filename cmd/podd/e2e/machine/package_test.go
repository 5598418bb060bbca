//go:build e2e

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/tools"
)

// aptSources is the list of apt's sources in TestPackage. It contains only the repository in the
// payload, because the machine has no network.
const aptSources = "/etc/apt/sources.list.d/payload.list"

// apt runs apt-get without questions and returns its output. The words of args are separated by
// spaces.
func apt(t *testing.T, args string) string {
	t.Helper()
	out, err := system("env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y -o Dir::Etc::sourcelist=" + aptSources + " -o Dir::Etc::sourceparts=- " + args)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	return out
}

// TestPackage checks that the .deb package and a manifest are enough to run a pod on Debian. The pod
// must keep running when podd is upgraded, removed and purged. A purge after the command podd down must
// remove podd's data.
func TestPackage(t *testing.T) {
	if err := os.WriteFile(aptSources, []byte("deb [trusted=yes] file:/payload/repository ./\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	apt(t, "update")
	apt(t, "install "+debPackage(t, "1.0.0"))
	for _, unit := range []string{"podd", "containerd"} {
		run(t, "systemctl is-enabled "+unit)
		run(t, "systemctl is-active "+unit)
	}
	importImages(t)
	apply(t, map[string]string{"web": pod("web", "", container("web", forever, ""))})
	web := containerStatus(t)

	pid := property(t, "MainPID")
	apt(t, "install "+debPackage(t, "1.0.1"))
	if out, err := system("podd --version"); err != nil || !strings.Contains(out, "1.0.1") {
		t.Errorf("after the upgrade: got version %q, error %v; want 1.0.1", out, err)
	}
	if now := property(t, "MainPID"); now == pid || now == "0" {
		t.Errorf("after the upgrade: got main process %s, want one other than %s", now, pid)
	}
	if now := containerStatus(t); now.ContainerID != web.ContainerID || !now.State.Running.StartedAt.Equal(&web.State.Running.StartedAt) || now.RestartCount != 0 {
		t.Errorf("after the upgrade: got container %+v, want %+v", now, web)
	}

	if out := apt(t, "remove podd"); !strings.Contains(out, "the pods keep running") {
		t.Errorf("removal: got %s, want a message that the pods keep running", out)
	}
	checkRunning(t, "after the removal", web)
	if state := property(t, "ActiveState"); state != "inactive" {
		t.Errorf("after the removal: got state %s of the service, want inactive", state)
	}
	if out := apt(t, "purge podd"); !strings.Contains(out, `run "podd down" before`) {
		t.Errorf("purge: got %s, want the message 'run \"podd down\" before'", out)
	}
	checkRunning(t, "after the purge", web)
	if _, err := os.Stat("/etc/podd/config.yaml"); err == nil {
		t.Error("after the purge: got the file /etc/podd/config.yaml, want none")
	}

	apt(t, "install "+debPackage(t, "1.0.1"))
	if now := containerStatus(t); now.ContainerID != web.ContainerID {
		t.Errorf("after another installation: got container %s, want %s", now.ContainerID, web.ContainerID)
	}
	run(t, "podd down")
	if out := apt(t, "purge podd"); strings.Contains(out, "podd:") {
		t.Errorf("purge after podd down: got %s, want no message of podd", out)
	}
	for _, path := range []string{"/var/lib/podd", "/etc/cni/net.d/99-podd.conflist"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("after podd down and a purge: got %s, want it removed", path)
		}
	}
	if now, err := getInventory(t.Context()); err != nil || len(now.running) > 0 {
		t.Errorf("after podd down and a purge: got running %v, error %v; want none", now.running, err)
	}
}

// debPackage returns the path of podd's package of a version.
func debPackage(t *testing.T, version string) string {
	t.Helper()
	found, err := filepath.Glob("/payload/package-" + version + "/*.deb")
	if err != nil || len(found) != 1 {
		t.Fatalf("version %s: got packages %v, error %v; want one", version, found, err)
	}
	return found[0]
}

// importImages imports the test images. The machine cannot pull the sandbox image that Debian's
// containerd uses by default, so another image gets the name of the sandbox image.
func importImages(t *testing.T) {
	t.Helper()
	set, err := tools.Ensure(context.Background(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := system("containerd config default")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(config, `sandbox_image = "`)
	sandbox, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("containerd's configuration has no sandbox_image:\n%s", config)
	}
	run(t, "ctr --namespace k8s.io images import "+set.Images)
	run(t, "ctr --namespace k8s.io images tag podd.test/pause:1 "+sandbox)
}

// containerStatus waits until the pod web is ready and returns the status of its container.
func containerStatus(t *testing.T) (status v1.ContainerStatus) {
	t.Helper()
	eventually(t, "the container runs", func() error {
		all := untilReady(t, "web")["web"].Pod.Status.ContainerStatuses
		if len(all) != 1 || all[0].State.Running == nil {
			return fmt.Errorf("got container statuses %+v, want a running container", all)
		}
		status = all[0]
		return nil
	})
	return status
}

// checkRunning checks that the runtime still runs the container.
func checkRunning(t *testing.T, when string, want v1.ContainerStatus) {
	t.Helper()
	now, err := getInventory(t.Context())
	if err == nil && "containerd://"+now.running["web/web"] != want.ContainerID {
		err = errors.New("the runtime does not list the container")
	}
	if err != nil {
		t.Errorf("%s: %v: got running %v, want web/web with ID %s, started at %s", when, err, now.running, want.ContainerID, want.State.Running.StartedAt.Format(time.RFC3339))
	}
}
