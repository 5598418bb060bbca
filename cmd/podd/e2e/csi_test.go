//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/runtime/runtimetest/csidriver"
	"podd/server"
)

// newCSIDriver returns a driver for the pods of d. The driver is stopped after podd has exited.
func newCSIDriver(d *daemon, can ...string) *csidriver.Driver {
	d.t.Helper()
	driver := &csidriver.Driver{
		Dir: filepath.Join(d.on.Dir, "csi-"+d.node), Name: d.node + ".csi.test", // the path of a socket must be short
		Registry: filepath.Join(d.root(), "plugins_registry"), Capabilities: can,
	}
	if err := os.MkdirAll(driver.Dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	d.closers = append(d.closers, func() {
		if calls, _ := os.ReadFile(filepath.Join(driver.Dir, "calls")); d.t.Failed() {
			d.t.Logf("calls of the driver:\n%s", calls)
		}
		if err := driver.Stop(); err != nil {
			d.t.Error(err)
		}
	})
	return driver
}

func (d *daemon) startCSIDriver(driver *csidriver.Driver) {
	d.t.Helper()
	if err := driver.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// untilCSICalls waits until the driver has executed exactly the calls in want.
func (d *daemon) untilCSICalls(driver *csidriver.Driver, want ...string) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("the driver has executed %v", want), func() error {
		got, err := driver.Changes()
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("calls of the driver: got %v, error %v; want %v", got, err, want)
		}
		return nil
	})
}

// wantCSIRequest fails the test unless the driver has received a request of a method that contains
// all parts.
func (d *daemon) wantCSIRequest(driver *csidriver.Driver, method string, parts ...string) {
	d.t.Helper()
	calls, err := driver.Calls()
	if err != nil {
		d.t.Fatal(err)
	}
	if !slices.ContainsFunc(calls, func(c csidriver.Call) bool {
		return c.Event == csidriver.CallBegun && c.Method == method && containsAll(string(c.Request), parts)
	}) {
		d.t.Errorf("requests of %s: got none that contains all of %q, want one", method, parts)
	}
}

// csiDriverObject returns the CSIDriver of a driver that needs no attachment.
func csiDriverObject(driver *csidriver.Driver, modes ...storage.VolumeLifecycleMode) *storage.CSIDriver {
	return &storage.CSIDriver{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"}, ObjectMeta: metav1.ObjectMeta{Name: driver.Name},
		Spec: storage.CSIDriverSpec{
			AttachRequired: new(false), PodInfoOnMount: new(true), FSGroupPolicy: new(storage.FileFSGroupPolicy), VolumeLifecycleModes: modes,
		},
	}
}

// csiVolume returns a PersistentVolume with the name "disk" of a driver.
func csiVolume(driver *csidriver.Driver, handle string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver.Name, VolumeHandle: handle}},
		},
	}
}

// TestCSI checks a PersistentVolume of a CSI driver in a manifest. The pod must wait until there are a
// CSIDriver with attachRequired: false, the volume's Secret, and a registered driver. The volume must
// stay mounted when podd is killed. When the pod is removed, podd must release the volume, even if
// podd and the driver were not running at that time.
func TestCSI(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	driver := newCSIDriver(d, "STAGE_UNSTAGE_VOLUME")
	if err := os.MkdirAll(driver.FilesDir("disk:1"), 0o777); err != nil {
		t.Fatal(err)
	}
	pv, c, object := csiVolume(driver, "disk:1"), newClaim("data", v1.ReadWriteOnce), csiDriverObject(driver)
	pv.Spec.MountOptions, pv.Spec.CSI.FSType, pv.Spec.CSI.VolumeAttributes = []string{"noatime"}, "ext4", map[string]string{"pool": "fast"}
	pv.Spec.CSI.NodeStageSecretRef = &v1.SecretReference{Namespace: "storage", Name: "key"}
	pv.Spec.CSI.NodePublishSecretRef = &v1.SecretReference{Namespace: "storage", Name: "key"}
	secret := newSecret("key", v1.SecretTypeOpaque, map[string]string{"pass": password})
	secret.Namespace = "storage"

	p := d.podWithClaim("web", "data")
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	d.apply(p)
	d.write("claim", manifestText(d, pv, c))
	d.untilProblem("web", `CSIDriver "`+driver.Name+`" of PersistentVolume "disk" (web.yaml:`, "is not defined in "+d.manifestDir())
	object.Spec.AttachRequired = nil
	d.write("driver", manifestText(d, object))
	d.untilProblem("web", `PersistentVolume "disk"`, "must be attached to this node by a controller", "set attachRequired: false")
	object.Spec.AttachRequired = new(false)
	d.write("driver", manifestText(d, object))
	d.untilProblem("web", `Secret "storage/key" of PersistentVolume "disk"`)
	d.write("secret", manifestText(d, secret))
	d.untilProblem("web", "driver name "+driver.Name+" not found in the list of registered CSI drivers")
	d.startCSIDriver(driver)
	d.untilApplied("web")
	if got, want := d.readTrace("web.data"), "web\n4321"; got != want {
		t.Errorf("data and group in the container: got %q, want %q", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(driver.FilesDir("disk:1"), "x")); string(text) != "web\n" {
		t.Errorf("file of the pod in the driver's volume: got %q, error %v; want %q", text, err, "web\n")
	}
	calls := []string{"NodeStageVolume disk:1", "NodePublishVolume disk:1"}
	d.untilCSICalls(driver, calls...)
	d.wantCSIRequest(driver, "NodeStageVolume", `"pass":"`+password, `"pool":"fast"`, `"fsType":"ext4"`, `"mountFlags":["noatime"]`)
	d.wantCSIRequest(driver, "NodePublishVolume", `"pass":"`+password, `"csi.storage.k8s.io/pod.name":"`+d.podName("web")+`"`, `"csi.storage.k8s.io/ephemeral":"false"`)
	d.wantNoSecret()

	// podd stages the volume only once for two pods. In the second pod, the volume is read-only.
	reader := d.pod("reader", shell("main", writeTrace("reader", "cat /data/x; touch /data/y")+serve("reader")))
	withVolume(reader, "data", "/data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: true}})
	d.apply(reader)
	d.untilApplied("reader")
	if got := d.readTrace("reader"); !strings.HasPrefix(got, "web\n") || !strings.Contains(got, "Read-only file system") {
		t.Errorf("trace of pod reader: got %q, want text that begins with %q and with %q", got, "web\n", "Read-only file system")
	}
	calls = append(calls, "NodePublishVolume disk:1")
	d.untilCSICalls(driver, calls...)
	d.wantCSIRequest(driver, "NodePublishVolume", `"readonly":true`)

	was := d.container("web", "main")
	d.crash()
	d.untilApplied("web")
	d.remove("reader")
	d.untilGone("reader")
	calls = append(calls, "NodeUnpublishVolume disk:1")
	d.untilCSICalls(driver, calls...)
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after podd was killed: got %v, want %v", now, was)
	}

	if err := driver.Stop(); err != nil {
		t.Fatal(err)
	}
	d.kill()
	d.remove("web", "claim", "driver", "secret")
	d.start()
	d.untilPod("waits for the driver to release its volume", "web", func(*server.PodView) error {
		if why, _ := d.verb("why", "web"); !strings.Contains(why, "not found in the list of registered CSI drivers") {
			return fmt.Errorf("podd why: got %s, want \"not found in the list of registered CSI drivers\" in it", why)
		}
		return nil
	})
	d.crash()
	d.startCSIDriver(driver)
	d.untilGone("web")
	d.untilCSICalls(driver, append(calls, "NodeUnpublishVolume disk:1", "NodeUnstageVolume disk:1")...)
	d.wantNothingLeft()
}

// TestCSI_InlineVolume checks an ephemeral inline volume of a CSI driver. podd must request its
// deletion from the driver when the pod is removed.
func TestCSI_InlineVolume(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	driver := newCSIDriver(d)
	d.startCSIDriver(driver)
	p := d.pod("web", shell("main", "echo here >/own/x; "+writeTrace("own", "cat /own/x")+serve("web")))
	withVolume(p, "own", "/own", v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: driver.Name, VolumeAttributes: map[string]string{"size": "small"}, NodePublishSecretRef: &v1.LocalObjectReference{Name: "key"},
	}})
	d.apply(p)
	d.write("driver", manifestText(d, csiDriverObject(driver)))
	d.untilProblem("web", `CSI volume "own" (web.yaml:`, `requires the mode Ephemeral, but the CSIDriver "`+driver.Name+`" supports only ["Persistent"]`, "use a driver that supports this mode")
	d.write("driver", manifestText(d, csiDriverObject(driver, storage.VolumeLifecycleEphemeral)))
	d.untilProblem("web", `Secret "key" (web.yaml:`)
	d.write("secret", manifestText(d, newSecret("key", v1.SecretTypeOpaque, map[string]string{"pass": password})))
	d.untilApplied("web")
	if got := d.readTrace("own"); got != "here" {
		t.Errorf("file in the volume of the container: got %q, want %q", got, "here")
	}
	d.wantCSIRequest(driver, "NodePublishVolume", `"pass":"`+password, `"size":"small"`, `"csi.storage.k8s.io/ephemeral":"true"`)
	d.wantNoSecret()
	d.crash()
	d.remove("web")
	d.untilGone("web")
	done, err := driver.Changes()
	if err != nil || len(done) != 2 || !strings.HasPrefix(done[0], "NodePublishVolume csi-") || !strings.HasPrefix(done[1], "NodeUnpublishVolume csi-") {
		t.Errorf("calls of the driver: got %v, error %v; want one NodePublishVolume and one NodeUnpublishVolume", done, err)
	}
	d.wantNothingLeft()
}

// TestCSI_BlockDevice checks a PersistentVolume that is a block device of a CSI driver.
func TestCSI_BlockDevice(t *testing.T) {
	t.Parallel()
	device, file := newLoopDevice(t, t.TempDir())
	d := startDaemon(t)
	driver := newCSIDriver(d, "STAGE_UNSTAGE_VOLUME")
	driver.Device = device
	d.startCSIDriver(driver)
	pv, c := csiVolume(driver, "disk:1"), newClaim("data", v1.ReadWriteOnce)
	pv.Spec.VolumeMode, c.Spec.VolumeMode = new(v1.PersistentVolumeBlock), new(v1.PersistentVolumeBlock)
	d.write("claim", manifestText(d, csiDriverObject(driver), pv, c))
	p := d.pod("web", shell("main", writeTrace("device", "echo raw | dd of=/dev/disk conv=fsync,notrunc; stat -c %F /dev/disk")+serve("web")))
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})
	p.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "data", DevicePath: "/dev/disk"}}
	d.apply(p)
	d.untilApplied("web")
	if got := d.readTrace("device"); !strings.Contains(got, "block special file") {
		t.Errorf("type of /dev/disk in the container: got %q, want %q", got, "block special file")
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "raw") {
		t.Errorf("content of the device: got %.3q, error %v; want %q", text, err, "raw")
	}
	d.remove("web")
	d.untilGone("web")
	d.untilCSICalls(driver, "NodeStageVolume disk:1", "NodePublishVolume disk:1", "NodeUnpublishVolume disk:1", "NodeUnstageVolume disk:1")
	d.wantNothingLeft()
}

// TestCSI_Kubectl checks that kubectl can create a CSIDriver, a volume of the driver and a pod that
// uses the volume.
func TestCSI_Kubectl(t *testing.T) {
	t.Parallel()
	d, k := startWritable(t)
	driver := newCSIDriver(d, "STAGE_UNSTAGE_VOLUME")
	d.startCSIDriver(driver)
	k.wantOutput("apply -f "+k.manifest(csiDriverObject(driver), csiVolume(driver, "disk:1"), newClaim("data", v1.ReadWriteOnce), d.podWithClaim("web", "data")),
		"csidriver.storage.k8s.io/"+driver.Name+" created", "persistentvolume/disk created", "pod/web created")
	k.untilReady("web")
	k.wantOutput("get csidrivers", "ATTACHREQUIRED", "PODINFOONMOUNT", driver.Name, "Persistent")
	k.wantOutput("get persistentvolumeclaim data", "Bound", "disk")
	k.wantOutput("delete pod web", "deleted")
	k.untilNone("web")
	d.untilCSICalls(driver, "NodeStageVolume disk:1", "NodePublishVolume disk:1", "NodeUnpublishVolume disk:1", "NodeUnstageVolume disk:1")
	k.wantOutput("delete csidriver "+driver.Name, "deleted")
}
