//go:build e2e

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/runtime/runtimetest/csidriver"
)

const inStorage = "/apis/storage.k8s.io/v1/"

// newDriver is a driver of an agent that is still to be made, so that it outlives it.
func newDriver(t *testing.T, node string, can ...string) *csidriver.Driver {
	t.Helper()
	d := &csidriver.Driver{
		Dir: filepath.Join(runtimeStack.Dir, "csi-"+node), Name: node + ".csi.test", NodeID: "id-of-" + node,
		Registry: filepath.Join(runtimeStack.Dir, "stack", "podd", node, "root", "plugins_registry"),
		Topology: map[string]string{node + ".csi.test/rack": "r1"}, Most: 7, Can: can,
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if calls, _ := os.ReadFile(filepath.Join(d.Dir, "calls")); t.Failed() {
			t.Logf("what the driver was asked:\n%s", calls)
		}
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func start(t *testing.T, d *csidriver.Driver) {
	t.Helper()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
}

// did waits until a driver has done just so much.
func did(t *testing.T, d *csidriver.Driver, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the driver has done %v", want), func() error {
		got, err := d.Done()
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("%v, %v", got, err)
		}
		return nil
	})
}

// csiNode waits for the drivers that the cluster knows of a node.
func (a *agent) csiNode(want ...storage.CSINodeDriver) {
	a.t.Helper()
	a.eventually("the CSINode is right", func() error {
		n := &storage.CSINode{}
		if err := plane.ask(http.MethodGet, inStorage+"csinodes/"+a.node, nil, n); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(n.Spec.Drivers, want) {
			got, _ := json.Marshal(n.Spec.Drivers)
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
}

// why waits until podd why says a text of a pod.
func (a *agent) why(pod, text string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("podd why %s says %q", pod, text), func() error {
		if out, err := a.verb("why", pod); !strings.Contains(out, text) {
			return fmt.Errorf("%s, %v", out, err)
		}
		return nil
	})
}

// inUse waits for the volumes that the Node's status says are.
func (a *agent) inUse(want ...v1.UniqueVolumeName) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("in use: %v", want), func() error {
		n, err := plane.node(a.node)
		if err != nil || !slices.Equal(n.Status.VolumesInUse, want) {
			return fmt.Errorf("%v, %v", n.Status.VolumesInUse, err)
		}
		return nil
	})
}

// attachment waits for that of a volume, which the controller makes.
func attachment(t *testing.T, volume string) (found *storage.VolumeAttachment) {
	t.Helper()
	eventually(t, "there is a VolumeAttachment of "+volume, func() error {
		all := &storage.VolumeAttachmentList{}
		if err := plane.ask(http.MethodGet, inStorage+"volumeattachments", nil, all); err != nil {
			return err
		}
		for i := range all.Items {
			if name := all.Items[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
				found = &all.Items[i]
				return nil
			}
		}
		return errNone
	})
	return found
}

// attached plays the attacher of a volume.
func attached(t *testing.T, a *storage.VolumeAttachment, status storage.VolumeAttachmentStatus) {
	t.Helper()
	body := map[string]any{"status": status}
	if err := plane.ask(http.MethodPatch, inStorage+"volumeattachments/"+a.Name+"/status", body, nil); err != nil {
		t.Fatal(err)
	}
}

// ends waits until the cluster has something no more.
func ends(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" is gone", func() error {
		if err := plane.ask(http.MethodGet, path, nil, nil); !errors.Is(err, errNone) {
			return fmt.Errorf("it is there, or %v", err)
		}
		return nil
	})
}

// diskOf is a volume of a driver with a claim of the same name, which the controllers
// bind.
func diskOf(t *testing.T, d *csidriver.Driver, name, handle string) {
	t.Helper()
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	give(t, "/api/v1/persistentvolumes", name, &v1.PersistentVolume{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain, StorageClassName: name,
		ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
			Driver: d.Name, VolumeHandle: handle, NodeStageSecretRef: &v1.SecretReference{Namespace: "kube-system", Name: name},
		}},
	}})
	give(t, inDefault+"persistentvolumeclaims", name, &v1.PersistentVolumeClaim{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: name, StorageClassName: new(name), AccessModes: modes, Resources: v1.VolumeResourceRequirements{Requests: size},
	}})
}

// A volume that a controller attaches: its pod waits for that, has its data, keeps it
// over podd's end, and gives it back, first the machine's driver, then the controller,
// though both podd and the driver are away meanwhile. One that is to grow grows, and why
// it does not yet its claim is told.
func TestCSI(t *testing.T) {
	plane.control(t)
	d := newDriver(t, "c1", "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	a := newAgent(t, "c1").start()
	a.ready()
	robot(t)
	start(t, d)
	a.csiNode(storage.CSINodeDriver{Name: d.Name, NodeID: "id-of-c1", TopologyKeys: []string{"c1.csi.test/rack"}, Allocatable: &storage.VolumeNodeResources{Count: new(int32(7))}})
	if n, err := plane.node(a.node); err != nil || n.Labels["c1.csi.test/rack"] != "r1" || n.Annotations["csi.volume.kubernetes.io/nodeid"] != `{"c1.csi.test":"id-of-c1"}` {
		t.Errorf("the node: %v, %v, %v", n.Labels, n.Annotations, err)
	}

	const handle, name = "disk:1", "c1-disk"
	give(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name)})
	give(t, inStorage+"storageclasses", name, &storage.StorageClass{ObjectMeta: objectMeta(name), Provisioner: d.Name, AllowVolumeExpansion: new(true)})
	give(t, "/api/v1/namespaces/kube-system/secrets", name, &v1.Secret{ObjectMeta: objectMeta(name), StringData: map[string]string{"key": "hush"}})
	diskOf(t, d, name, handle)
	if err := os.MkdirAll(d.Files(handle), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Files(handle), "word"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}

	p := asker(a.node, "c1-app")
	volumeOf(p, "data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	give(t, inDefault+"pods", p.Name, p)
	va := attachment(t, name)
	volume := v1.UniqueVolumeName("kubernetes.io/csi/" + d.Name + "^" + handle)
	a.inUse(volume)
	a.waits(p.Name, "ContainerCreating", "is not attached yet")
	attached(t, va, storage.VolumeAttachmentStatus{AttachError: &storage.VolumeError{Message: "no such disk"}})
	a.waits(p.Name, "ContainerCreating", "AttachVolume.Attach failed: no such disk")
	did(t, d)
	attached(t, va, storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"at": "/dev/x"}})
	a.gets(p.Name, "kept", "cat", "/data/word")
	did(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle)
	told(t, d, "NodeStageVolume", `"at":"/dev/x"`)

	a.kill()
	grow(t, name)
	if err := d.Set("NodeExpandVolume", "Internal not now"); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.eventually("the claim is told why it does not grow", func() error {
		c := &v1.PersistentVolumeClaim{}
		err := plane.ask(http.MethodGet, inDefault+"persistentvolumeclaims/"+name, nil, c)
		if !slices.ContainsFunc(c.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
			return c.Type == v1.PersistentVolumeClaimNodeResizeError && strings.Contains(c.Message, "not now")
		}) {
			return fmt.Errorf("%+v, %v", c.Status, err)
		}
		return nil
	})
	if err := d.Set("NodeExpandVolume", ""); err != nil {
		t.Fatal(err)
	}
	did(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle, "NodeExpandVolume "+handle)
	a.eventually("the claim has grown", func() error {
		c := &v1.PersistentVolumeClaim{}
		err := plane.ask(http.MethodGet, inDefault+"persistentvolumeclaims/"+name, nil, c)
		if q := c.Status.Capacity[v1.ResourceStorage]; err != nil || q.String() != "2Gi" || len(c.Status.AllocatedResourceStatuses)+len(c.Status.Conditions) > 0 {
			return fmt.Errorf("%+v, %v", c.Status, err)
		}
		return nil
	})
	a.gets(p.Name, "kept", "cat", "/data/word")
	a.inUse(volume)

	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	a.csiNode()
	if err := plane.ask(http.MethodDelete, inDefault+"pods/"+p.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	a.why(p.Name, "not found in the list of registered CSI drivers")
	a.kill()
	a.start()
	a.ready()
	a.inUse(volume)
	if err := plane.ask(http.MethodGet, inStorage+"volumeattachments/"+va.Name, nil, nil); err != nil {
		t.Errorf("while the volume is here: %v", err)
	}
	start(t, d)
	did(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle, "NodeExpandVolume "+handle, "NodeUnpublishVolume "+handle, "NodeUnstageVolume "+handle)
	ends(t, inDefault+"pods/"+p.Name)
	a.inUse()
	ends(t, inStorage+"volumeattachments/"+va.Name)
	if n := a.said("hush"); n > 0 {
		t.Errorf("%d lines of the log have what is secret", n)
	}
}

// told says that some request of a method has a text in it.
func told(t *testing.T, d *csidriver.Driver, method, text string) {
	t.Helper()
	calls, err := d.Calls()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.What == csidriver.Begun && c.Method == method && strings.Contains(string(c.Request), text) {
			return
		}
	}
	t.Errorf("no %s has %s", method, text)
}

// grow plays the resizer of a claim and the volume of the same name, as far as its part
// goes.
func grow(t *testing.T, name string) {
	t.Helper()
	size := map[string]any{"storage": "2Gi"}
	claim := inDefault + "persistentvolumeclaims/" + name
	for _, step := range []struct {
		path string
		body map[string]any
	}{
		{claim, map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": size}}}},
		{"/api/v1/persistentvolumes/" + name, map[string]any{"spec": map[string]any{"capacity": size}}},
		{claim + "/status", map[string]any{"status": map[string]any{
			"allocatedResources": size, "allocatedResourceStatuses": map[string]any{"storage": v1.PersistentVolumeClaimNodeResizePending},
			"conditions": []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending, Status: v1.ConditionTrue}},
		}}},
	} {
		if err := plane.ask(http.MethodPatch, step.path, step.body, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A volume that is written in its pod, of a driver that is told of the pod: nothing
// attaches it, and it goes with the pod.
func TestCSIInline(t *testing.T) {
	d := newDriver(t, "c2")
	a := newAgent(t, "c2").start()
	a.ready()
	robot(t)
	give(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name), Spec: storage.CSIDriverSpec{
		PodInfoOnMount: new(true), TokenRequests: []storage.TokenRequest{{Audience: "vault"}},
		VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecycleEphemeral},
	}})
	p := asker(a.node, "c2-app")
	volumeOf(p, "own", v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: d.Name, VolumeAttributes: map[string]string{"size": "small"}, NodePublishSecretRef: &v1.LocalObjectReference{Name: "c2-key"},
	}})
	give(t, inDefault+"pods", p.Name, p)
	a.waits(p.Name, "ContainerCreating", `fetching nodePublishSecretRef default/c2-key failed: secret "c2-key" not found`)
	give(t, inDefault+"secrets", "c2-key", &v1.Secret{ObjectMeta: objectMeta("c2-key"), StringData: map[string]string{"key": "hush"}})
	a.why(p.Name, "not found in the list of registered CSI drivers")
	start(t, d)
	a.gets(p.Name, "", "touch", "/own/here")
	for _, text := range []string{
		`"size":"small"`, `"csi.storage.k8s.io/ephemeral":"true"`, `"csi.storage.k8s.io/pod.name":"c2-app"`,
		`"csi.storage.k8s.io/serviceAccount.name":"robot"`, `\"vault\":{\"token\":\"`, `\"expirationTimestamp\":\"20`,
	} {
		told(t, d, "NodePublishVolume", text)
	}
	a.inUse()
	if err := plane.ask(http.MethodDelete, inDefault+"pods/"+p.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	ends(t, inDefault+"pods/"+p.Name)
	done, err := d.Done()
	if err != nil || len(done) != 2 || !strings.HasPrefix(done[0], "NodePublishVolume csi-") || !strings.HasPrefix(done[1], "NodeUnpublishVolume csi-") {
		t.Errorf("the driver has done %v, %v", done, err)
	}
	if n := a.said("hush"); n > 0 {
		t.Errorf("%d lines of the log have what is secret", n)
	}
}
