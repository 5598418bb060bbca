package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/render"
)

// newDir returns a Dir in a temporary directory. Its mounts are unmounted when the test ends.
func newDir(t *testing.T) Dir {
	t.Helper()
	root := filepath.Join(t.TempDir(), "pods")
	t.Cleanup(func() { unmountAll(t, root) })
	return Dir{Root: root, NFS: NFSOptions{Timeout: time.Hour}} // long enough for a busy host
}

func unmountAll(t *testing.T, below string) {
	left, err := mountinfo.GetMounts(mountinfo.PrefixFilter(below))
	if err != nil {
		t.Error(err)
	}
	for i := len(left) - 1; i >= 0; i-- {
		if err := unix.Unmount(left[i].Mountpoint, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", left[i].Mountpoint, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const uid = "8f7b2c1e-0000-4000-8000-0123456789ab"

func newPod(volumes ...v1.Volume) *manifest.Pod {
	return &manifest.Pod{
		Key:    types.NamespacedName{Namespace: "default", Name: "web-node1"},
		UID:    uid,
		Object: &v1.Pod{Spec: v1.PodSpec{Volumes: volumes}},
	}
}

func emptyDirVolume(name string, medium v1.StorageMedium, limit string) v1.Volume {
	e := &v1.EmptyDirVolumeSource{Medium: medium}
	if limit != "" {
		q := resource.MustParse(limit)
		e.SizeLimit = &q
	}
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: e}}
}

func hostPathVolume(name, path string, kind v1.HostPathType) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

// listTree returns a line for each file below top with its mode, owner, inode, mount ID and ctime.
func listTree(t *testing.T, top string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, path)
		fmt.Fprintf(&b, "%s %o %d:%d inode %d mount %d ctime %d.%d\n",
			rel, st.Mode, st.Uid, st.Gid, st.Ino, st.Mnt_id, st.Ctime.Sec, st.Ctime.Nsec)
		return nil
	}))
	return b.String()
}

// mountCount returns the number of mounts at or below a path.
func mountCount(t *testing.T, below string) int {
	t.Helper()
	m, err := mountinfo.GetMounts(mountinfo.PrefixFilter(below))
	must(t, err)
	return len(m)
}

// bindMount bind-mounts source at target, as another program would, until the test ends.
func bindMount(t *testing.T, source, target string) {
	t.Helper()
	must(t, unix.Mount(source, target, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
}

func TestWriteHosts(t *testing.T) {
	d := newDir(t)
	path, err := d.WriteHosts(uid, "one")
	must(t, err)
	first, err := os.Stat(path)
	must(t, err)
	if path != filepath.Join(d.Root, uid, "etc-hosts") || first.Mode() != 0o644 {
		t.Errorf("got path %s with mode %v; want etc-hosts with mode 644", path, first.Mode())
	}
	_, err = d.WriteHosts(uid, "one")
	must(t, err)
	if same, err := os.Stat(path); err != nil || !os.SameFile(first, same) {
		t.Errorf("second call with the same text: got another file or error %v, want the same file", err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("one"), 0o600))
	for _, prepare := range []func() error{
		func() error { return os.WriteFile(path, []byte("a container wrote this"), 0o600) },
		func() error { return os.WriteFile(path+newFileSuffix, []byte("half"), 0o600) },
		func() error { return os.Symlink(outside, path) },
	} {
		must(t, os.RemoveAll(path))
		must(t, prepare())
		_, err := d.WriteHosts(uid, "one")
		must(t, err)
		info, err := os.Lstat(path)
		must(t, err)
		if text, err := os.ReadFile(path); err != nil || string(text) != "one" || !info.Mode().IsRegular() {
			t.Errorf("got a file with mode %v and text %q, error %v; want a regular file with text \"one\"", info.Mode(), text, err)
		}
	}
	if _, err := d.WriteHosts("../x", "one"); err == nil {
		t.Error("WriteHosts with UID ../x: got no error, want one")
	}
}

// A filesFunc is a render.Volumes that has no claims. The function returns the files that podd
// writes to a volume.
type filesFunc func(*v1.Volume) (map[string]render.File, error)

func (f filesFunc) Files(v *v1.Volume) (map[string]render.File, error) { return f(v) }
func (filesFunc) Claim(*v1.Volume) *refs.Claim                         { return nil }
func (filesFunc) CSI(*v1.Volume) *refs.CSIVolume                       { return nil }
func (filesFunc) CHAPSecret(*v1.Volume) *v1.Secret                     { return nil }
