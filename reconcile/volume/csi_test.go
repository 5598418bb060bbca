package volume

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/manifest/refs"
	"podd/reconcile/plugins"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
	"podd/runtime/runtimetest/csidriver"
)

func TestMain(m *testing.M) {
	csidriver.Main()
	os.Exit(m.Run())
}

// known is what is known of volumes by their names in the pod.
type known map[string]*refs.CSI

func (known) Files(*v1.Volume) (map[string]render.File, error) { return nil, nil }
func (k known) CSI(v *v1.Volume) *refs.CSI                     { return k[v.Name] }
func (k known) Claim(v *v1.Volume) *refs.Claim {
	if v.PersistentVolumeClaim == nil {
		return nil
	}
	pv := &v1.PersistentVolume{}
	pv.Name, pv.Spec.CSI = "pv-"+v.Name, &v1.CSIPersistentVolumeSource{Driver: "host.csi.example.com"}
	c := &refs.Claim{PersistentVolumeClaim: &v1.PersistentVolumeClaim{}, Volume: pv}
	c.Namespace, c.Name = "default", v.PersistentVolumeClaim.ClaimName
	return c
}

// withDriver is a Dir with a driver that runs.
func withDriver(t *testing.T) (Dir, *csidriver.Driver) {
	t.Helper()
	top, err := os.MkdirTemp("", "csi")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	t.Cleanup(func() { unmountAll(t, top) })
	log := slog.New(slog.DiscardHandler)
	drivers, err := csi.New(csi.Options{Root: top, Node: "node1", Log: log})
	must(t, err)
	d := &csidriver.Driver{Dir: filepath.Join(top, "d"), Name: "host.csi.example.com", Registry: filepath.Join(top, plugins.Dir), Capabilities: []string{"STAGE_UNSTAGE_VOLUME"}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w := &plugins.Watcher{Dir: d.Registry, Kinds: map[string]plugins.Kind{registration.CSIPlugin: drivers}, Log: log}
	running.Go(func() { w.Run(ctx) })
	running.Go(func() {
		if err := drivers.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	must(t, os.Mkdir(d.Dir, 0o750))
	must(t, d.Start())
	t.Cleanup(func() { _ = d.Stop() })
	for all, changed := drivers.Registered(); len(all) == 0; all, changed = drivers.Registered() {
		<-changed
	}
	return Dir{Root: filepath.Join(top, "pods"), Claims: filepath.Join(top, "claims"), CSI: drivers, Attempts: &Attempts{}}, d
}

// TestDriven checks that the volume of a claim and an inline volume are published by their
// driver, get the pod's group, and are unpublished, and that podd does not access mounts in
// them.
func TestDriven(t *testing.T) {
	d, driver := withDriver(t)
	group := int64(2345)
	file := storage.FileFSGroupPolicy
	all := storage.CSIDriverSpec{FSGroupPolicy: &file, VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral}}
	k := known{
		"data": {Driver: driver.Name, Handle: "vol-1", Volume: "pv-data", AccessMode: v1.ReadWriteOnce, DriverSpec: &all},
		"own":  {Driver: driver.Name, DriverSpec: &all},
	}
	claim := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}
	inline := v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: driver.Name}}}
	pod := podOf(claim, inline)
	pod.Spec.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	must(t, os.MkdirAll(driver.Files("vol-1"), 0o755))
	must(t, os.WriteFile(filepath.Join(driver.Files("vol-1"), "a"), nil, 0o640))
	paths, err := d.Prepare(t.Context(), pod, k)
	must(t, err)
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(paths["data"], "a"), &st))
	if st.Gid != uint32(group) {
		t.Errorf("the file is of group %d", st.Gid)
	}
	again, err := d.Prepare(t.Context(), pod, known{"data": nil}) // nothing is known any more
	must(t, err)
	if again["data"] != paths["data"] || again["own"] != paths["own"] {
		t.Errorf("%v, %v", again, paths)
	}
	bound, err := d.BindSubPaths(t.Context(), pod, "main", paths, []render.SubPath{part("data", "sub")})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bound[0], "b"), nil, 0o600))
	must(t, driver.Set("NodeUnpublishVolume", "Internal not yet"))
	if err := d.Remove(t.Context(), uid); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Error(err)
	}
	silentBelow(t, paths["own"])
	must(t, driver.Set("NodeUnpublishVolume", ""))
	if err := d.Remove(t.Context(), uid); err == nil {
		t.Error("a directory went with a mount that is nobody's")
	}
	must(t, unix.Unmount(filepath.Join(paths["own"], "x"), unix.MNT_DETACH))
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Stat(filepath.Join(d.Root, uid)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		done, err := driver.Changes()
		must(t, err)
		if slices.Contains(done, "NodeUnstageVolume vol-1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("never unstaged: %q", done)
		}
	}
	if _, err := os.Stat(filepath.Join(driver.Files("vol-1"), "sub/b")); err != nil {
		t.Error(err)
	}
}

// silentBelow mounts in a volume what nobody may look at.
func silentBelow(t *testing.T, volume string) {
	t.Helper()
	at := filepath.Join(volume, "x")
	must(t, os.Mkdir(at, 0o700))
	silent(t, at)
}

// TestDrivenErrors checks that errors for missing data and for unsupported volumes have the
// kubelet's names of operations.
func TestDrivenErrors(t *testing.T) {
	inline := v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "x"}}}
	d := newDir(t)
	pod := podOf(inline)
	for _, err := range []error{second(d.Prepare(t.Context(), pod, known{})), d.Check(t.Context(), pod, known{}, nil)} {
		if err == nil || !strings.Contains(err.Error(), "start it with --kubeconfig") {
			t.Error(err)
		}
	}
	d, driver := withDriver(t)
	if err := second(d.Prepare(t.Context(), pod, known{})); !errors.Is(err, render.ErrMissing) {
		t.Error(err)
	}
	must(t, driver.Stop())
	err := second(d.Prepare(t.Context(), pod, known{"own": {Driver: driver.Name, Handle: "v", Volume: "pv-1", Block: true}}))
	e, is := errors.AsType[*Error](err)
	if !is || e.MountStep() != "MapVolume.SetUpDevice" {
		t.Fatal(err)
	}
	if volume, _ := e.MountFailure(); volume != "pv-1" {
		t.Error(volume)
	}
}

func second[T any](_ T, err error) error { return err }
