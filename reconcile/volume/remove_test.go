package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newPreparedDir returns a Dir with a prepared pod, which has a journal and a file f in each
// volume, and the paths of the volumes by name.
func newPreparedDir(t *testing.T) (d Dir, paths map[string]string) {
	t.Helper()
	d = newDir(t)
	paths, err := d.Prepare(t.Context(), newPod(emptyDirVolume("disk", "", ""), emptyDirVolume("mem", v1.StorageMediumMemory, "1Mi"), emptyDirVolume("mem2", v1.StorageMediumMemory, "1Mi")), nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(d.Root, uid, journalName), []byte("{}"), 0o600))
	for _, p := range paths {
		must(t, os.WriteFile(filepath.Join(p, "f"), []byte("x"), 0o600))
	}
	return d, paths
}

func TestRemove(t *testing.T) {
	d, _ := newPreparedDir(t)
	must(t, d.Remove(t.Context(), uid))
	must(t, d.Remove(t.Context(), uid))
	if names, _ := os.ReadDir(d.Root); len(names) > 0 || mountCount(t, d.Root) > 0 {
		t.Errorf("after Remove: got entries %v and %d mounts; want no entries and no mounts", names, mountCount(t, d.Root))
	}
	must(t, Dir{Root: filepath.Join(d.Root, "never")}.Remove(t.Context(), uid))
}

// TestRelease checks that Release removes the volumes and keeps the journal.
func TestRelease(t *testing.T) {
	d, _ := newPreparedDir(t)
	must(t, d.Release(t.Context(), uid))
	must(t, d.Release(t.Context(), uid))
	names, err := os.ReadDir(filepath.Join(d.Root, uid))
	must(t, err)
	if len(names) != 1 || names[0].Name() != journalName || mountCount(t, d.Root) > 0 {
		t.Errorf("after Release: got entries %v and %d mounts; want only the journal", names, mountCount(t, d.Root))
	}
	must(t, d.Release(t.Context(), "other"))
}

// TestRemove_Busy checks that Remove returns the mount in use and removes nothing until the mount is
// free.
func TestRemove_Busy(t *testing.T) {
	d, paths := newPreparedDir(t)
	f, err := os.Open(filepath.Join(paths["mem"], "f"))
	must(t, err)
	defer f.Close()
	var e *remainingMountsError
	if err := d.Remove(t.Context(), uid); !errors.As(err, &e) || !e.Busy || !slices.Equal(e.Mounts, []string{paths["mem"]}) {
		t.Fatalf("got error %#v, want a busy mount at %s", err, paths["mem"])
	}
	if _, err := os.Stat(filepath.Join(paths["disk"], "f")); err != nil {
		t.Errorf("file in another volume while the mount is busy: got error %v, want none", err)
	}
	f.Close()
	must(t, d.Remove(t.Context(), uid))
}

// TestRemove_OtherMounts checks that Remove and Release do not unmount the mounts of other programs
// and remove no file in them. The mounts are in a volume on disk, in a tmpfs, at a volume, at a
// file and at the pod's directory.
func TestRemove_OtherMounts(t *testing.T) {
	removals := map[string]func(Dir, context.Context, types.UID) error{"Remove": Dir.Remove, "Release": Dir.Release}
	for name, remove := range removals {
		for _, where := range []string{"disk/mnt", "mem/mnt", "mem", "disk", "disk/f", "../.."} {
			t.Run(name+"_"+strings.ReplaceAll(where, "/", "_"), func(t *testing.T) {
				d, paths := newPreparedDir(t)
				outside := t.TempDir()
				kept := filepath.Join(outside, "kept")
				must(t, os.WriteFile(kept, nil, 0o600))
				at := filepath.Join(filepath.Dir(paths["disk"]), where)
				source := outside
				if strings.HasSuffix(where, "/f") {
					source = kept
				} else {
					must(t, os.MkdirAll(at, 0o755))
				}
				bindMount(t, source, at)
				err := remove(d, t.Context(), uid)
				var e *remainingMountsError
				if !errors.As(err, &e) || e.Busy || e.Mounts[0] != filepath.Clean(at) {
					t.Fatalf("got error %v (%+v); want one with the mount at %s", err, e, at)
				}
				if _, err := os.Stat(kept); err != nil {
					t.Errorf("file in the mount after %s: got error %v, want none", name, err)
				}
				must(t, unix.Unmount(at, 0))
				must(t, remove(d, t.Context(), uid))
				if n := mountCount(t, d.Root); n > 0 {
					t.Errorf("after the second %s: got %d mounts, want 0", name, n)
				}
			})
		}
	}
}

// TestRemove_Links checks that Remove removes links in place of directories, and not their targets.
func TestRemove_Links(t *testing.T) {
	for _, at := range []string{uid, uid + "/volumes", uid + "/volumes/kubernetes.io~empty-dir"} {
		d := newDir(t)
		outside := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(outside, "volumes/kubernetes.io~empty-dir/x"), 0o755))
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(d.Root, at)), 0o750))
		must(t, os.Symlink(outside, filepath.Join(d.Root, at)))
		must(t, d.Remove(t.Context(), uid))
		if _, err := os.Stat(filepath.Join(outside, "volumes/kubernetes.io~empty-dir/x")); err != nil {
			t.Errorf("link %s: target after Remove: got error %v, want none", at, err)
		}
		if names, _ := os.ReadDir(d.Root); len(names) > 0 {
			t.Errorf("link %s: after Remove: got entries %v, want none", at, names)
		}
	}
}

// TestRemove_LinkedRoot checks that Remove finds mounts if Root is a link.
func TestRemove_LinkedRoot(t *testing.T) {
	real := newDir(t)
	must(t, os.MkdirAll(real.Root, 0o750))
	link := filepath.Join(t.TempDir(), "pods")
	must(t, os.Symlink(real.Root, link))
	d := Dir{Root: link}
	_, err := d.Prepare(t.Context(), newPod(emptyDirVolume("mem", v1.StorageMediumMemory, "")), nil)
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	if n := mountCount(t, real.Root); n > 0 {
		t.Errorf("after Remove: got %d mounts, want 0", n)
	}
}

// TestRemove_MountedRoot checks that Remove works, and keeps the mount, if Root is a mount point.
func TestRemove_MountedRoot(t *testing.T) {
	d := newDir(t)
	must(t, os.MkdirAll(d.Root, 0o750))
	bindMount(t, d.Root, d.Root)
	_, err := d.Prepare(t.Context(), newPod(emptyDirVolume("mem", v1.StorageMediumMemory, ""), emptyDirVolume("disk", "", "")), nil)
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	if names, _ := os.ReadDir(d.Root); len(names) > 0 || mountCount(t, d.Root) != 1 {
		t.Errorf("after Remove: got entries %v and %d mounts; want no entries and the mount of Root", names, mountCount(t, d.Root))
	}
}

func TestEmptyDirUsage(t *testing.T) {
	d := newDir(t)
	pod := newPod(emptyDirVolume("disk", "", "1Mi"), emptyDirVolume("mem", v1.StorageMediumMemory, "4Mi"))
	volumes := pod.Object.Spec.Volumes
	if _, exists, err := d.EmptyDirUsage(t.Context(), pod.UID, &volumes[0]); err != nil || exists {
		t.Errorf("EmptyDirUsage before Prepare: got exists %v, error %v; want false", exists, err)
	}
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	for _, p := range paths {
		must(t, os.WriteFile(filepath.Join(p, "f"), make([]byte, 2<<20), 0o600))
		must(t, os.Symlink("/", filepath.Join(p, "link")))
	}
	for i := range volumes {
		u, exists, err := d.EmptyDirUsage(t.Context(), pod.UID, &volumes[i])
		must(t, err)
		if !exists || u.Excess != "" || u.Bytes < 2<<20 || u.Bytes > 2<<20+64<<10 {
			t.Errorf("volume %s: got %+v, want about 2 MiB", volumes[i].Name, u)
		}
	}
}
