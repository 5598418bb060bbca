package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/render"
	"podd/reconcile/volume/claim"
)

// holds is what a pod's only claim is bound to.
type holds refs.Claim

func (holds) Files(*v1.Volume) (map[string]render.File, error) { return nil, nil }
func (h *holds) Claim(*v1.Volume) *refs.Claim                  { return (*refs.Claim)(h) }
func (h *holds) CSI(*v1.Volume) *refs.CSI                      { return nil }

func claimOf(owner string, pv *v1.PersistentVolume) *holds {
	mode := v1.PersistentVolumeFilesystem
	return &holds{
		PersistentVolumeClaim: &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{VolumeMode: &mode},
		},
		Volume: pv, Owner: owner,
	}
}

func localVolume(name, path string) *v1.PersistentVolume {
	return &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{
		PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
	}}
}

func claiming() *manifest.Pod {
	return podOf(v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
}

func newClaims(t *testing.T) (Dir, claim.Store) {
	d := newDir(t)
	d.Claims = filepath.Join(filepath.Dir(d.Root), "claims")
	return d, claim.Store{Root: d.Claims}
}

// recordOf returns the record that a new Store creates for a claim.
func recordOf(t *testing.T, c *holds) string {
	t.Helper()
	d, _ := newClaims(t)
	pod := claiming()
	pod.UID = "recorded"
	_, err := d.Prepare(t.Context(), pod, c)
	must(t, err)
	text, err := os.Readlink(filepath.Join(d.Claims, ".bound", c.Namespace, c.Name))
	must(t, err)
	return text
}

var data = types.NamespacedName{Namespace: "default", Name: "data"}

func TestClaimOutlivesItsPod(t *testing.T) {
	d, claims := newClaims(t)
	must(t, d.Check(t.Context(), claiming(), claimOf("file", nil), nil))
	if _, err := os.Stat(d.Claims); err == nil {
		t.Error("checking made something")
	}
	paths, err := d.Prepare(t.Context(), claiming(), claimOf("file", nil))
	must(t, err)
	path := paths["data"]
	if info, err := os.Stat(path); path != filepath.Join(d.Claims, "default", "data") || err != nil || info.Mode().Perm() != 0o777 {
		t.Fatalf("it is at %s: %v", path, err)
	}
	must(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
	kept, err := claims.List(d.Root)
	if err != nil || len(kept) != 1 || kept[0].NamespacedName != data || kept[0].Path != path || len(kept[0].Users) != 1 || kept[0].Users[0] != uid {
		t.Errorf("%+v, %v", kept, err)
	}
	if err := claims.Remove(t.Context(), data, d.Root); !errors.Is(err, claim.ErrInUse) {
		t.Errorf("removed while in use: %v", err)
	}
	before := tree(t, filepath.Dir(d.Root))
	_, err = d.Prepare(t.Context(), claiming(), claimOf("file", nil))
	must(t, err)
	if after := tree(t, filepath.Dir(d.Root)); before != after {
		t.Errorf("the second time changed\n%sto\n%s", before, after)
	}
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Stat(filepath.Join(path, "x")); err != nil {
		t.Error(err)
	}
	must(t, claims.Remove(t.Context(), data, d.Root))
	if kept, err := claims.List(d.Root); err != nil || len(kept) > 0 {
		t.Errorf("%+v, %v", kept, err)
	}
	for _, gone := range []string{path, filepath.Join(d.Claims, ".removed", "*")} {
		if left, _ := filepath.Glob(gone); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	if err := claims.Remove(t.Context(), data, d.Root); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

// TestClaimStaysBound checks that a claim keeps its binding, and that no other source can
// use it.
func TestClaimStaysBound(t *testing.T) {
	top := t.TempDir()
	own, a, b := claimOf("file", nil), claimOf("file", localVolume("a", top)), claimOf("file", localVolume("b", top))
	moved := claimOf("file", localVolume("a", t.TempDir()))
	url := claimOf("https://fleet.example/x", nil)
	for _, test := range []struct {
		first, then *holds
		want        string
	}{
		{own, own, ""}, {a, a, ""}, {url, url, ""},
		{own, a, "has its data in a directory of podd's"},
		{a, own, `was bound to the PersistentVolume "a"`},
		{a, b, `would now be to "b"`},
		{a, claimOf("file", localVolume("a", top+"/")), ""},
		{a, moved, `PersistentVolume "a" when that led to another path`},
		{own, url, "another source"}, {url, own, "another source"},
	} {
		d, _ := newClaims(t)
		_, err := d.Prepare(t.Context(), claiming(), test.first)
		must(t, err)
		_, err = d.Prepare(t.Context(), claiming(), test.then)
		checked := d.Check(t.Context(), claiming(), test.then, nil)
		if test.want == "" && (err != nil || checked != nil) {
			t.Errorf("the same: %v, %v", err, checked)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || checked == nil) {
			t.Errorf("got %v and %v, want %s", err, checked, test.want)
		}
	}
}

// TestKept checks that Kept has only claims with a directory of podd that were not
// removed.
func TestKept(t *testing.T) {
	d, claims := newClaims(t)
	for _, c := range []*holds{claimOf("file", nil), claimOf("file", localVolume("a", t.TempDir()))} {
		if c.Volume != nil {
			c.Name = "bound"
		}
		pod := claiming()
		pod.UID = types.UID(c.Name)
		_, err := d.Prepare(t.Context(), pod, c)
		must(t, err)
		must(t, d.Release(t.Context(), pod.UID))
	}
	kept, err := claims.Kept()
	must(t, err)
	own := types.NamespacedName{Namespace: "default", Name: "data"}
	if len(kept) != 1 || !kept[own] {
		t.Errorf("kept: %v", kept)
	}
	must(t, claims.Remove(t.Context(), own))
	if kept, err := claims.Kept(); err != nil || len(kept) > 0 {
		t.Errorf("kept once it is removed: %v, %v", kept, err)
	}
}

// TestVolumeOfTwoClaims checks that pods of two sources cannot use one volume through two
// claims.
func TestVolumeOfTwoClaims(t *testing.T) {
	d, _ := newClaims(t)
	top := t.TempDir()
	_, err := d.Prepare(t.Context(), claiming(), claimOf("file", localVolume("a", top)))
	must(t, err)
	other := claimOf("https://fleet.example/x", localVolume("a", top))
	other.Namespace = "shop"
	pod := claiming()
	pod.UID = "another"
	_, err = d.Prepare(t.Context(), pod, other)
	if err == nil || !strings.Contains(err.Error(), `PersistentVolume "a" of claim "data" is the one that pods use through the claim default/data`) {
		t.Error(err)
	}
	const refused = "is the one that pods use through the claim default/data"
	if err := d.Check(t.Context(), pod, other, nil); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("an edit would end the version that runs: %v", err)
	}
	must(t, d.Check(t.Context(), pod, other, []types.UID{uid})) // which is its own
	must(t, d.Remove(t.Context(), uid))
	_, err = d.Prepare(t.Context(), pod, other)
	must(t, err)
}

// TestVolumeOfTwoClaimsThatHaveIt checks that pods that share a volume already keep it.
func TestVolumeOfTwoClaimsThatHaveIt(t *testing.T) {
	d, _ := newClaims(t)
	a, b := claimOf("file", localVolume("a", t.TempDir())), claimOf("file", localVolume("b", t.TempDir()))
	b.PersistentVolumeClaim.Namespace = "shop"
	pod := claiming()
	pod.UID = "another"
	_, err := d.Prepare(t.Context(), claiming(), a)
	must(t, err)
	_, err = d.Prepare(t.Context(), pod, b)
	must(t, err)
	record := filepath.Join(d.Claims, ".bound", "shop", "data")
	must(t, os.Remove(record))
	b.Volume, b.Owner = a.Volume, "https://fleet.example/x"
	must(t, os.Symlink(recordOf(t, b), record))
	for _, tt := range []struct {
		pod *manifest.Pod
		of  *holds
	}{{claiming(), a}, {pod, b}} {
		_, err := d.Prepare(t.Context(), tt.pod, tt.of)
		must(t, err)
		must(t, d.Check(t.Context(), tt.pod, tt.of, nil))
	}
}

// TestClaimOfAnOlderRecord checks that a binding without a path matches every path.
func TestClaimOfAnOlderRecord(t *testing.T) {
	d, claims := newClaims(t)
	records := filepath.Join(d.Claims, ".bound", "default")
	must(t, os.MkdirAll(records, 0o755))
	must(t, os.Symlink("file a", filepath.Join(records, "data")))
	_, err := d.Prepare(t.Context(), claiming(), claimOf("file", localVolume("a", t.TempDir())))
	must(t, err)
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || kept[0].Volume != "a" {
		t.Errorf("%+v, %v", kept, err)
	}
}

func TestClaimErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	block := claimOf("file", nil)
	mode := v1.PersistentVolumeBlock
	block.Spec.VolumeMode = &mode
	for want, of := range map[string]*holds{
		"is not there; make or mount it": claimOf("file", localVolume("a", "/nowhere/at/all")),
		"is a file":                      claimOf("file", localVolume("a", file)),
		"volumeMode Block":               block,
		`"data" does not exist`:          nil,
	} {
		d, _ := newClaims(t)
		_, err := d.Prepare(t.Context(), claiming(), of)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `volume "data" of pod default/web-node1`) {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := d.Check(t.Context(), claiming(), of, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("beforehand %v, want %s", err, want)
		}
	}
}

func TestClaimIsGivenToTheGroup(t *testing.T) {
	for _, policy := range []v1.PodFSGroupChangePolicy{v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch} {
		d, _ := newClaims(t)
		srv, outside := t.TempDir(), filepath.Join(t.TempDir(), "x")
		must(t, os.WriteFile(outside, nil, 0o600))
		must(t, os.MkdirAll(filepath.Join(srv, "a", "b"), 0o700))
		must(t, os.WriteFile(filepath.Join(srv, "a", "b", "f"), nil, 0o600))
		must(t, os.Symlink(outside, filepath.Join(srv, "link")))
		prepare := func(id types.UID) {
			t.Helper()
			pod := claiming()
			pod.UID = id
			gid := int64(4321)
			pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid, FSGroupChangePolicy: &policy}
			_, err := d.Prepare(t.Context(), pod, claimOf("file", localVolume("a", srv)))
			must(t, err)
		}
		is := func(path string, mode uint32, gid uint32) {
			t.Helper()
			var st unix.Stat_t
			must(t, unix.Stat(path, &st))
			if st.Mode&0o7777 != mode || st.Gid != gid {
				t.Errorf("%s: %s has mode %o and group %d, want %o and %d", policy, path, st.Mode&0o7777, st.Gid, mode, gid)
			}
		}
		prepare("one")
		file := filepath.Join(srv, "a", "b", "f")
		is(file, 0o660, 4321)
		is(filepath.Join(srv, "a", "b"), 0o2770, 4321)
		is(outside, 0o600, 0)
		// What a container changes stays while its pod lives; the next one gets it
		// again, or not.
		must(t, os.Chmod(file, 0o600))
		prepare("one")
		is(file, 0o600, 4321)
		prepare("two")
		if policy == v1.FSGroupChangeAlways {
			is(file, 0o660, 4321)
		} else {
			is(file, 0o600, 4321)
		}
	}
}

// TestClaimIsNotGivenAway checks that the group is not changed for a claim that the pod uses
// read-only and for a read-only file system, and that the pod can use both.
func TestClaimIsNotGivenAway(t *testing.T) {
	for name, readOnly := range map[string]bool{"the pod reads it only": true, "the file system is read-only": false} {
		d, _ := newClaims(t)
		srv := t.TempDir()
		if !readOnly {
			must(t, unix.Mount("tmpfs", srv, "tmpfs", 0, ""))
			t.Cleanup(func() { _ = unix.Unmount(srv, unix.MNT_DETACH) })
		}
		file := filepath.Join(srv, "f")
		must(t, os.WriteFile(file, nil, 0o600))
		if !readOnly {
			must(t, unix.Mount("", srv, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		}
		pod, gid := claiming(), int64(4321)
		pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
		pod.Spec.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = readOnly
		if _, err := d.Prepare(t.Context(), pod, claimOf("file", localVolume("a", srv))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var st unix.Stat_t
		must(t, unix.Stat(file, &st))
		if st.Gid == 4321 || st.Mode&0o7777 != 0o600 {
			t.Errorf("%s: its file has mode %o and group %d", name, st.Mode&0o7777, st.Gid)
		}
	}
}

func TestEphemeralGoesWithItsPod(t *testing.T) {
	d, _ := newClaims(t)
	pod := podOf(v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(paths["own"], "x"), nil, 0o600))
	must(t, d.Release(t.Context(), uid))
	if _, err := os.Stat(paths["own"]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// TestClaimWithAMountIsKept checks that a claim with a mount in it is not removed.
func TestClaimWithAMountIsKept(t *testing.T) {
	d, claims := newClaims(t)
	paths, err := d.Prepare(t.Context(), claiming(), claimOf("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	at := filepath.Join(paths["data"], "disk")
	must(t, os.Mkdir(at, 0o755))
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	if err := claims.Remove(t.Context(), data, d.Root); err == nil || !strings.Contains(err.Error(), "umount "+at) {
		t.Errorf("got %v", err)
	}
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || mountCount(t, at) != 1 {
		t.Errorf("%+v, %v", kept, err)
	}
	must(t, unix.Unmount(at, 0))
	must(t, claims.Remove(t.Context(), data, d.Root))
}

// TestClaimIsRemovedBesideLeftovers checks that a claim is removed although data of an
// earlier claim cannot be removed.
func TestClaimIsRemovedBesideLeftovers(t *testing.T) {
	d, claims := newClaims(t)
	_, err := d.Prepare(t.Context(), claiming(), claimOf("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	stuck := filepath.Join(d.Claims, ".removed", "0", "disk")
	must(t, os.MkdirAll(stuck, 0o755))
	must(t, unix.Mount("tmpfs", stuck, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(stuck, unix.MNT_DETACH) })
	if err := claims.Remove(t.Context(), data, d.Root); !errors.Is(err, claim.ErrLeftovers) {
		t.Errorf("got %v, want what is left to be told", err)
	}
	if left, err := os.ReadDir(filepath.Join(d.Claims, ".removed")); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestClaimEndsWithItsContext checks that the wait for the lock ends with the context.
func TestClaimEndsWithItsContext(t *testing.T) {
	d, claims := newClaims(t)
	must(t, os.MkdirAll(d.Claims, 0o750))
	lock, err := os.Open(d.Claims)
	must(t, err)
	defer lock.Close()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Prepare(ctx, claiming(), claimOf("file", nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("preparing: %v", err)
	}
	if err := claims.Remove(ctx, data, d.Root); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("removing: %v", err)
	}
}

// TestClaimsSideBySide checks that many pods can acquire a claim concurrently.
func TestClaimsSideBySide(t *testing.T) {
	d, claims := newClaims(t)
	errs := make(chan error)
	for i := range 20 {
		go func() {
			pod := claiming()
			pod.UID = types.UID(fmt.Sprint(i))
			_, err := d.Prepare(t.Context(), pod, claimOf("file", nil))
			errs <- err
		}()
	}
	for range 20 {
		must(t, <-errs)
	}
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || len(kept[0].Users) != 20 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// What a cluster has bound is mounted and nothing of it kept: what podd has of a
// claim of that name is another's, and the cluster may bind it anew.
func TestClaimOfACluster(t *testing.T) {
	d, claims := newClaims(t)
	_, err := d.Prepare(t.Context(), claiming(), claimOf("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	for range 2 {
		top := t.TempDir()
		of := claimOf("", localVolume("pv", top))
		p := claiming()
		p.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
		must(t, d.Check(t.Context(), p, of, nil))
		paths, err := d.Prepare(t.Context(), p, of)
		must(t, err)
		var st unix.Stat_t
		if err := unix.Stat(top, &st); err != nil || paths["data"] != top || st.Gid != 2000 {
			t.Errorf("got %v, group %d, %v", paths, st.Gid, err)
		}
		kept, err := claims.List(d.Root)
		if err != nil || len(kept) != 1 || len(kept[0].Users) > 0 || kept[0].Volume != "" {
			t.Errorf("kept %+v, %v", kept, err)
		}
		must(t, d.Remove(t.Context(), uid))
	}
	if paths, err := d.Prepare(t.Context(), claiming(), claimOf("", nil)); !errors.Is(err, render.ErrMissing) {
		t.Errorf("a claim without a volume got %v, %v", paths, err)
	}
}

// TestOwn_NestedVolumes checks that the group of a pod gets the files of its local
// volume, and neither what is mounted in it nor another pod's volume in it.
func TestOwn_NestedVolumes(t *testing.T) {
	d, _ := newClaims(t)
	srv, other := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(srv, name) }
	for _, dir := range []string{"own/deep", "tmpfs", "bind", "used/deep", "unused"} {
		must(t, os.MkdirAll(at(dir), 0o700))
	}
	must(t, unix.Mount("tmpfs", at("tmpfs"), "tmpfs", 0, "mode=700"))
	t.Cleanup(func() { unix.Unmount(at("tmpfs"), unix.MNT_DETACH) })
	bind(t, other, at("bind"))
	must(t, os.Chmod(other, 0o700))
	must(t, os.WriteFile(at("single"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(other, "single"), nil, 0o600))
	bind(t, filepath.Join(other, "single"), at("single"))
	for _, dir := range []string{"own/deep", "tmpfs", "bind", "used/deep", "unused"} {
		must(t, os.WriteFile(at(dir+"/file"), nil, 0o600))
	}
	alias := filepath.Join(t.TempDir(), "alias")
	must(t, os.Symlink(at("used"), alias))
	prepare := func(id types.UID, name, path string, group *int64) {
		t.Helper()
		pod, of := claiming(), claimOf("file", localVolume(name, path))
		pod.UID, of.Name = id, name
		pod.Spec.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name
		pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: group}
		_, err := d.Prepare(t.Context(), pod, of)
		must(t, err)
	}
	prepare("nested", "b", alias, nil)
	prepare("gone", "c", at("unused"), new(int64(5000)))
	must(t, d.Remove(t.Context(), "gone"))
	prepare("whole", "a", srv, new(int64(4321)))
	for path, gid := range map[string]uint32{
		"": 4321, "own": 4321, "own/deep/file": 4321, "unused/file": 4321,
		"tmpfs": 0, "tmpfs/file": 0, "bind": 0, "bind/file": 0, "single": 0, "used": 0, "used/deep": 0, "used/deep/file": 0,
	} {
		var st unix.Stat_t
		must(t, unix.Lstat(at(path), &st))
		if st.Gid != gid || gid == 0 && st.Mode&0o070 != 0 {
			t.Errorf("%s has group %d and mode %o, want group %d", path, st.Gid, st.Mode, gid)
		}
	}
	kept, err := claim.Store{Root: d.Claims}.List(d.Root)
	if err != nil || len(kept) != 3 || len(kept[0].Users) != 1 || len(kept[1].Users) != 1 || len(kept[2].Users) != 0 {
		t.Errorf("kept %+v, %v", kept, err)
	}
}
