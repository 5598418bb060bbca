package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestHugePagesOptions(t *testing.T) {
	for want, h := range map[string]hugetlbfsMount{
		"pagesize=2097152,mode=777":                    {size: 2 << 20, mode: 0o777, gid: -1},
		"pagesize=2097152,mode=777,gid=4321":           {size: 2 << 20, mode: 0o2777, gid: 4321},
		"pagesize=2097152,mode=777,size=4194304":       {size: 2 << 20, mode: 0o777, gid: -1, limit: 4 << 20},
		"pagesize=1073741824,mode=777,size=1073741824": {size: 1 << 30, mode: 0o777, gid: -1, limit: 1},
		"pagesize=2097152,mode=777,size=6291456":       {size: 2 << 20, mode: 0o777, gid: -1, limit: 4<<20 + 1},
	} {
		if got := h.options(); got != want {
			t.Errorf("%+v: got %s, want %s", h, got, want)
		}
	}
}

// TestHugePages checks that the file system has the page size of the medium, is mounted
// once, and is unmounted with the pod.
func TestHugePages(t *testing.T) {
	d := newDir(t)
	group := int64(4321)
	pod := newPod(emptyDirVolume("one", v1.StorageMediumHugePages, ""), emptyDirVolume("sized", "HugePages-2Mi", "3Mi"))
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	if _, err := d.Prepare(t.Context(), pod, nil); err == nil || !strings.Contains(err.Error(), "requests no huge pages") {
		t.Errorf("pod without a request for huge pages: got error %v, want one about the request", err)
	}
	pod.Object.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")},
	}}}
	for range 2 {
		paths, err := d.Prepare(t.Context(), pod, nil)
		must(t, err)
		for _, name := range []string{"one", "sized"} {
			var fs unix.Statfs_t
			must(t, unix.Statfs(paths[name], &fs))
			var st unix.Stat_t
			must(t, unix.Stat(paths[name], &st))
			if int64(fs.Type) != unix.HUGETLBFS_MAGIC || fs.Bsize != 2<<20 || st.Mode&0o7777 != 0o2777 || st.Gid != 4321 {
				t.Errorf("volume %s: got file system %x with pages of %d bytes, mode %o and group %d; want a hugetlbfs with pages of 2 MiB, mode 2777 and group 4321", name, fs.Type, fs.Bsize, st.Mode&0o7777, st.Gid)
			}
			if n := mountCount(t, paths[name]); n != 1 {
				t.Errorf("volume %s: got %d mounts, want 1", name, n)
			}
		}
		var fs unix.Statfs_t
		must(t, unix.Statfs(paths["sized"], &fs))
		if fs.Blocks != 2 {
			t.Errorf("volume sized: got %d pages for 3Mi, want 2", fs.Blocks)
		}
	}
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Stat(filepath.Join(d.Root, uid)); !os.IsNotExist(err) {
		t.Errorf("directory of the pod after Remove: got error %v, want not exist", err)
	}
	// A tmpfs at the directory must not be used as the hugetlbfs.
	pod.Object.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumMemory
	_, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	pod.Object.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumHugePages
	if _, err := d.Prepare(t.Context(), pod, nil); err == nil || !strings.Contains(err.Error(), "is not a hugetlbfs with pages of 2048 KiB") {
		t.Errorf("volume with a tmpfs: got error %v, want one about the file system", err)
	}
}
