package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/volume/disk"
	"podd/runtime/safepath"
)

const diskName = "iscsi-0123456789abcdef0123456789abcdef/lun-0"

func iscsiPod(readOnly bool) *v1.Volume {
	return &v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", ReadOnly: readOnly}}}
}

// newDiskPod returns a pod directory and the path of a mounted filesystem. The tests use this
// filesystem instead of the filesystem of an attached disk.
func newDiskPod(t *testing.T, d Dir) (p *podDir, source string) {
	t.Helper()
	pod := newPod(*iscsiPod(true))
	dir, err := d.openPodDir(uid)
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	p = d.newPodDir(pod, nil)
	p.dir = dir
	source = filepath.Join(filepath.Dir(d.Root), "disks", diskName, "mount")
	must(t, os.MkdirAll(source, 0o700))
	must(t, unix.Mount("tmpfs", source, "tmpfs", unix.MS_NODEV, "size=1m"))
	t.Cleanup(func() { unix.Unmount(source, unix.MNT_DETACH) })
	return p, source
}

// TestMeasure_Disk checks that the usage of a disk is that of its filesystem, and that a disk that is not
// mounted is omitted.
func TestMeasure_Disk(t *testing.T) {
	d := newDir(t)
	p, source := newDiskPod(t, d)
	pod := p.pod.Object
	pod.UID = p.pod.UID
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "claimed", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "db"}}})
	links := filepath.Join(d.Root, uid, volumesDir, disk.LinksDir)
	must(t, os.MkdirAll(links, 0o700))
	for _, name := range []string{"data", "claimed"} {
		must(t, os.Symlink(diskName, filepath.Join(links, name)))
	}
	must(t, os.WriteFile(filepath.Join(source, "f"), make([]byte, 256<<10), 0o600))
	if got, err := d.Measure(t.Context(), pod); err != nil || len(got) != 0 {
		t.Errorf("before the mount: got %+v, error %v, want no volumes", got, err)
	}
	must(t, p.bindDisk(source, iscsiPlugin, "data", true))
	must(t, p.bindDisk(source, fcPlugin, "claimed", true))
	got, err := d.Measure(t.Context(), pod)
	must(t, err)
	if len(got) != 2 || got[0].Name != "data" || got[0].Claim != "" || got[1].Name != "claimed" || got[1].Claim != "db" {
		t.Fatalf("got %+v, want the volumes data and claimed", got)
	}
	for _, m := range got {
		if m.Used.Bytes != 256<<10 || m.Used.Inodes != 2 || m.Capacity != 1<<20 || m.Available != 768<<10 || m.Inodes-m.InodesFree != 2 || m.Source != "statfs" || m.CountsAsEphemeral {
			t.Errorf("volume %s: got %+v, want 256 KiB of 1 MiB and 2 inodes used", m.Name, m)
		}
	}
	must(t, d.Remove(t.Context(), uid))
}

// TestBindDisk checks the mount of an attached disk in the directory of a pod, and its removal. The
// filesystem of the disk stays mounted, because another pod uses the disk.
func TestBindDisk(t *testing.T) {
	d := newDir(t)
	p, source := newDiskPod(t, d)
	must(t, os.WriteFile(filepath.Join(source, "it"), []byte("kept"), 0o600))
	path := filepath.Join(d.Root, uid, volumesDir, iscsiPlugin, "data")
	for range 2 { // the second call changes nothing
		must(t, p.bindDisk(source, iscsiPlugin, "data", true))
	}
	if n := mountCount(t, path); n != 1 {
		t.Errorf("mounts at the volume: got %d, want 1", n)
	}
	if text, err := os.ReadFile(filepath.Join(path, "it")); err != nil || string(text) != "kept" {
		t.Errorf("file of the disk: got %q (error %v), want \"kept\"", text, err)
	}
	if err := os.WriteFile(filepath.Join(path, "no"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to the read-only volume: got error %v, want %v", err, unix.EROFS)
	}
	must(t, os.WriteFile(filepath.Join(source, "yes"), nil, 0o600))
	var st unix.Statfs_t
	must(t, unix.Statfs(path, &st))
	if st.Flags&unix.ST_NODEV == 0 {
		t.Error("got a mount without nodev, want the options of the disk")
	}
	prepared, err := d.Prepare(t.Context(), p.pod, nil)
	if err != nil || prepared["data"] != path {
		t.Errorf("Prepare: got paths %v (error %v), want the path %s of the volume", prepared, err, path)
	}
	for _, pod := range []string{uid, "another-pod"} {
		dir := filepath.Join(d.Root, pod, volumesDir, disk.LinksDir)
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.Symlink(diskName, filepath.Join(dir, "data")))
	}
	must(t, d.Remove(t.Context(), uid))
	if n := mountCount(t, path); n != 0 {
		t.Errorf("got %d mounts after Remove, want none", n)
	}
	if _, err := os.Stat(filepath.Join(source, "it")); err != nil {
		t.Errorf("file of the disk that another pod uses: got error %v, want the file kept", err)
	}
	must(t, d.Remove(t.Context(), "another-pod"))
	if left, err := safepath.Names(filepath.Join(filepath.Dir(d.Root), "disks")); err != nil || len(left) > 0 {
		t.Errorf("remaining disks: got %v (error %v), want none", left, err)
	}
}

// TestCheckDisk checks values that an API server accepts, but that must not become arguments or paths.
func TestCheckDisk(t *testing.T) {
	lun := int32(0)
	for want, v := range map[string]v1.VolumeSource{
		"iscsi.targetPortal":   {ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "-d8", IQN: "iqn.2001-04.com.example:disk"}},
		"iscsi.iqn":            {ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:../../a"}},
		"iscsi.iscsiInterface": {ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", ISCSIInterface: "../a"}},
		"iscsi.fsType":         {ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk", FSType: "a/b"}},
		"fc.targetWWNs[0]":     {FC: &v1.FCVolumeSource{TargetWWNs: []string{".*"}, Lun: &lun}},
		"fc.wwids[0]":          {FC: &v1.FCVolumeSource{WWIDs: []string{"../sda"}}},
	} {
		d := newDir(t)
		pod := newPod(v1.Volume{Name: "data", VolumeSource: v})
		for _, err := range []error{d.Check(t.Context(), pod, nil, nil), func() error { _, err := d.Prepare(t.Context(), pod, nil); return err }()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one with %q", err, want)
			}
		}
	}
}

func TestChapCredentials(t *testing.T) {
	d := newDir(t)
	v := iscsiPod(false)
	v.ISCSI.SessionCHAPAuth, v.ISCSI.SecretRef = true, &v1.LocalObjectReference{Name: "chap"}
	_, err := d.Prepare(t.Context(), newPod(*v), filesFunc(nil))
	if err == nil || !strings.Contains(err.Error(), "the Secret with the CHAP credentials") {
		t.Errorf("got error %v, want one about the Secret", err)
	}
}
