//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newLoopDevice creates a file and a loop device for the file.
func newLoopDevice(t *testing.T, dir string) (device, file string) {
	t.Helper()
	file = filepath.Join(dir, "disk")
	data := make([]byte, 1<<20)
	copy(data, "first")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", file).Output()
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("losetup: %v: %s", err, out)
		}
	})
	return device, file
}

// blockVolume returns a PersistentVolume of a block device and a claim that is bound to it.
func blockVolume(path string) (*v1.PersistentVolume, *v1.PersistentVolumeClaim) {
	pv := &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, VolumeMode: new(v1.PersistentVolumeBlock),
			Capacity:               v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
		},
	}
	c := newClaim("disk", v1.ReadWriteOnce)
	c.Spec.VolumeMode, c.Spec.VolumeName = new(v1.PersistentVolumeBlock), "disk"
	return pv, c
}

// TestBlockDevice checks that a container can access the device of its claim, even if the volume
// names the device by a symlink. The container must not access another device of the host, and
// must not write to a read-only device.
func TestBlockDevice(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	device, file := newLoopDevice(t, d.dir)
	byID := filepath.Join(d.dir, "by-id")
	if err := os.Symlink(device, byID); err != nil {
		t.Fatal(err)
	}
	pv, c := blockVolume(byID)
	p := d.pod("web", shell("main", writeTrace("web.disk", "head -c 5 /dev/own; echo; ls "+device)+"printf second | dd of=/dev/own bs=512 seek=1 conv=notrunc,fsync; "+serve("web")))
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "disk", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
	}})
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: "disk", MountPath: "/data"})
	d.write("disk", manifestText(d, pv, c))
	d.apply(p)
	d.untilProblem("web", "has volumeMode Block, but container main has it in volumeMounts; move it to volumeDevices")
	p.Spec.Containers[0].VolumeMounts = p.Spec.Containers[0].VolumeMounts[:len(p.Spec.Containers[0].VolumeMounts)-1]
	p.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk", DevicePath: "/dev/own"}}
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "tape", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "disk", ReadOnly: true},
	}})
	reader := shell("reader", writeTrace("web.tape", "head -c 5 /dev/tape; echo; echo third >/dev/tape")+serve("reader"))
	reader.VolumeDevices = []v1.VolumeDevice{{Name: "tape", DevicePath: "/dev/tape"}}
	p.Spec.Containers = append(p.Spec.Containers, reader)
	d.apply(p)
	d.untilApplied("web")
	if got := d.readTrace("web.tape"); !strings.HasPrefix(got, "first\n") || !strings.Contains(got, "Operation not permitted") {
		t.Errorf("trace of the container with the read-only device: got %q; want text that begins with %q and with %q", got, "first\n", "Operation not permitted")
	}
	if got := d.readTrace("web.disk"); !strings.HasPrefix(got, "first\n") || !strings.Contains(got, "No such file") {
		t.Errorf("trace of container main: got %q; want text that begins with %q and with %q", got, "first\n", "No such file")
	}
	d.eventually("the container has written to the device", func() error {
		text, err := os.ReadFile(file)
		if err == nil && string(text[512:518]) != "second" {
			err = fmt.Errorf("second block of the device: got %q, want %q", text[512:518], "second")
		}
		return err
	})
	d.remove("web")
	d.untilGone("web")
	d.wantNothingLeft()
}

// TestVolumeOfAnotherNode checks that a pod waits while the nodeAffinity of its volume does not match
// the node.
func TestVolumeOfAnotherNode(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	pv, c := blockVolume(t.TempDir())
	pv.Spec.VolumeMode, c.Spec.VolumeMode = nil, nil
	on := func(host string) *v1.PersistentVolume {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{host}}},
		}}}}
		return pv
	}
	d.write("disk", manifestText(d, on("another"), c))
	d.apply(d.podWithClaim("web", "disk"))
	d.untilProblem("web", `PersistentVolumeClaim "disk" (web.yaml:`, `cannot use the PersistentVolume "disk": its nodeAffinity does not match the labels of this node`)
	d.write("disk", manifestText(d, on(d.host), c))
	d.untilApplied("web")
}
