package volume

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestMeasure checks that only the directories of volumes are measured, regardless of links
// that a container creates in them.
func TestMeasure(t *testing.T) {
	d := newDir(t)
	d.ClaimsDir = filepath.Join(t.TempDir(), "claims")
	pod := newPod(emptyDirVolume("disk", "", ""), emptyDirVolume("mem", v1.StorageMediumMemory, "4Mi"),
		v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
		v1.Volume{Name: "share", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: "silent", Path: "/"}}},
		v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "db"}}},
		v1.Volume{Name: "away", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}},
	)
	pod.Object.Namespace, pod.Object.UID = pod.Key.Namespace, pod.UID
	if got, err := d.Measure(t.Context(), pod.Object); err != nil || len(got) > 0 {
		t.Errorf("Measure before Prepare: got %v, error %v; want none", got, err)
	}
	kept := *pod.Object
	kept.Spec.Volumes = kept.Spec.Volumes[:2]
	prepared := *pod
	prepared.Object = &kept
	paths, err := d.Prepare(t.Context(), &prepared, nil)
	must(t, err)
	claim := filepath.Join(d.ClaimsDir, pod.Object.Namespace, "db")
	must(t, os.MkdirAll(claim, 0o755))
	uses := filepath.Join(d.Root, string(pod.UID), "volumes", "podd~claim")
	must(t, os.MkdirAll(uses, 0o755))
	must(t, os.Symlink(filepath.Join(pod.Object.Namespace, "db"), filepath.Join(uses, "data")))
	paths["data"] = claim
	for _, p := range paths {
		must(t, os.WriteFile(filepath.Join(p, "f"), make([]byte, 2<<20), 0o600))
		must(t, os.Symlink("/", filepath.Join(p, "link")))
	}
	got, err := d.Measure(t.Context(), pod.Object)
	must(t, err)
	want := []VolumeUsage{{Name: "disk", CountsAsEphemeral: true}, {Name: "mem"}, {Name: "data", Claim: "db"}}
	for i, m := range got {
		if i >= len(want) || m.Name != want[i].Name || m.CountsAsEphemeral != want[i].CountsAsEphemeral || m.Claim != want[i].Claim || m.Source != "du" || m.Took <= 0 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if m.Used.Excess != "" || m.Used.Bytes < 2<<20 || m.Used.Bytes > 2<<20+64<<10 || m.Used.Inodes != 3 || m.Capacity < m.Available || m.Capacity == 0 {
			t.Errorf("volume %s: got %+v, want about 2 MiB in 3 inodes", m.Name, m)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	must(t, os.RemoveAll(paths["disk"]))
	must(t, os.Symlink("/", paths["disk"]))
	if got, err := d.Measure(t.Context(), pod.Object); err == nil || len(got) != 2 || got[0].Name != "mem" {
		t.Errorf("Measure with a link in place of a directory: got %+v, error %v; want 2 volumes and an error", got, err)
	}
	kept.UID = "../x"
	if _, err := d.Measure(t.Context(), &kept); err == nil {
		t.Error("Measure with UID ../x: got no error, want one")
	}
}
