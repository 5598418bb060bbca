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

// claimContent is the render.Volumes of a pod with one claim.
type claimContent refs.Claim

func (claimContent) Files(*v1.Volume) (map[string]render.File, error) { return nil, nil }
func (h *claimContent) Claim(*v1.Volume) *refs.Claim                  { return (*refs.Claim)(h) }
func (h *claimContent) CSI(*v1.Volume) *refs.CSIVolume                { return nil }
func (h *claimContent) CHAPSecret(*v1.Volume) *v1.Secret              { return nil }

// newClaim returns the claim default/data with this owner. pv is the PersistentVolume to which the
// claim is bound; nil means a directory of podd.
func newClaim(owner string, pv *v1.PersistentVolume) *claimContent {
	mode := v1.PersistentVolumeFilesystem
	return &claimContent{
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

// newClaimPod returns a pod with the volume "data" of the claim default/data.
func newClaimPod() *manifest.Pod {
	return newPod(v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
}

func newDirWithClaims(t *testing.T) (Dir, claim.Store) {
	d := newDir(t)
	d.ClaimsDir = filepath.Join(filepath.Dir(d.Root), "claims")
	return d, claim.Store{Root: d.ClaimsDir}
}

// recordOf returns the record that a new Store creates for a claim.
func recordOf(t *testing.T, c *claimContent) string {
	t.Helper()
	d, _ := newDirWithClaims(t)
	pod := newClaimPod()
	pod.UID = "recorded"
	_, err := d.Prepare(t.Context(), pod, c)
	must(t, err)
	text, err := os.Readlink(filepath.Join(d.ClaimsDir, ".bound", c.Namespace, c.Name))
	must(t, err)
	return text
}

var dataClaim = types.NamespacedName{Namespace: "default", Name: "data"}

// TestClaim checks the life cycle of a claim with a directory of podd: the directory outlives the
// pod, the claim cannot be removed while a pod uses it, and is removed completely afterwards.
func TestClaim(t *testing.T) {
	d, claims := newDirWithClaims(t)
	must(t, d.Check(t.Context(), newClaimPod(), newClaim("file", nil), nil))
	if _, err := os.Stat(d.ClaimsDir); err == nil {
		t.Error("Check created the directory of claims, want no change")
	}
	paths, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", nil))
	must(t, err)
	path := paths["data"]
	if info, err := os.Stat(path); path != filepath.Join(d.ClaimsDir, "default", "data") || err != nil || info.Mode().Perm() != 0o777 {
		t.Fatalf("got path %s, Stat error %v; want a directory with mode 777 in %s", path, err, d.ClaimsDir)
	}
	must(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
	kept, err := claims.List(d.Root)
	if err != nil || len(kept) != 1 || kept[0].NamespacedName != dataClaim || kept[0].Path != path || len(kept[0].Users) != 1 || kept[0].Users[0] != uid {
		t.Errorf("List: got %+v, error %v; want the claim %s with the user %s", kept, err, dataClaim, uid)
	}
	if err := claims.Remove(t.Context(), dataClaim, d.Root); !errors.Is(err, claim.ErrInUse) {
		t.Errorf("Remove while in use: got error %v, want %v", err, claim.ErrInUse)
	}
	before := listTree(t, filepath.Dir(d.Root))
	_, err = d.Prepare(t.Context(), newClaimPod(), newClaim("file", nil))
	must(t, err)
	if after := listTree(t, filepath.Dir(d.Root)); before != after {
		t.Errorf("the second Prepare changed files: before\n%safter\n%s", before, after)
	}
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Stat(filepath.Join(path, "x")); err != nil {
		t.Errorf("file in the claim after the pod was removed: got error %v, want the file kept", err)
	}
	must(t, claims.Remove(t.Context(), dataClaim, d.Root))
	if kept, err := claims.List(d.Root); err != nil || len(kept) > 0 {
		t.Errorf("List after Remove: got %+v, error %v; want none", kept, err)
	}
	for _, pattern := range []string{path, filepath.Join(d.ClaimsDir, ".removed", "*")} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("files after Remove: got %q, want none", left)
		}
	}
	if err := claims.Remove(t.Context(), dataClaim, d.Root); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("second Remove: got error %v, want %v", err, claim.ErrNotFound)
	}
}

// TestClaim_Rebind checks that a claim keeps its binding, and that pods of another source cannot use
// the claim.
func TestClaim_Rebind(t *testing.T) {
	top := t.TempDir()
	own, a, b := newClaim("file", nil), newClaim("file", localVolume("a", top)), newClaim("file", localVolume("b", top))
	moved := newClaim("file", localVolume("a", t.TempDir()))
	url := newClaim("https://fleet.example/x", nil)
	for _, test := range []struct {
		first, then *claimContent
		want        string
	}{
		{own, own, ""}, {a, a, ""}, {url, url, ""},
		{own, a, `has data in a directory of podd, so it cannot be bound to the PersistentVolume "a"`},
		{a, own, `is bound to the PersistentVolume "a"`},
		{a, b, `cannot be bound to "b"`},
		{a, newClaim("file", localVolume("a", top+"/")), ""},
		{a, moved, `PersistentVolume "a", whose path or volumeHandle has changed`},
		{own, url, "another manifest source"}, {url, own, "another manifest source"},
	} {
		d, _ := newDirWithClaims(t)
		_, err := d.Prepare(t.Context(), newClaimPod(), test.first)
		must(t, err)
		_, err = d.Prepare(t.Context(), newClaimPod(), test.then)
		checked := d.Check(t.Context(), newClaimPod(), test.then, nil)
		if test.want == "" && (err != nil || checked != nil) {
			t.Errorf("unchanged binding: got errors %v from Prepare and %v from Check; want none", err, checked)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || checked == nil) {
			t.Errorf("got errors %v from Prepare and %v from Check; want %q", err, checked, test.want)
		}
	}
}

// TestClaimsWithData checks that ClaimsWithData returns only claims that have a directory of podd and were
// not removed.
func TestClaimsWithData(t *testing.T) {
	d, claims := newDirWithClaims(t)
	for _, c := range []*claimContent{newClaim("file", nil), newClaim("file", localVolume("a", t.TempDir()))} {
		if c.Volume != nil {
			c.Name = "bound"
		}
		pod := newClaimPod()
		pod.UID = types.UID(c.Name)
		_, err := d.Prepare(t.Context(), pod, c)
		must(t, err)
		must(t, d.Release(t.Context(), pod.UID))
	}
	kept, err := claims.ClaimsWithData()
	must(t, err)
	if len(kept) != 1 || !kept[dataClaim] {
		t.Errorf("ClaimsWithData: got %v, want only %s", kept, dataClaim)
	}
	must(t, claims.Remove(t.Context(), dataClaim))
	if kept, err := claims.ClaimsWithData(); err != nil || len(kept) > 0 {
		t.Errorf("ClaimsWithData after Remove: got %v, error %v; want none", kept, err)
	}
}

// TestClaim_SharedVolume checks that pods of two sources cannot use one PersistentVolume through two
// claims.
func TestClaim_SharedVolume(t *testing.T) {
	d, _ := newDirWithClaims(t)
	top := t.TempDir()
	_, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", localVolume("a", top)))
	must(t, err)
	other := newClaim("https://fleet.example/x", localVolume("a", top))
	other.Namespace = "shop"
	pod := newClaimPod()
	pod.UID = "another"
	_, err = d.Prepare(t.Context(), pod, other)
	const want = `pods use the PersistentVolume "a" of claim "data" through the claim default/data`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Prepare: got error %v, want %q", err, want)
	}
	if err := d.Check(t.Context(), pod, other, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check: got error %v, want %q", err, want)
	}
	must(t, d.Check(t.Context(), pod, other, []types.UID{uid})) // the only user is treated as removed
	must(t, d.Remove(t.Context(), uid))
	_, err = d.Prepare(t.Context(), pod, other)
	must(t, err)
}

// TestClaim_AlreadySharedVolume checks that pods that already use one PersistentVolume through two
// claims can continue to use it.
func TestClaim_AlreadySharedVolume(t *testing.T) {
	d, _ := newDirWithClaims(t)
	a, b := newClaim("file", localVolume("a", t.TempDir())), newClaim("file", localVolume("b", t.TempDir()))
	b.PersistentVolumeClaim.Namespace = "shop"
	pod := newClaimPod()
	pod.UID = "another"
	_, err := d.Prepare(t.Context(), newClaimPod(), a)
	must(t, err)
	_, err = d.Prepare(t.Context(), pod, b)
	must(t, err)
	record := filepath.Join(d.ClaimsDir, ".bound", "shop", "data")
	must(t, os.Remove(record))
	b.Volume, b.Owner = a.Volume, "https://fleet.example/x"
	must(t, os.Symlink(recordOf(t, b), record))
	for _, tt := range []struct {
		pod *manifest.Pod
		of  *claimContent
	}{{newClaimPod(), a}, {pod, b}} {
		_, err := d.Prepare(t.Context(), tt.pod, tt.of)
		must(t, err)
		must(t, d.Check(t.Context(), tt.pod, tt.of, nil))
	}
}

// TestClaim_RecordWithoutPath checks that a binding of an older version, which has no path, matches
// every path.
func TestClaim_RecordWithoutPath(t *testing.T) {
	d, claims := newDirWithClaims(t)
	records := filepath.Join(d.ClaimsDir, ".bound", "default")
	must(t, os.MkdirAll(records, 0o755))
	must(t, os.Symlink("file a", filepath.Join(records, "data")))
	_, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", localVolume("a", t.TempDir())))
	must(t, err)
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || kept[0].Volume != "a" {
		t.Errorf("List: got %+v, error %v; want one claim bound to a", kept, err)
	}
}

// TestClaim_Errors checks that Prepare and Check report unusable claims.
func TestClaim_Errors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	rbd := localVolume("a", "")
	rbd.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{}}
	block := newClaim("file", nil)
	mode := v1.PersistentVolumeBlock
	block.Spec.VolumeMode = &mode
	for want, of := range map[string]*claimContent{
		"does not exist; create or mount it": newClaim("file", localVolume("a", "/nowhere/at/all")),
		"is a file":                          newClaim("file", localVolume("a", file)),
		`does not support the volume type rbd of the PersistentVolume "a"`: newClaim("file", rbd),
		"volumeMode Block":      block,
		`"data" does not exist`: nil,
	} {
		d, _ := newDirWithClaims(t)
		_, err := d.Prepare(t.Context(), newClaimPod(), of)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `volume "data" of pod default/web-node1`) {
			t.Errorf("Prepare: got error %v, want %q", err, want)
		}
		if err := d.Check(t.Context(), newClaimPod(), of, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: got error %v, want %q", err, want)
		}
	}
}

// TestClaim_FSGroup checks that the files of a local volume get the group of the first pod. A later
// pod changes them again only with the policy Always.
func TestClaim_FSGroup(t *testing.T) {
	for _, policy := range []v1.PodFSGroupChangePolicy{v1.FSGroupChangeAlways, v1.FSGroupChangeOnRootMismatch} {
		d, _ := newDirWithClaims(t)
		srv, outside := t.TempDir(), filepath.Join(t.TempDir(), "x")
		must(t, os.WriteFile(outside, nil, 0o600))
		must(t, os.MkdirAll(filepath.Join(srv, "a", "b"), 0o700))
		must(t, os.WriteFile(filepath.Join(srv, "a", "b", "f"), nil, 0o600))
		must(t, os.Symlink(outside, filepath.Join(srv, "link")))
		prepare := func(id types.UID) {
			t.Helper()
			pod := newClaimPod()
			pod.UID = id
			gid := int64(4321)
			pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid, FSGroupChangePolicy: &policy}
			_, err := d.Prepare(t.Context(), pod, newClaim("file", localVolume("a", srv)))
			must(t, err)
		}
		check := func(path string, mode uint32, gid uint32) {
			t.Helper()
			var st unix.Stat_t
			must(t, unix.Stat(path, &st))
			if st.Mode&0o7777 != mode || st.Gid != gid {
				t.Errorf("policy %s: %s: got mode %o and group %d; want mode %o and group %d", policy, path, st.Mode&0o7777, st.Gid, mode, gid)
			}
		}
		prepare("one")
		file := filepath.Join(srv, "a", "b", "f")
		check(file, 0o660, 4321)
		check(filepath.Join(srv, "a", "b"), 0o2770, 4321)
		check(outside, 0o600, 0)
		// Podd does not undo the changes of a container while its pod runs.
		must(t, os.Chmod(file, 0o600))
		prepare("one")
		check(file, 0o600, 4321)
		prepare("two")
		if policy == v1.FSGroupChangeAlways {
			check(file, 0o660, 4321)
		} else {
			check(file, 0o600, 4321)
		}
	}
}

// TestClaim_FSGroupReadOnly checks that Prepare succeeds, and does not change the group of the
// files, for a read-only claim and for a read-only file system.
func TestClaim_FSGroupReadOnly(t *testing.T) {
	for name, readOnly := range map[string]bool{"read-only claim": true, "read-only file system": false} {
		d, _ := newDirWithClaims(t)
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
		pod, gid := newClaimPod(), int64(4321)
		pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &gid}
		pod.Object.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = readOnly
		if _, err := d.Prepare(t.Context(), pod, newClaim("file", localVolume("a", srv))); err != nil {
			t.Errorf("%s: got error %v from Prepare, want none", name, err)
		}
		var st unix.Stat_t
		must(t, unix.Stat(file, &st))
		if st.Gid == 4321 || st.Mode&0o7777 != 0o600 {
			t.Errorf("%s: got mode %o and group %d; want mode 600 and another group", name, st.Mode&0o7777, st.Gid)
		}
	}
}

// TestEphemeral checks that an ephemeral volume is removed with its pod.
func TestEphemeral(t *testing.T) {
	d, _ := newDirWithClaims(t)
	pod := newPod(v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
	paths, err := d.Prepare(t.Context(), pod, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(paths["own"], "x"), nil, 0o600))
	must(t, d.Release(t.Context(), uid))
	if _, err := os.Stat(paths["own"]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the volume after Release: got error %v, want not exist", err)
	}
}

// TestClaim_RemoveMounted checks that a claim with a mount in its directory is not removed.
func TestClaim_RemoveMounted(t *testing.T) {
	d, claims := newDirWithClaims(t)
	paths, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	at := filepath.Join(paths["data"], "disk")
	must(t, os.Mkdir(at, 0o755))
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	if err := claims.Remove(t.Context(), dataClaim, d.Root); err == nil || !strings.Contains(err.Error(), "unmount "+at) {
		t.Errorf("Remove: got error %v, want one with \"unmount %s\"", err, at)
	}
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || mountCount(t, at) != 1 {
		t.Errorf("after Remove: got claims %+v, error %v and %d mounts; want 1 claim and 1 mount", kept, err, mountCount(t, at))
	}
	must(t, unix.Unmount(at, 0))
	must(t, claims.Remove(t.Context(), dataClaim, d.Root))
}

// TestClaim_RemoveLeftovers checks that a claim is removed although data of an earlier claim cannot
// be removed.
func TestClaim_RemoveLeftovers(t *testing.T) {
	d, claims := newDirWithClaims(t)
	_, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	stuck := filepath.Join(d.ClaimsDir, ".removed", "0", "disk")
	must(t, os.MkdirAll(stuck, 0o755))
	must(t, unix.Mount("tmpfs", stuck, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(stuck, unix.MNT_DETACH) })
	if err := claims.Remove(t.Context(), dataClaim, d.Root); !errors.Is(err, claim.ErrLeftovers) {
		t.Errorf("Remove: got error %v, want %v", err, claim.ErrLeftovers)
	}
	if left, err := os.ReadDir(filepath.Join(d.ClaimsDir, ".removed")); err != nil || len(left) != 1 {
		t.Errorf("removed data: got %v, error %v; want only the earlier claim", left, err)
	}
}

// TestClaim_Canceled checks that Prepare and Remove stop waiting for the lock when their context is
// done.
func TestClaim_Canceled(t *testing.T) {
	d, claims := newDirWithClaims(t)
	must(t, os.MkdirAll(d.ClaimsDir, 0o750))
	lock, err := os.Open(d.ClaimsDir)
	must(t, err)
	defer lock.Close()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Prepare(ctx, newClaimPod(), newClaim("file", nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Prepare: got error %v, want %v", err, context.DeadlineExceeded)
	}
	if err := claims.Remove(ctx, dataClaim, d.Root); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Remove: got error %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestClaim_Concurrent checks that many pods can acquire a claim concurrently.
func TestClaim_Concurrent(t *testing.T) {
	d, claims := newDirWithClaims(t)
	errs := make(chan error)
	for i := range 20 {
		go func() {
			pod := newClaimPod()
			pod.UID = types.UID(fmt.Sprint(i))
			_, err := d.Prepare(t.Context(), pod, newClaim("file", nil))
			errs <- err
		}()
	}
	for range 20 {
		must(t, <-errs)
	}
	if kept, err := claims.List(d.Root); err != nil || len(kept) != 1 || len(kept[0].Users) != 20 {
		t.Errorf("List: got %+v, error %v; want one claim with 20 users", kept, err)
	}
}

// TestClaim_Cluster checks that podd uses the current binding of a claim of a cluster and records
// neither the binding nor the users. A claim of podd with the same name stays unchanged.
func TestClaim_Cluster(t *testing.T) {
	d, claims := newDirWithClaims(t)
	_, err := d.Prepare(t.Context(), newClaimPod(), newClaim("file", nil))
	must(t, err)
	must(t, d.Remove(t.Context(), uid))
	for range 2 {
		top := t.TempDir()
		of := newClaim("", localVolume("pv", top))
		p := newClaimPod()
		p.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(2000))}
		must(t, d.Check(t.Context(), p, of, nil))
		paths, err := d.Prepare(t.Context(), p, of)
		must(t, err)
		var st unix.Stat_t
		if err := unix.Stat(top, &st); err != nil || paths["data"] != top || st.Gid != 2000 {
			t.Errorf("got paths %v, group %d, error %v; want path %s and group 2000", paths, st.Gid, err, top)
		}
		kept, err := claims.List(d.Root)
		if err != nil || len(kept) != 1 || len(kept[0].Users) > 0 || kept[0].Volume != "" {
			t.Errorf("List: got %+v, error %v; want the claim of podd without users", kept, err)
		}
		must(t, d.Remove(t.Context(), uid))
	}
	if paths, err := d.Prepare(t.Context(), newClaimPod(), newClaim("", nil)); !errors.Is(err, render.ErrMissing) {
		t.Errorf("claim without a volume: got paths %v, error %v; want error %v", paths, err, render.ErrMissing)
	}
}

// TestClaim_FSGroupNestedVolumes checks that the files of a local volume get the group of the pod.
// Mounts in the volume, and volumes in it that other pods use, must keep their group.
func TestClaim_FSGroupNestedVolumes(t *testing.T) {
	d, _ := newDirWithClaims(t)
	srv, other := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(srv, name) }
	for _, dir := range []string{"own/deep", "tmpfs", "bind", "used/deep", "unused"} {
		must(t, os.MkdirAll(at(dir), 0o700))
	}
	must(t, unix.Mount("tmpfs", at("tmpfs"), "tmpfs", 0, "mode=700"))
	t.Cleanup(func() { unix.Unmount(at("tmpfs"), unix.MNT_DETACH) })
	bindMount(t, other, at("bind"))
	must(t, os.Chmod(other, 0o700))
	must(t, os.WriteFile(at("single"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(other, "single"), nil, 0o600))
	bindMount(t, filepath.Join(other, "single"), at("single"))
	for _, dir := range []string{"own/deep", "tmpfs", "bind", "used/deep", "unused"} {
		must(t, os.WriteFile(at(dir+"/file"), nil, 0o600))
	}
	alias := filepath.Join(t.TempDir(), "alias")
	must(t, os.Symlink(at("used"), alias))
	prepare := func(id types.UID, name, path string, group *int64) {
		t.Helper()
		pod, of := newClaimPod(), newClaim("file", localVolume(name, path))
		pod.UID, of.Name = id, name
		pod.Object.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name
		pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: group}
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
			t.Errorf("path %q: got group %d (mode %o), want group %d", path, st.Gid, st.Mode, gid)
		}
	}
	kept, err := claim.Store{Root: d.ClaimsDir}.List(d.Root)
	if err != nil || len(kept) != 3 || len(kept[0].Users) != 1 || len(kept[1].Users) != 1 || len(kept[2].Users) != 0 {
		t.Errorf("List: got %+v, error %v; want 3 claims, the first two with a user", kept, err)
	}
}
