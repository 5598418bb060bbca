package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestPrepare checks the paths, modes and groups of volumes, and that a second Prepare changes nothing.
func TestPrepare(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	d := newDir(t)
	group := int64(4321)
	pod := newPod(emptyDirVolume("disk", "", ""), emptyDirVolume("mem", v1.StorageMediumMemory, "1Mi"), hostPathVolume("etc", "/etc", v1.HostPathDirectory))
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	before := pod.Object.DeepCopy()
	first, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	base := filepath.Join(d.Root, uid, "volumes/kubernetes.io~empty-dir")
	want := map[string]string{"disk": filepath.Join(base, "disk"), "mem": filepath.Join(base, "mem"), "etc": "/etc"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for name, mode := range map[string]uint32{"disk": 0o2777, "mem": 0o3777} {
		var st unix.Stat_t
		must(t, unix.Stat(first[name], &st))
		if st.Mode&0o7777 != mode || st.Gid != 4321 {
			t.Errorf("volume %s: got mode %o and group %d; want mode %o and group 4321", name, st.Mode&0o7777, st.Gid, mode)
		}
	}
	info, err := os.Stat(filepath.Join(d.Root, uid))
	must(t, err)
	if info.Mode().Perm() != 0o750 {
		t.Errorf("mode of the pod directory: got %o, want 750", info.Mode().Perm())
	}
	must(t, os.Chmod(first["disk"], 0o700)) // a container may do this
	must(t, os.WriteFile(filepath.Join(first["mem"], "kept"), []byte("x"), 0o600))
	listed := listTree(t, d.Root)
	again, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("paths of the second Prepare (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(listed, listTree(t, d.Root)); diff != "" {
		t.Errorf("the second Prepare changed files (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, pod.Object); diff != "" {
		t.Errorf("Prepare modified the pod (-before +after):\n%s", diff)
	}
}

// TestPrepare_MemorySize checks that a memory-backed volume has the size of its sizeLimit.
func TestPrepare_MemorySize(t *testing.T) {
	d := newDir(t)
	pod := newPod(emptyDirVolume("mem", v1.StorageMediumMemory, "1Mi"))
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	file := filepath.Join(paths["mem"], "f")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing 2 MiB: got error %v, want %v", err, unix.ENOSPC)
	}
	if err := os.WriteFile(file, make([]byte, 512<<10), 0o600); err != nil {
		t.Errorf("writing 512 KiB: got error %v, want none", err)
	}
}

// TestPrepare_Crash checks that Prepare completes the emptyDirs of an interrupted Prepare.
func TestPrepare_Crash(t *testing.T) {
	d := newDir(t)
	base := filepath.Join(d.Root, uid, "volumes/kubernetes.io~empty-dir")
	must(t, os.MkdirAll(filepath.Join(base, "mem"), 0o750))
	must(t, os.MkdirAll(filepath.Join(base, ".new.4F7Q"), 0o700))
	_, err := d.Prepare(t.Context(), newPod(emptyDirVolume("disk", "", ""), emptyDirVolume("mem", v1.StorageMediumMemory, "")), nil)
	must(t, err)
	if n := mountCount(t, filepath.Join(base, "mem")); n != 1 {
		t.Errorf("volume mem: got %d mounts, want 1", n)
	}
	info, err := os.Stat(filepath.Join(base, "disk"))
	must(t, err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("mode of volume disk: got %o, want 777", info.Mode().Perm())
	}
}

// TestPrepare_Errors checks that the error of Prepare contains the error of every volume.
func TestPrepare_Errors(t *testing.T) {
	dir := t.TempDir()
	pod := newPod(
		hostPathVolume("gone", filepath.Join(dir, "gone"), v1.HostPathDirectory),
		v1.Volume{Name: "conf", VolumeSource: v1.VolumeSource{CephFS: &v1.CephFSVolumeSource{}}},
		emptyDirVolume("huge", v1.StorageMediumHugePages, ""),
		v1.Volume{Name: "../up", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	)
	d := newDir(t)
	_, err := d.Prepare(t.Context(), pod, nil)
	var first *Error
	if !errors.As(err, &first) || first.Volume != "gone" || first.Pod != pod.Key {
		t.Fatalf("first error: got error %#v, want an *Error with the volume gone and its pod", err)
	}
	for _, want := range []string{
		`preparing volume "gone" of pod default/web-node1: ` + dir + `/gone: the path does not exist, but hostPath.type requires a directory; create it, or use type DirectoryOrCreate`,
		`preparing volume "conf" of pod default/web-node1: podd does not support this volume type`,
		`medium "HugePages": the pod requests no huge pages`,
		`preparing volume "../up"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// TestPrepare_Links checks that Prepare fails, and creates nothing, if a directory of the pod is a link.
func TestPrepare_Links(t *testing.T) {
	outside := t.TempDir()
	for _, at := range []string{
		uid, uid + "/volumes", uid + "/volumes/kubernetes.io~empty-dir", uid + "/volumes/kubernetes.io~empty-dir/data",
	} {
		for _, medium := range []v1.StorageMedium{"", v1.StorageMediumMemory} {
			d := newDir(t)
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(d.Root, at)), 0o750))
			must(t, os.Symlink(outside, filepath.Join(d.Root, at)))
			if _, err := d.Prepare(t.Context(), newPod(emptyDirVolume("data", medium, "")), nil); err == nil {
				t.Errorf("link %s, medium %q: got no error, want one", at, medium)
			}
			if names, _ := os.ReadDir(outside); len(names) > 0 || mountCount(t, outside) > 0 {
				t.Fatalf("link %s, medium %q: target of the link: got entries %v and %d mounts; want no entries and no mounts", at, medium, names, mountCount(t, outside))
			}
		}
	}
}

// TestPrepare_OtherMounts checks that Prepare fails if another program has mounted a file system at a
// volume.
func TestPrepare_OtherMounts(t *testing.T) {
	d := newDir(t)
	base := filepath.Join(d.Root, uid, "volumes/kubernetes.io~empty-dir")
	for _, name := range []string{"disk", "mem"} {
		must(t, os.MkdirAll(filepath.Join(base, name), 0o750))
		bindMount(t, t.TempDir(), filepath.Join(base, name))
	}
	for _, v := range []v1.Volume{emptyDirVolume("disk", "", ""), emptyDirVolume("mem", v1.StorageMediumMemory, "")} {
		if _, err := d.Prepare(t.Context(), newPod(v), nil); err == nil || !strings.Contains(err.Error(), "mounted") {
			t.Errorf("volume %s: got error %v, want one with \"mounted\"", v.Name, err)
		}
	}
}

// TestInvalidUIDs checks that UIDs that are not valid directory names are rejected.
func TestInvalidUIDs(t *testing.T) {
	d := newDir(t)
	for _, bad := range []string{"", ".", "..", "a/b", "a_b", "../x", strings.Repeat("a", 64), "a\nb", "ü"} {
		pod := newPod()
		pod.UID = types.UID(bad)
		if _, err := d.Prepare(t.Context(), pod, nil); err == nil {
			t.Errorf("Prepare with UID %q: got no error, want one", bad)
		}
		if err := d.Remove(t.Context(), pod.UID); err == nil {
			t.Errorf("Remove with UID %q: got no error, want one", bad)
		}
		if _, _, err := d.EmptyDirUsage(t.Context(), pod.UID, &v1.Volume{}); err == nil {
			t.Errorf("EmptyDirUsage with UID %q: got no error, want one", bad)
		}
	}
}

func TestPrepare_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newDir(t).Prepare(ctx, newPod(emptyDirVolume("a", "", "")), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}
