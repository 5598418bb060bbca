package volume

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

func prepared(t *testing.T) (Dir, map[string]string) {
	t.Helper()
	d := newDir(t)
	paths, err := d.Prepare(t.Context(), podOf(empty("disk", "", ""), empty("mem", v1.StorageMediumMemory, "1Mi"), empty("mem2", v1.StorageMediumMemory, "1Mi")), nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(d.Root, uid, journal), []byte("{}"), 0o600))
	for _, p := range paths {
		must(t, os.WriteFile(filepath.Join(p, "f"), []byte("x"), 0o600))
	}
	return d, paths
}

func TestRemove(t *testing.T) {
	d, _ := prepared(t)
	must(t, d.Remove(t.Context(), uid))
	must(t, d.Remove(t.Context(), uid))
	if names, _ := os.ReadDir(d.Root); len(names) > 0 || mountCount(t, d.Root) > 0 {
		t.Errorf("left: %v, %d mounts", names, mountCount(t, d.Root))
	}
	must(t, Dir{Root: filepath.Join(d.Root, "never")}.Remove(t.Context(), uid))
}

func TestReleaseKeepsTheJournal(t *testing.T) {
	d, _ := prepared(t)
	must(t, d.Release(t.Context(), uid))
	must(t, d.Release(t.Context(), uid))
	names, err := os.ReadDir(filepath.Join(d.Root, uid))
	must(t, err)
	if len(names) != 1 || names[0].Name() != journal || mountCount(t, d.Root) > 0 {
		t.Errorf("left: %v, %d mounts; want the journal alone", names, mountCount(t, d.Root))
	}
	must(t, d.Release(t.Context(), "other"))
}

func TestRemoveSaysWhatIsBusy(t *testing.T) {
	d, paths := prepared(t)
	f, err := os.Open(filepath.Join(paths["mem"], "f"))
	must(t, err)
	defer f.Close()
	var e *MountError
	if err := d.Remove(t.Context(), uid); !errors.As(err, &e) || !e.Busy || !slices.Equal(e.Mounts, []string{paths["mem"]}) {
		t.Fatalf("got %#v, want a busy mount at %s", err, paths["mem"])
	}
	if _, err := os.Stat(filepath.Join(paths["disk"], "f")); err != nil {
		t.Errorf("removed something while a mount was left: %v", err)
	}
	f.Close()
	must(t, d.Remove(t.Context(), uid))
}

// Mounts that podd did not make: in a volume on disk, in a tmpfs, over a
// volume, over a file, over the pod's directory.
func TestRemoveLeavesForeignMounts(t *testing.T) {
	for _, where := range []string{"disk/mnt", "mem/mnt", "mem", "disk", "disk/f", "../.."} {
		t.Run(strings.ReplaceAll(where, "/", "_"), func(t *testing.T) {
			d, paths := prepared(t)
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
			bind(t, source, at)
			err := d.Remove(t.Context(), uid)
			var e *MountError
			if !errors.As(err, &e) || e.Busy || e.Mounts[0] != filepath.Clean(at) {
				t.Fatalf("got %v (%+v), want the mount at %s", err, e, at)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("removed across a mount: %v", err)
			}
			must(t, unix.Unmount(at, 0))
			must(t, d.Remove(t.Context(), uid))
			if mountCount(t, d.Root) > 0 {
				t.Error("mounts are left")
			}
		})
	}
}

func TestRemoveOfLinksInPlaceOfDirectories(t *testing.T) {
	for _, at := range []string{uid, uid + "/volumes", uid + "/volumes/kubernetes.io~empty-dir"} {
		d := newDir(t)
		outside := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(outside, "volumes/kubernetes.io~empty-dir/x"), 0o755))
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(d.Root, at)), 0o750))
		must(t, os.Symlink(outside, filepath.Join(d.Root, at)))
		must(t, d.Remove(t.Context(), uid))
		if _, err := os.Stat(filepath.Join(outside, "volumes/kubernetes.io~empty-dir/x")); err != nil {
			t.Errorf("%s: removed through a link: %v", at, err)
		}
		if names, _ := os.ReadDir(d.Root); len(names) > 0 {
			t.Errorf("%s: left %v", at, names)
		}
	}
}

// A Root that is reached through a link has its mounts found all the same.
func TestRemoveBelowALinkedRoot(t *testing.T) {
	real := newDir(t)
	must(t, os.MkdirAll(real.Root, 0o750))
	link := filepath.Join(t.TempDir(), "pods")
	must(t, os.Symlink(real.Root, link))
	d := Dir{Root: link}
	_, err := d.Prepare(t.Context(), podOf(empty("mem", v1.StorageMediumMemory, "")), nil)
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	if mountCount(t, real.Root) > 0 {
		t.Error("mounts are left")
	}
}

func TestRemoveWhenRootIsAMountPoint(t *testing.T) {
	d := newDir(t)
	must(t, os.MkdirAll(d.Root, 0o750))
	bind(t, d.Root, d.Root)
	_, err := d.Prepare(t.Context(), podOf(empty("mem", v1.StorageMediumMemory, ""), empty("disk", "", "")), nil)
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	if names, _ := os.ReadDir(d.Root); len(names) > 0 || mountCount(t, d.Root) != 1 {
		t.Errorf("left: %v, %d mounts; want the one of Root", names, mountCount(t, d.Root))
	}
}

func TestEmptyDirUsage(t *testing.T) {
	d := newDir(t)
	pod := podOf(empty("disk", "", "1Mi"), empty("mem", v1.StorageMediumMemory, "4Mi"), empty("free", "", ""))
	limited := func(v *v1.Volume) bool { return v.EmptyDir.SizeLimit != nil }
	if got, err := d.EmptyDirUsage(t.Context(), pod, limited); err != nil || len(got) > 0 {
		t.Errorf("before it is prepared: %v, %v", got, err)
	}
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	for _, p := range paths {
		must(t, os.WriteFile(filepath.Join(p, "f"), make([]byte, 2<<20), 0o600))
		must(t, os.Symlink("/", filepath.Join(p, "link")))
	}
	got, err := d.EmptyDirUsage(t.Context(), pod, limited)
	must(t, err)
	for _, name := range []string{"disk", "mem"} {
		if u := got[name]; u.Excess != "" || u.Bytes < 2<<20 || u.Bytes > 2<<20+64<<10 {
			t.Errorf("%s: %+v, want about 2 MiB", name, u)
		}
	}
	if len(got) != 2 {
		t.Errorf("measured %v, want disk and mem alone", got)
	}
}
