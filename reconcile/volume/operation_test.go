package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
)

// recordOperations makes d record each operation as "plugin name" or "plugin name failed". It
// returns a function that returns the sorted operations since the last call of this function.
func recordOperations(d *Dir) (recorded func() []string) {
	var all []string
	d.OnOperation = func(o Operation) {
		text := o.Plugin + " " + o.Name
		if o.Err != nil {
			text += " failed"
		}
		if o.PodUID != uid || o.Volume == "" {
			text += fmt.Sprintf(" of pod %q, volume %q", o.PodUID, o.Volume)
		}
		if o.Took <= 0 {
			text += fmt.Sprintf(" in %v", o.Took)
		}
		all = append(all, text)
	}
	return func() []string {
		defer func() { all = nil }()
		slices.Sort(all)
		return all
	}
}

// TestOperations checks that each volume causes an operation when it is prepared and, if it has a
// directory, when it is removed.
func TestOperations(t *testing.T) {
	d, _ := newDirWithClaims(t)
	recorded := recordOperations(&d)
	pod := newPod(
		emptyDirVolume("disk", "", ""), emptyDirVolume("memory", v1.StorageMediumMemory, "4Mi"),
		hostPathVolume("host", t.TempDir(), v1.HostPathDirectory), hostPathVolume("missing", filepath.Join(t.TempDir(), "no"), v1.HostPathDirectory),
		v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
	)
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
	local := t.TempDir()
	if _, err := d.Prepare(t.Context(), pod, newClaim("file", localVolume("pv", local))); err == nil {
		t.Error("Prepare with a missing hostPath: got no error, want one")
	}
	want := []string{
		"kubernetes.io/empty-dir volume_mount", "kubernetes.io/empty-dir volume_mount",
		"kubernetes.io/host-path volume_mount", "kubernetes.io/host-path volume_mount failed",
		"kubernetes.io/local-volume volume_apply_access_control", "kubernetes.io/local-volume volume_mount",
	}
	if diff := cmp.Diff(want, recorded()); diff != "" {
		t.Errorf("Prepare: (-want +got)\n%s", diff)
	}
	busy := filepath.Join(d.Root, uid, "volumes", emptyDirPlugin, "memory")
	f, err := os.Create(filepath.Join(busy, "f")) // an open file keeps the tmpfs busy
	must(t, err)
	_ = d.Release(t.Context(), uid)
	failed := recorded()
	must(t, f.Close())
	if want := "kubernetes.io/empty-dir volume_unmount failed"; !slices.Contains(failed, want) {
		t.Errorf("Release with a busy volume: got %q, want %s", failed, want)
	}
	must(t, d.Release(t.Context(), uid))
	must(t, d.Remove(t.Context(), uid))
	want = []string{"kubernetes.io/empty-dir volume_unmount", "kubernetes.io/empty-dir volume_unmount", "kubernetes.io/local-volume volume_unmount"}
	if diff := cmp.Diff(want, recorded()); diff != "" {
		t.Errorf("Release and Remove: (-want +got)\n%s", diff)
	}
}

// TestOperations_CSI checks that the plugin of a CSI volume includes the driver.
func TestOperations_CSI(t *testing.T) {
	d, _ := newDirWithDriver(t)
	recorded := recordOperations(&d)
	pod := newPod(v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})
	d.ClaimsDir = filepath.Join(filepath.Dir(d.Root), "claims")
	content := csiContent{"data": {Driver: "host.csi.example.com", Handle: "h1", Volume: "pv-data"}}
	_, err := d.Prepare(t.Context(), pod, content)
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	want := []string{"kubernetes.io/csi:host.csi.example.com volume_mount", "kubernetes.io/csi:host.csi.example.com volume_unmount"}
	if diff := cmp.Diff(want, recorded()); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// TestPlugin_Block checks that the operation on a block device differs from that on a mount.
func TestPlugin_Block(t *testing.T) {
	p := &podDir{content: csiContent{"data": &refs.CSIVolume{Driver: "d", Block: true}}}
	if name, block := p.plugin(&v1.Volume{Name: "data"}); name != "kubernetes.io/csi:d" || !block {
		t.Errorf("got plugin %s, block: %t; want plugin kubernetes.io/csi:d, block: true", name, block)
	}
}
