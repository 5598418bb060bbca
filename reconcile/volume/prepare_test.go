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

func TestPrepareTwiceChangesNothing(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	d := newDir(t)
	group := int64(4321)
	pod := podOf(empty("disk", "", ""), empty("mem", v1.StorageMediumMemory, "1Mi"), host("etc", "/etc", v1.HostPathDirectory))
	pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	before := pod.Spec.DeepCopy()
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
			t.Errorf("%s: mode %o gid %d, want %o and 4321", name, st.Mode&0o7777, st.Gid, mode)
		}
	}
	info, err := os.Stat(filepath.Join(d.Root, uid))
	must(t, err)
	if info.Mode().Perm() != 0o750 {
		t.Errorf("pod directory has mode %o, want 750", info.Mode().Perm())
	}
	must(t, os.Chmod(first["disk"], 0o700)) // as a container may
	must(t, os.WriteFile(filepath.Join(first["mem"], "kept"), []byte("x"), 0o600))
	was := tree(t, d.Root)
	again, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("paths differ the second time:\n%s", diff)
	}
	if diff := cmp.Diff(was, tree(t, d.Root)); diff != "" {
		t.Errorf("the second time changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, pod.Spec); diff != "" {
		t.Errorf("Prepare wrote to the pod:\n%s", diff)
	}
}

func TestPrepareMemoryVolumeHasItsSize(t *testing.T) {
	d := newDir(t)
	pod := podOf(empty("mem", v1.StorageMediumMemory, "1Mi"))
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	file := filepath.Join(paths["mem"], "f")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing 2 MiB: got %v, want no space", err)
	}
	if err := os.WriteFile(file, make([]byte, 512<<10), 0o600); err != nil {
		t.Errorf("writing 512 KiB: %v", err)
	}
}

// An emptyDir whose making was cut short, before or after its mount.
func TestPrepareAfterACrash(t *testing.T) {
	d := newDir(t)
	base := filepath.Join(d.Root, uid, "volumes/kubernetes.io~empty-dir")
	must(t, os.MkdirAll(filepath.Join(base, "mem"), 0o750))
	must(t, os.MkdirAll(filepath.Join(base, ".new.4F7Q"), 0o700))
	_, err := d.Prepare(t.Context(), podOf(empty("disk", "", ""), empty("mem", v1.StorageMediumMemory, "")), nil)
	must(t, err)
	if n := mountCount(t, filepath.Join(base, "mem")); n != 1 {
		t.Errorf("%d mounts at the memory volume, want 1", n)
	}
	info, err := os.Stat(filepath.Join(base, "disk"))
	must(t, err)
	if info.Mode().Perm() != 0o777 {
		t.Errorf("disk volume has mode %o, want 777", info.Mode().Perm())
	}
}

func TestPrepareSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	pod := podOf(
		host("gone", filepath.Join(dir, "gone"), v1.HostPathDirectory),
		v1.Volume{Name: "conf", VolumeSource: v1.VolumeSource{CephFS: &v1.CephFSVolumeSource{}}},
		empty("huge", v1.StorageMediumHugePages, ""),
		v1.Volume{Name: "../up", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	)
	d := newDir(t)
	_, err := d.Prepare(t.Context(), pod, nil)
	var first *Error
	if !errors.As(err, &first) || first.Volume != "gone" || first.Field != "spec.volumes[0].hostPath" || first.Pod != pod.Key {
		t.Fatalf("got %#v", err)
	}
	for _, want := range []string{
		`preparing volume "gone" of pod default/web-node1: ` + dir + `/gone: there is no such path, and hostPath.type wants a directory; make it, or use type DirectoryOrCreate`,
		`preparing volume "conf" of pod default/web-node1: podd does not support this kind of volume`,
		`medium "HugePages": the pod requests no huge pages`,
		`preparing volume "../up"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestPrepareRefusesPlantedLinks(t *testing.T) {
	outside := t.TempDir()
	for _, at := range []string{
		uid, uid + "/volumes", uid + "/volumes/kubernetes.io~empty-dir", uid + "/volumes/kubernetes.io~empty-dir/data",
	} {
		for _, medium := range []v1.StorageMedium{"", v1.StorageMediumMemory} {
			d := newDir(t)
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(d.Root, at)), 0o750))
			must(t, os.Symlink(outside, filepath.Join(d.Root, at)))
			if _, err := d.Prepare(t.Context(), podOf(empty("data", medium, "")), nil); err == nil {
				t.Errorf("%s, medium %q: prepared through a link", at, medium)
			}
			if names, _ := os.ReadDir(outside); len(names) > 0 || mountCount(t, outside) > 0 {
				t.Fatalf("%s, medium %q: something was made behind the link", at, medium)
			}
		}
	}
}

func TestPrepareRefusesForeignMounts(t *testing.T) {
	d := newDir(t)
	base := filepath.Join(d.Root, uid, "volumes/kubernetes.io~empty-dir")
	for _, name := range []string{"disk", "mem"} {
		must(t, os.MkdirAll(filepath.Join(base, name), 0o750))
		bind(t, t.TempDir(), filepath.Join(base, name))
	}
	for _, v := range []v1.Volume{empty("disk", "", ""), empty("mem", v1.StorageMediumMemory, "")} {
		if _, err := d.Prepare(t.Context(), podOf(v), nil); err == nil || !strings.Contains(err.Error(), "mounted") {
			t.Errorf("%s: got %v, want it to speak of the mount", v.Name, err)
		}
	}
}

func TestBadUIDs(t *testing.T) {
	d := newDir(t)
	for _, bad := range []string{"", ".", "..", "a/b", "a_b", "../x", strings.Repeat("a", 64), "a\nb", "ü"} {
		pod := podOf()
		pod.UID = types.UID(bad)
		if _, err := d.Prepare(t.Context(), pod, nil); err == nil {
			t.Errorf("Prepare took uid %q", bad)
		}
		if err := d.Remove(t.Context(), pod.UID); err == nil {
			t.Errorf("Remove took uid %q", bad)
		}
		if _, err := d.EmptyDirUsage(t.Context(), pod, func(*v1.Volume) bool { return true }); err == nil {
			t.Errorf("EmptyDirUsage took uid %q", bad)
		}
	}
}

func TestPrepareEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newDir(t).Prepare(ctx, podOf(empty("a", "", "")), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}
