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

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/runtime/runtimetest/csidriver"
)

const inStorage = "/apis/storage.k8s.io/v1/"

// newDriver returns a CSI driver for an agent. It must be called before newAgent, because cleanup
// functions run in reverse order and the driver must be stopped after the agent.
func newDriver(t *testing.T, node string, can ...string) *csidriver.Driver {
	t.Helper()
	d := &csidriver.Driver{
		Dir: filepath.Join(runtimeStack.Dir, "csi-"+node), Name: node + ".csi.test", NodeID: "id-of-" + node,
		Registry: filepath.Join(runtimeStack.Dir, "stack", "podd", node, "root", "plugins_registry"),
		Topology: map[string]string{node + ".csi.test/rack": "r1"}, MaxVolumes: 7, Capabilities: can,
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if calls, _ := os.ReadFile(filepath.Join(d.Dir, "calls")); t.Failed() {
			t.Logf("calls of the driver:\n%s", calls)
		}
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func startDriver(t *testing.T, d *csidriver.Driver) {
	t.Helper()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
}

// untilDone waits until the driver has made exactly the calls in want. Calls that have failed and
// calls that change nothing are ignored.
func untilDone(t *testing.T, d *csidriver.Driver, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the driver has executed %v", want), func() error {
		got, err := d.Changes()
		if err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("calls of the driver: got %v, error %v; want %v", got, err, want)
		}
		return nil
	})
}

// untilCSINode waits until the CSINode of the node lists exactly the drivers in want.
func (a *agent) untilCSINode(want ...storage.CSINodeDriver) {
	a.t.Helper()
	a.eventually("the CSINode lists the drivers", func() error {
		n := &storage.CSINode{}
		if err := plane.do(http.MethodGet, inStorage+"csinodes/"+a.node, nil, n); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(n.Spec.Drivers, want) {
			got, _ := json.Marshal(n.Spec.Drivers)
			return fmt.Errorf("drivers in the CSINode: got %s, want %+v", got, want)
		}
		return nil
	})
}

// untilWhy waits until podd why prints a text for a pod.
func (a *agent) untilWhy(pod, text string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("podd why %s prints %q", pod, text), func() error {
		if out, err := a.verb("why", pod); !strings.Contains(out, text) {
			return fmt.Errorf("got output %s, error %v; want %q in it", out, err, text)
		}
		return nil
	})
}

// untilInUse waits until volumesInUse in the Node's status contains exactly the volumes in want.
func (a *agent) untilInUse(want ...v1.UniqueVolumeName) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("the volumes in use are %v", want), func() error {
		n, err := plane.node(a.node)
		if err != nil || !slices.Equal(n.Status.VolumesInUse, want) {
			return fmt.Errorf("volumes in use: got %v, error %v; want %v", n.Status.VolumesInUse, err, want)
		}
		return nil
	})
}

// untilAttachment waits until the controller has created a VolumeAttachment of a volume, and returns
// it.
func untilAttachment(t *testing.T, volume string) (found *storage.VolumeAttachment) {
	t.Helper()
	eventually(t, "there is a VolumeAttachment of "+volume, func() error {
		all := &storage.VolumeAttachmentList{}
		if err := plane.do(http.MethodGet, inStorage+"volumeattachments", nil, all); err != nil {
			return err
		}
		for i := range all.Items {
			if name := all.Items[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
				found = &all.Items[i]
				return nil
			}
		}
		return errNotFound
	})
	return found
}

// setAttachment sets the status of a VolumeAttachment, as the attacher of the driver does.
func setAttachment(t *testing.T, a *storage.VolumeAttachment, status storage.VolumeAttachmentStatus) {
	t.Helper()
	body := map[string]any{"status": status}
	if err := plane.do(http.MethodPatch, inStorage+"volumeattachments/"+a.Name+"/status", body, nil); err != nil {
		t.Fatal(err)
	}
}

// untilDeleted waits until an object does not exist any more.
func untilDeleted(t *testing.T, path string) {
	t.Helper()
	eventually(t, path+" is deleted", func() error {
		if err := plane.do(http.MethodGet, path, nil, nil); !errors.Is(err, errNotFound) {
			return fmt.Errorf("got error %v, want not found", err)
		}
		return nil
	})
}

// createVolume creates a volume of a driver and a claim of the same name. The controllers bind
// the claim to the volume.
func createVolume(t *testing.T, d *csidriver.Driver, name, handle string) {
	t.Helper()
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	create(t, "/api/v1/persistentvolumes", name, &v1.PersistentVolume{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain, StorageClassName: name,
		ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
			Driver: d.Name, VolumeHandle: handle, NodeStageSecretRef: &v1.SecretReference{Namespace: "kube-system", Name: name},
		}},
	}})
	create(t, inDefault+"persistentvolumeclaims", name, &v1.PersistentVolumeClaim{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: name, StorageClassName: new(name), AccessModes: modes, Resources: v1.VolumeResourceRequirements{Requests: size},
	}})
}

// TestCSI checks a volume that a controller attaches. The pod must wait until the volume is
// attached, and must read its data, also after podd was killed. podd must release the volume on
// the node first and then in the cluster, even if podd and the driver were stopped in the
// meantime. When the claim grows, podd must expand the volume. If this fails, the claim must
// show the error.
func TestCSI(t *testing.T) {
	plane.startControllers(t)
	d := newDriver(t, "c1", "STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME")
	a := newAgent(t, "c1").start()
	a.untilReady()
	createServiceAccount(t)
	startDriver(t, d)
	a.untilCSINode(storage.CSINodeDriver{Name: d.Name, NodeID: "id-of-c1", TopologyKeys: []string{"c1.csi.test/rack"}, Allocatable: &storage.VolumeNodeResources{Count: new(int32(7))}})
	if n, err := plane.node(a.node); err != nil || n.Labels["c1.csi.test/rack"] != "r1" || n.Annotations["csi.volume.kubernetes.io/nodeid"] != `{"c1.csi.test":"id-of-c1"}` {
		t.Errorf("Node: got labels %v, annotations %v, error %v; want label c1.csi.test/rack=r1 and node ID id-of-c1", n.Labels, n.Annotations, err)
	}

	const handle, name = "disk:1", "c1-disk"
	create(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name)})
	create(t, inStorage+"storageclasses", name, &storage.StorageClass{ObjectMeta: objectMeta(name), Provisioner: d.Name, AllowVolumeExpansion: new(true)})
	create(t, "/api/v1/namespaces/kube-system/secrets", name, &v1.Secret{ObjectMeta: objectMeta(name), StringData: map[string]string{"key": "hush"}})
	createVolume(t, d, name, handle)
	if err := os.MkdirAll(d.FilesDir(handle), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.FilesDir(handle), "word"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}

	p := boundPod(a.node, "c1-app")
	addVolume(p, "data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	create(t, inDefault+"pods", p.Name, p)
	va := untilAttachment(t, name)
	volume := v1.UniqueVolumeName("kubernetes.io/csi/" + d.Name + "^" + handle)
	a.untilInUse(volume)
	a.untilWaiting(p.Name, "ContainerCreating", "is not attached yet")
	setAttachment(t, va, storage.VolumeAttachmentStatus{AttachError: &storage.VolumeError{Message: "no such disk"}})
	a.untilWaiting(p.Name, "ContainerCreating", "AttachVolume.Attach failed: no such disk")
	untilDone(t, d)
	setAttachment(t, va, storage.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"at": "/dev/x"}})
	a.untilOutput(p.Name, "kept", "cat", "/data/word")
	untilDone(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle)
	wantRequest(t, d, "NodeStageVolume", `"at":"/dev/x"`)

	a.kill()
	growClaim(t, name)
	if err := d.SetBehavior("NodeExpandVolume", "Internal not now"); err != nil {
		t.Fatal(err)
	}
	a.start()
	a.eventually("the claim shows why it does not grow", func() error {
		c := &v1.PersistentVolumeClaim{}
		err := plane.do(http.MethodGet, inDefault+"persistentvolumeclaims/"+name, nil, c)
		if !slices.ContainsFunc(c.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
			return c.Type == v1.PersistentVolumeClaimNodeResizeError && strings.Contains(c.Message, "not now")
		}) {
			return fmt.Errorf("got claim status %+v, error %v; want a condition with the error of the driver", c.Status, err)
		}
		return nil
	})
	if err := d.SetBehavior("NodeExpandVolume", ""); err != nil {
		t.Fatal(err)
	}
	untilDone(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle, "NodeExpandVolume "+handle)
	isResize := func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type != v1.PersistentVolumeClaimUnused // the control plane sets this condition
	}
	a.eventually("the claim has grown", func() error {
		c := &v1.PersistentVolumeClaim{}
		err := plane.do(http.MethodGet, inDefault+"persistentvolumeclaims/"+name, nil, c)
		if q := c.Status.Capacity[v1.ResourceStorage]; err != nil || q.String() != "2Gi" || len(c.Status.AllocatedResourceStatuses) > 0 || slices.ContainsFunc(c.Status.Conditions, isResize) {
			return fmt.Errorf("got claim status %+v, error %v; want 2Gi and no resize in progress", c.Status, err)
		}
		return nil
	})
	a.untilOutput(p.Name, "kept", "cat", "/data/word")
	a.untilInUse(volume)

	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	a.untilCSINode()
	if err := plane.do(http.MethodDelete, inDefault+"pods/"+p.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	a.untilWhy(p.Name, "not found in the list of registered CSI drivers")
	a.kill()
	a.start()
	a.untilReady()
	a.untilInUse(volume)
	if err := plane.do(http.MethodGet, inStorage+"volumeattachments/"+va.Name, nil, nil); err != nil {
		t.Errorf("VolumeAttachment of a mounted volume: got error %v, want it to exist", err)
	}
	startDriver(t, d)
	untilDone(t, d, "NodeStageVolume "+handle, "NodePublishVolume "+handle, "NodeExpandVolume "+handle, "NodeUnpublishVolume "+handle, "NodeUnstageVolume "+handle)
	untilDeleted(t, inDefault+"pods/"+p.Name)
	a.untilInUse()
	untilDeleted(t, inStorage+"volumeattachments/"+va.Name)
	if n := a.countInLog("hush"); n > 0 {
		t.Errorf("got the secret %d times in the log, want it never", n)
	}
}

// wantRequest fails the test unless a request of a method contains text.
func wantRequest(t *testing.T, d *csidriver.Driver, method, text string) {
	t.Helper()
	calls, err := d.Calls()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if c.Event == csidriver.CallBegun && c.Method == method && strings.Contains(string(c.Request), text) {
			return
		}
	}
	t.Errorf("requests of %s: got none that contains %q, want one", method, text)
}

// growClaim requests a larger claim and, like the resizer of a driver, grows the volume with the
// same name.
func growClaim(t *testing.T, name string) {
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
		if err := plane.do(http.MethodPatch, step.path, step.body, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCSI_InTree checks the in-tree volumes of a cloud, which its CSI driver provides: a
// PersistentVolume and a volume in a pod's spec. podd must compute the same names of VolumeAttachments
// as the controllers. Otherwise it would not find the attachments.
func TestCSI_InTree(t *testing.T) {
	plane.startControllers(t)
	const name = "c3-disk"
	d := newDriver(t, "c3", "STAGE_UNSTAGE_VOLUME")
	d.Name = "ebs.csi.aws.com"
	a := newAgent(t, "c3").start()
	a.untilReady()
	createServiceAccount(t)
	startDriver(t, d)
	create(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name)})
	size, modes := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}, []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	create(t, "/api/v1/persistentvolumes", name, &v1.PersistentVolume{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain, StorageClassName: name,
		ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name},
		PersistentVolumeSource: v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1", FSType: "ext4"}},
	}})
	create(t, inDefault+"persistentvolumeclaims", name, &v1.PersistentVolumeClaim{ObjectMeta: objectMeta(name), Spec: v1.PersistentVolumeClaimSpec{
		VolumeName: name, StorageClassName: new(name), AccessModes: modes, Resources: v1.VolumeResourceRequirements{Requests: size},
	}})
	p := boundPod(a.node, "c3-app")
	addVolume(p, "data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	addVolume(p, "own", v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-2"}})
	create(t, inDefault+"pods", p.Name, p)
	for _, va := range untilAttachments(t, a.node, 2) {
		setAttachment(t, va, storage.VolumeAttachmentStatus{Attached: true})
	}
	a.untilOutput(p.Name, "", "touch", "/data/here", "/own/here")
	a.untilInUse("kubernetes.io/csi/ebs.csi.aws.com^vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-2")
	for _, handle := range []string{"vol-1", "vol-2"} {
		if _, err := os.Stat(filepath.Join(d.FilesDir(handle), "here")); err != nil {
			t.Errorf("volume %s: got error %v, want the file \"here\" that the pod created", handle, err)
		}
	}
	wantRequest(t, d, "NodeStageVolume", `"fsType":"ext4"`)
	if err := plane.do(http.MethodDelete, inDefault+"pods/"+p.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	untilDeleted(t, inDefault+"pods/"+p.Name)
	a.untilInUse()
	if done, err := d.Changes(); err != nil || len(done) != 8 {
		t.Errorf("calls of the driver: got %v, error %v; want for each of the two volumes one call of stage, publish, unpublish and unstage", done, err)
	}
}

// untilAttachments waits until the controller has created n VolumeAttachments for a node, and returns
// them.
func untilAttachments(t *testing.T, node string, n int) (found []*storage.VolumeAttachment) {
	t.Helper()
	eventually(t, fmt.Sprintf("there are %d VolumeAttachments for %s", n, node), func() error {
		all := &storage.VolumeAttachmentList{}
		if err := plane.do(http.MethodGet, inStorage+"volumeattachments", nil, all); err != nil {
			return err
		}
		found = nil
		for i := range all.Items {
			if all.Items[i].Spec.NodeName == node {
				found = append(found, &all.Items[i])
			}
		}
		if len(found) != n {
			return fmt.Errorf("got %d VolumeAttachments, want %d", len(found), n)
		}
		return nil
	})
	return found
}

// TestCSI_VolumeLimit checks that podd updates the maximum number of volumes in the CSINode after each
// period of the CSIDriver and after an attacher has reported that the node has reached a limit. A pod that
// waits for this attachment must fail.
func TestCSI_VolumeLimit(t *testing.T) {
	plane.startControllers(t)
	const name = "c4-disk"
	d := newDriver(t, "c4", "STAGE_UNSTAGE_VOLUME")
	a := newAgent(t, "c4").start()
	a.untilReady()
	createServiceAccount(t)
	startDriver(t, d)
	untilLimit := func(want int32) {
		t.Helper()
		a.untilCSINode(storage.CSINodeDriver{Name: d.Name, NodeID: "id-of-c4", TopologyKeys: []string{"c4.csi.test/rack"}, Allocatable: &storage.VolumeNodeResources{Count: &want}})
	}
	setLimit := func(n int64) {
		t.Helper()
		if err := d.SetMaxVolumes(n); err != nil {
			t.Fatal(err)
		}
	}
	untilLimit(7)
	setLimit(5)
	create(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name), Spec: storage.CSIDriverSpec{NodeAllocatableUpdatePeriodSeconds: new(int64(10))}})
	untilLimit(5)
	hour := map[string]any{"spec": map[string]any{"nodeAllocatableUpdatePeriodSeconds": 3600}}
	if err := plane.do(http.MethodPatch, inStorage+"csidrivers/"+d.Name, hour, nil); err != nil {
		t.Fatal(err)
	}
	createVolume(t, d, name, name)
	p := boundPod(a.node, "c4-app")
	addVolume(p, "data", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	create(t, inDefault+"pods", p.Name, p)
	va := untilAttachment(t, name)
	setLimit(1)
	setAttachment(t, va, storage.VolumeAttachmentStatus{AttachError: &storage.VolumeError{Message: "too many disks", ErrorCode: new(int32(codes.ResourceExhausted))}})
	untilLimit(1)
	p = a.untilPod(p.Name, "has failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	if s := p.Status; s.Reason != "VolumeAttachmentLimitExceeded" || len(s.ContainerStatuses) > 0 ||
		s.Message != "Pod was rejected: Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[data], unattached volumes=[data], failed to process volumes=[]: AttachVolume.Attach failed: too many disks" {
		t.Errorf("pod whose volume exceeds the limit: got status %+v, want the reason VolumeAttachmentLimitExceeded and no containers", s)
	}
	untilDone(t, d)
	untilDeleted(t, inStorage+"volumeattachments/"+va.Name)
}

// TestCSI_InlineVolume checks an ephemeral inline volume of a driver that requests information
// about the pod and a token. The volume must not be attached, and must be removed with the pod.
func TestCSI_InlineVolume(t *testing.T) {
	t.Parallel()
	d := newDriver(t, "c2")
	a := newAgent(t, "c2").start()
	a.untilReady()
	createServiceAccount(t)
	create(t, inStorage+"csidrivers", d.Name, &storage.CSIDriver{ObjectMeta: objectMeta(d.Name), Spec: storage.CSIDriverSpec{
		PodInfoOnMount: new(true), TokenRequests: []storage.TokenRequest{{Audience: "vault"}},
		VolumeLifecycleModes: []storage.VolumeLifecycleMode{storage.VolumeLifecycleEphemeral},
	}})
	p := boundPod(a.node, "c2-app")
	addVolume(p, "own", v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: d.Name, VolumeAttributes: map[string]string{"size": "small"}, NodePublishSecretRef: &v1.LocalObjectReference{Name: "c2-key"},
	}})
	create(t, inDefault+"pods", p.Name, p)
	a.untilWaiting(p.Name, "ContainerCreating", `fetching nodePublishSecretRef default/c2-key failed: secret "c2-key" not found`)
	create(t, inDefault+"secrets", "c2-key", &v1.Secret{ObjectMeta: objectMeta("c2-key"), StringData: map[string]string{"key": "hush"}})
	a.untilWhy(p.Name, "not found in the list of registered CSI drivers")
	startDriver(t, d)
	a.untilOutput(p.Name, "", "touch", "/own/here")
	for _, text := range []string{
		`"size":"small"`, `"csi.storage.k8s.io/ephemeral":"true"`, `"csi.storage.k8s.io/pod.name":"c2-app"`,
		`"csi.storage.k8s.io/serviceAccount.name":"robot"`, `\"vault\":{\"token\":\"`, `\"expirationTimestamp\":\"20`,
	} {
		wantRequest(t, d, "NodePublishVolume", text)
	}
	a.untilInUse()
	if err := plane.do(http.MethodDelete, inDefault+"pods/"+p.Name, nil, nil); err != nil {
		t.Fatal(err)
	}
	untilDeleted(t, inDefault+"pods/"+p.Name)
	done, err := d.Changes()
	if err != nil || len(done) != 2 || !strings.HasPrefix(done[0], "NodePublishVolume csi-") || !strings.HasPrefix(done[1], "NodeUnpublishVolume csi-") {
		t.Errorf("calls of the driver: got %v, error %v; want one NodePublishVolume and one NodeUnpublishVolume", done, err)
	}
	if n := a.countInLog("hush"); n > 0 {
		t.Errorf("got the secret %d times in the log, want it never", n)
	}
}
