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

// TestLostRootDirectory moves the root directory away while its pods run, and starts podd with a
// new root directory. The problem that podd reports must name the flag that adopts the pods.
// With this flag the desired pods must keep running, and the other pods must stop with their
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
		t.Errorf("without the flag: got running containers %v, want %v", now, was)
	}

	d.kill()
	d.args = append(d.args, "--adopt-instance="+lost)
	d.start()
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM")
	d.untilNoProblems()
	if now := d.containersOfInstance(lost); now["kept"] != was["kept"] {
		t.Errorf("with the flag: got running containers %v, want %v", now, was)
	}
	if text, _, code := d.outcome(nil, "exec", "keep", "--", "cat", "/data/f"); text != "data\n" {
		t.Errorf("the volume: got %q, code %d, want %q", text, code, "data\n")
	}

	// A podd with the moved directory must not control the same pods.
	other := newDaemon(t, shared)
	other.host = d.host
	if err := os.Rename(moved, other.root()); err != nil {
		t.Fatal(err)
	}
	other.wantRefused("instance "+lost, "PID "+strconv.Itoa(d.proc.pid()))
	if err := os.Rename(other.root(), moved); err != nil {
		t.Fatal(err)
	}

	d.args = d.args[:len(d.args)-1] // the adoption is stored
	d.crash()
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM")

	other.args = []string{"--adopt-instance=" + d.instanceLabel()}
	other.wantRefused("instance "+d.instanceLabel(), "PID "+strconv.Itoa(d.proc.pid()))

	d.apply(d.pod("keep", shell("kept", singletonScript("keep"))))
	d.untilApplied("keep")
	d.untilNoted("keep runs", "drop runs", "drop TERM", "keep TERM", "keep runs")
	if left := d.containersOfInstance(lost); len(left) > 0 {
		t.Errorf("got running containers of the lost instance %v, want none", left)
	}
}

// wantRefused starts podd and waits until podd exits with an error that contains all parts.
func (d *daemon) wantRefused(parts ...string) {
	d.t.Helper()
	d.launch()
	if text := d.untilExited(parts...); strings.Contains(text, "running pod") {
		d.t.Errorf("podd that was refused: got a message about running pods, want none: %q", text)
	}
}

// untilExited waits until podd exits. The error must contain all parts. untilExited returns the
// log of podd.
func (d *daemon) untilExited(parts ...string) string {
	d.t.Helper()
	d.eventually("podd ends", func() error {
		if d.proc.running() {
			return errors.New("it is running")
		}
		return nil
	})
	d.proc = nil
	text, err := os.ReadFile(d.logFile())
	if err != nil {
		d.t.Fatal(err)
	}
	if !containsAll(string(text), parts) {
		d.t.Errorf("podd ended with %q, want %q", text, parts)
	}
	if err := os.Remove(d.logFile()); err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}
