package volume

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/types"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/manifest/refs"
	"podd/reconcile/plugins"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/selinux"
	"podd/runtime/runtimetest/csidriver"
)

func TestMain(m *testing.M) {
	csidriver.Main()
	os.Exit(m.Run())
}

// csiContent contains the CSI parameters of a pod's volumes by name.
type csiContent map[string]*refs.CSIVolume

func (csiContent) Files(*v1.Volume) (map[string]render.File, error) { return nil, nil }
func (c csiContent) CSI(v *v1.Volume) *refs.CSIVolume               { return c[v.Name] }
func (c csiContent) CHAPSecret(*v1.Volume) *v1.Secret               { return nil }
func (csiContent) Claim(v *v1.Volume) *refs.Claim {
	if v.PersistentVolumeClaim == nil {
		return nil
	}
	pv := &v1.PersistentVolume{}
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	pv.Name, pv.Spec.CSI = "pv-"+v.Name, &v1.CSIPersistentVolumeSource{Driver: "host.csi.example.com"}
	c := &refs.Claim{PersistentVolumeClaim: &v1.PersistentVolumeClaim{}, Volume: pv}
	c.Namespace, c.Name = "default", v.PersistentVolumeClaim.ClaimName
	return c
}

// newDirWithDriver returns a Dir with support for CSI, and a running driver that is registered.
func newDirWithDriver(t *testing.T) (Dir, *csidriver.Driver) {
	t.Helper()
	top, err := os.MkdirTemp("", "csi")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	t.Cleanup(func() { unmountAll(t, top) })
	log := slog.New(slog.DiscardHandler)
	drivers, err := csi.New(csi.Options{Root: top, NodeName: "node1", Log: log, CallTimeout: time.Hour})
	must(t, err)
	d := &csidriver.Driver{Dir: filepath.Join(top, "d"), Name: "host.csi.example.com", Registry: filepath.Join(top, plugins.DirName), Capabilities: []string{"STAGE_UNSTAGE_VOLUME"}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w := &plugins.Watcher{Dir: d.Registry, Handlers: map[string]plugins.Handler{registration.CSIPlugin: drivers}, Log: log}
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
	return Dir{Root: filepath.Join(top, "pods"), ClaimsDir: filepath.Join(top, "claims"), CSI: drivers, CallLimiter: &CallLimiter{}}, d
}

// TestCSI checks that the driver publishes and unpublishes the volume of a claim and an inline volume,
// and that their files get the pod's group. Podd must not access mounts in these volumes.
func TestCSI(t *testing.T) {
	d, driver := newDirWithDriver(t)
	group := int64(2345)
	file := storage.FileFSGroupPolicy
	all := storage.CSIDriverSpec{FSGroupPolicy: &file, VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral}}
	content := csiContent{
		"data": {Driver: driver.Name, Handle: "vol-1", Volume: "pv-data", AccessMode: v1.ReadWriteOnce, DriverSpec: &all},
		"own":  {Driver: driver.Name, DriverSpec: &all},
	}
	claim := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}
	inline := v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: driver.Name}}}
	pod := newPod(claim, inline)
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	must(t, os.MkdirAll(driver.FilesDir("vol-1"), 0o755))
	must(t, os.WriteFile(filepath.Join(driver.FilesDir("vol-1"), "a"), nil, 0o640))
	paths, err := d.Prepare(t.Context(), pod, content)
	must(t, err)
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(paths["data"], "a"), &st))
	if st.Gid != uint32(group) {
		t.Errorf("group of the file: got %d, want %d", st.Gid, group)
	}
	again, err := d.Prepare(t.Context(), pod, csiContent{"data": nil}) // the parameters are missing now
	must(t, err)
	if again["data"] != paths["data"] || again["own"] != paths["own"] {
		t.Errorf("second Prepare: got paths %v, want %v", again, paths)
	}
	bound, err := d.BindSubPaths(t.Context(), pod, "main", paths, []render.SubPath{newSubPath("data", "sub")})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bound[0], "b"), nil, 0o600))
	must(t, driver.SetBehavior("NodeUnpublishVolume", "Internal not yet"))
	if err := d.Remove(t.Context(), uid); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("Remove while NodeUnpublishVolume fails: got error %v, want \"not yet\"", err)
	}
	mountSilentBelow(t, paths["own"])
	must(t, driver.SetBehavior("NodeUnpublishVolume", ""))
	if err := d.Remove(t.Context(), uid); err == nil {
		t.Error("Remove with a mount of another program: got no error, want one")
	}
	must(t, unix.Unmount(filepath.Join(paths["own"], "x"), unix.MNT_DETACH))
	must(t, d.Remove(t.Context(), uid))
	if _, err := os.Stat(filepath.Join(d.Root, uid)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of the pod after Remove: got error %v, want not exist", err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		done, err := driver.Changes()
		must(t, err)
		if slices.Contains(done, "NodeUnstageVolume vol-1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for NodeUnstageVolume; calls: %q", done)
		}
	}
	if _, err := os.Stat(filepath.Join(driver.FilesDir("vol-1"), "sub/b")); err != nil {
		t.Errorf("file in the volume after Remove: got error %v, want the file kept", err)
	}
}

// ownedCSIContent is the content of a pod with one claim. The claim is from a manifest and is bound
// to a CSI volume.
type ownedCSIContent struct {
	*claimContent
	csi *refs.CSIVolume
}

func (c ownedCSIContent) CSI(*v1.Volume) *refs.CSIVolume { return c.csi }

// TestCSI_Rebind checks that a claim of a manifest keeps its CSI volume. Another volumeHandle must
// be rejected, because it means other data.
func TestCSI_Rebind(t *testing.T) {
	d, driver := newDirWithDriver(t)
	content := func(handle string) ownedCSIContent {
		pv := localVolume("disk", "")
		pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver.Name, VolumeHandle: handle}}
		return ownedCSIContent{newClaim("file", pv), &refs.CSIVolume{Driver: driver.Name, Handle: handle, Volume: "disk", AccessMode: v1.ReadWriteOnce}}
	}
	_, err := d.Prepare(t.Context(), newClaimPod(), content("vol-1"))
	must(t, err)
	must(t, d.Check(t.Context(), newClaimPod(), content("vol-1"), nil))
	must(t, d.Remove(t.Context(), uid))
	want := `PersistentVolume "disk", whose path or volumeHandle has changed`
	for _, err := range []error{errorOf(d.Prepare(t.Context(), newClaimPod(), content("vol-2"))), d.Check(t.Context(), newClaimPod(), content("vol-2"), nil)} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("another volumeHandle: got error %v, want %q", err, want)
		}
	}
}

// mountSilentBelow mounts, in the directory x of a volume, a file system on which every access hangs.
func mountSilentBelow(t *testing.T, volume string) {
	t.Helper()
	at := filepath.Join(volume, "x")
	must(t, os.Mkdir(at, 0o700))
	mountSilent(t, at)
}

// TestCSI_Errors checks the errors without CSI support, with missing parameters and without a driver.
// The last error must have the kubelet's names of the volume and the operation.
func TestCSI_Errors(t *testing.T) {
	inline := v1.Volume{Name: "own", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "x"}}}
	d := newDir(t)
	pod := newPod(inline)
	for _, err := range []error{errorOf(d.Prepare(t.Context(), pod, csiContent{})), d.Check(t.Context(), pod, csiContent{}, nil)} {
		if err == nil || !strings.Contains(err.Error(), "run podd without --runonce") {
			t.Errorf("without CSI support: got error %v, want one with --runonce", err)
		}
	}
	d, driver := newDirWithDriver(t)
	if err := errorOf(d.Prepare(t.Context(), pod, csiContent{})); !errors.Is(err, render.ErrMissing) {
		t.Errorf("without parameters: got error %v, want %v", err, render.ErrMissing)
	}
	must(t, driver.Stop())
	err := errorOf(d.Prepare(t.Context(), pod, csiContent{"own": {Driver: driver.Name, Handle: "v", Volume: "pv-1", Block: true}}))
	e, is := errors.AsType[*Error](err)
	if !is || e.MountStep() != "MapVolume.SetUpDevice" {
		t.Fatalf("without a driver: got error %v, want the step MapVolume.SetUpDevice", err)
	}
	if volume, _ := e.MountFailure(); volume != "pv-1" {
		t.Errorf("volume of the failure: got %q, want pv-1", volume)
	}
}

// errorOf returns the second result of a call.
func errorOf[T any](_ T, err error) error { return err }

// TestCSI_SELinux checks for which volumes the driver gets the label of the pod. These are the
// PersistentVolumes of a driver with seLinuxMount that all containers of the pod use with the same
// label.
func TestCSI_SELinux(t *testing.T) {
	d, driver := newDirWithDriver(t)
	d.SELinux = selinux.Policy{Process: "u:r:p:s0", File: "u:r:f:s0"}
	spec := func(labels bool) *storage.CSIDriverSpec {
		return &storage.CSIDriverSpec{SELinuxMount: &labels, VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent, storage.VolumeLifecycleEphemeral}}
	}
	content := csiContent{
		"data":   {Driver: driver.Name, Handle: "vol-1", Volume: "pv-data", AccessMode: v1.ReadWriteOnce, DriverSpec: spec(true)},
		"plain":  {Driver: driver.Name, Handle: "vol-2", Volume: "pv-plain", AccessMode: v1.ReadWriteOnce, DriverSpec: spec(false)},
		"inline": {Driver: driver.Name, DriverSpec: spec(true)},
		"own":    {Driver: driver.Name, Handle: "vol-3", Volume: "pv-own", AccessMode: v1.ReadWriteOnce, DriverSpec: spec(true), MountOptions: []string{"context=u:r:own:s0"}},
		"files":  {Driver: driver.Name, Handle: "vol-4", Volume: "pv-files", AccessMode: v1.ReadWriteOnce, DriverSpec: spec(true), MountOptions: []string{"defcontext=u:r:own:s0"}},
	}
	var volumes []v1.Volume
	var mounts []v1.VolumeMount
	for name, c := range content {
		v := v1.Volume{Name: name}
		if c.Volume == "" {
			v.CSI = &v1.CSIVolumeSource{Driver: driver.Name}
		} else {
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		}
		volumes, mounts = append(volumes, v), append(mounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	pod := newPod(volumes...)
	pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c1"}}
	other := v1.Container{VolumeMounts: mounts, SecurityContext: &v1.SecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c2"}}}
	pod.Object.Spec.Containers = []v1.Container{{VolumeMounts: mounts}, other}
	for _, err := range []error{d.Check(t.Context(), pod, content, nil), func() error { _, err := d.Prepare(t.Context(), pod, content); return err }()} {
		if err == nil || !strings.Contains(err.Error(), `"data"`) || !strings.Contains(err.Error(), "different SELinux labels") || strings.Contains(err.Error(), "plain") {
			t.Errorf("two containers with different labels: got error %v, want one that names the volume \"data\" only", err)
		}
	}
	pod.Object.Spec.Containers = pod.Object.Spec.Containers[:1]
	_, err := d.Prepare(t.Context(), pod, content)
	must(t, err)
	calls, err := driver.Calls()
	must(t, err)
	published := map[string]bool{}
	for _, c := range calls {
		if c.Event != csidriver.CallBegun || c.Method != "NodePublishVolume" && c.Method != "NodeStageVolume" {
			continue
		}
		published[c.Volume] = true
		want := map[string]string{"vol-1": `"context=\"u:r:f:s0:c1\""`, "vol-3": `"context=u:r:own:s0"`, "vol-4": `"defcontext=u:r:own:s0"`}[c.Volume]
		request := string(c.Request)
		isOnly := strings.Count(request, "context=") == strings.Count(want, "context=")
		if !strings.Contains(request, want) || !isOnly {
			t.Errorf("request of %s for %s: got %s, want only the label %s (none if empty)", c.Method, c.Volume, request, want)
		}
	}
	if len(published) != len(content) {
		t.Errorf("got calls for %v, want calls for all volumes", published)
	}
	pod.Object.Spec.Containers = append(pod.Object.Spec.Containers, other) // must not stop a pod with mounted volumes
	_, err = d.Prepare(t.Context(), pod, content)
	must(t, err)
}

// TestOnLabel checks the results that are reported for volumes with SELinux labels.
func TestOnLabel(t *testing.T) {
	d, driver := newDirWithDriver(t)
	d.SELinux = selinux.Policy{Process: "u:r:p:s0", File: "u:r:f:s0"}
	var got []string
	d.OnLabel = func(r LabelResult) {
		kind := "labeled"
		if r.Err != nil {
			kind = map[selinux.ErrorKind]string{selinux.InvalidLabel: "invalid", selinux.DifferentLabels: "different", selinux.Conflict: "conflict"}[r.Err.Kind]
		}
		got = append(got, fmt.Sprintf("%s %s %s ignored %t", r.Plugin, r.AccessMode, kind, r.IsErrorIgnored))
	}
	supportsLabels := true
	spec := &storage.CSIDriverSpec{SELinuxMount: &supportsLabels, VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecyclePersistent}}
	content := csiContent{"data": {Driver: driver.Name, Handle: "vol-1", Volume: "pv-data", AccessMode: v1.ReadWriteOnce, DriverSpec: spec}}
	prepare := func(uid types.UID, levels ...string) error {
		pod := newPod(v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}})
		pod.UID = uid
		for _, level := range levels {
			pod.Object.Spec.Containers = append(pod.Object.Spec.Containers, v1.Container{
				VolumeMounts:    []v1.VolumeMount{{Name: "data", MountPath: "/data"}},
				SecurityContext: &v1.SecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: level}},
			})
		}
		_, err := d.Prepare(t.Context(), pod, content)
		return err
	}
	for range 2 { // the second call does not mount the volume
		must(t, prepare("a", "s0:c1"))
	}
	for _, err := range []error{prepare("b", "s0:c2"), prepare("b", "s0:c1", "s0:c2"), prepare("b", `"`)} {
		if err == nil {
			t.Error("got no error about the label, want one")
		}
	}
	d.SELinux.OnlySinglePod = true
	must(t, prepare("c", "s0:c1", "s0:c2"))
	must(t, prepare("d", "s0:c1"))
	plugin := "kubernetes.io/csi:" + driver.Name + " RWO "
	want := []string{plugin + "labeled ignored false", plugin + "conflict ignored false", plugin + "different ignored false", plugin + "invalid ignored false", plugin + "different ignored true"}
	if !slices.Equal(got, want) {
		t.Errorf("got the results %q, want %q", got, want)
	}
}
