//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// containersOfInstance returns the IDs of the running containers with an instance label, by
// container name.
func (d *daemon) containersOfInstance(instance string) map[string]string {
	d.t.Helper()
	reply, err := cri.NewRuntimeServiceClient(d.dial()).ListContainers(d.t.Context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		LabelSelector: map[string]string{runtime.LabelInstance: instance},
	}})
	if err != nil {
		d.t.Fatal(err)
	}
	ids := map[string]string{}
	for _, c := range reply.GetContainers() {
		ids[c.GetMetadata().GetName()] = c.GetId()
	}
	return ids
}

// TestLostRootDirectory moves podd's root directory away while pods run, and starts podd with a new root
// directory. podd must report a problem that names the flag with which it adopts the pods. With this
// flag the desired pods must keep running. Other pods of the old root directory must stop with their
// grace period.
func TestLostRootDirectory(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	keep := d.pod("keep", shell("kept", "echo data >/data/f; "+singletonScript("keep")))
	keep.Spec.Volumes = append(keep.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	keep.Spec.Containers[0].VolumeMounts = append(keep.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
	d.apply(keep)
	d.untilApplied("keep")
	d.apply(d.pod("drop", shell("dropped", singletonScript("drop"))))
	d.untilApplied("drop")
	lost, was := d.instanceLabel(), d.containersOfInstance(d.instanceLabel())
	d.untilNoted("keep runs", "drop runs")

	d.kill()
	moved := filepath.Join(d.dir, "moved")
	if err := os.Rename(d.root(), moved); err != nil {
		t.Fatal(err)
	}
	d.remove("drop")
	d.start()
	d.untilProblem("keep", "--adopt-instance="+lost)
	if now := d.containersOfInstance(lost); now["kept"] != was["kept"] || now["dropped"] != was["dropped"] {
		t.Errorf("without --adopt-instance: got running containers %v, want %v", now, was)
	}

	d.kill()
	d.args = append(d.args, "--adopt-instance="+lost)
	d.start()
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM")
	d.untilNoProblems()
	if now := d.containersOfInstance(lost); now["kept"] != was["kept"] {
		t.Errorf("with --adopt-instance: got running containers %v, want container kept as in %v", now, was)
	}
	if text, _, code := d.outcome(nil, "exec", "keep", "--", "cat", "/data/f"); text != "data\n" {
		t.Errorf("data in the volume of the adopted pod: got %q (exit code %d), want %q", text, code, "data\n")
	}

	// Another podd with the old root directory must refuse to start, because it would control the same pods.
	other := newDaemon(t, shared)
	other.host = d.host
	if err := os.Rename(moved, other.root()); err != nil {
		t.Fatal(err)
	}
	other.wantRefused("instance "+lost, "PID "+strconv.Itoa(d.proc.pid()))
	if err := os.Rename(other.root(), moved); err != nil {
		t.Fatal(err)
	}

	d.args = d.args[:len(d.args)-1] // the flag is needed only once, because podd stores the adoption
	d.crash()
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM")

	other.args = []string{"--adopt-instance=" + d.instanceLabel()}
	other.wantRefused("instance "+d.instanceLabel(), "PID "+strconv.Itoa(d.proc.pid()))

	d.apply(d.pod("keep", shell("kept", singletonScript("keep"))))
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM", "keep TERM", "keep runs")
	if left := d.containersOfInstance(lost); len(left) > 0 {
		t.Errorf("after an edit of the adopted pod: got running containers %v with the label of the lost instance, want none", left)
	}
}

// wantRefused starts podd and waits until podd exits with an error that contains all parts.
func (d *daemon) wantRefused(parts ...string) {
	d.t.Helper()
	d.launch()
	if text := d.untilExited(parts...); strings.Contains(text, "running pod") {
		d.t.Errorf("log of the podd that must not start: got %q, want no message about running pods", text)
	}
}

// untilExited waits until podd exits, and returns podd's log. The test fails unless the log contains all
// parts.
func (d *daemon) untilExited(parts ...string) string {
	d.t.Helper()
	d.eventually("podd has exited", func() error {
		if d.proc.running() {
			return errors.New("podd is still running")
		}
		return nil
	})
	d.proc = nil
	text, err := os.ReadFile(d.logFile())
	if err != nil {
		d.t.Fatal(err)
	}
	if !containsAll(string(text), parts) {
		d.t.Errorf("log of the podd that has exited: got %q, want all of %q in it", text, parts)
	}
	if err := os.Remove(d.logFile()); err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}
