package csi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	storage "k8s.io/api/storage/v1"

	"podd/manifest/refs"
	"podd/runtime/safepath"
)

// TestPublish checks that a volume is staged once, published for each pod, and unstaged after the
// volume was unpublished for the last pod. The paths and data files must be those of the kubelet.
func TestPublish(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	got := m.publish(t, v)
	dir := filepath.Join(m.root, "pods/pod-1/volumes/kubernetes.io~csi/pv-1")
	if want := (PublishResult{filepath.Join(dir, "mount"), true}); got != want {
		t.Errorf("Publish: got %+v, want %+v", got, want)
	}
	m.waitInUse(t, "vol-1")
	must(t, os.WriteFile(filepath.Join(got.Path, "a"), []byte("text"), 0o600))
	again := m.publish(t, v)
	other := m.publish(t, newVolume(pod2))
	if text, err := os.ReadFile(filepath.Join(other.Path, "a")); string(text) != "text" || again != got {
		t.Errorf("file in the volume of the second pod: got %q (error %v), want \"text\"; second Publish for the first pod: got %+v, want %+v", text, err, again, got)
	}
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1")
	stage := filepath.Dir(m.pathsFor(v).stagingPath)
	if len(filepath.Base(stage)) != 64 || filepath.Dir(stage) != filepath.Join(m.root, "plugins/kubernetes.io/csi", driver) {
		t.Errorf("directory of the staged volume: got %s, want a SHA-256 hash in the directory of the driver", stage)
	}
	f, err := readFacts(dir)
	must(t, err)
	for key, want := range map[string]string{
		"specVolID": "pv-1", "volumeHandle": "vol-1", "driverName": driver, "nodeName": "node1", "volumeLifecycleMode": "Persistent",
		"attachmentID": refs.AttachmentName(driver, "vol-1", "node1"),
	} {
		if f[key] != want {
			t.Errorf("data file: key %s: got %q, want %q", key, f[key], want)
		}
	}
	m.unpublish(t, pod1)
	m.unpublish(t, pod1)
	m.waitInUse(t, "vol-1")
	m.unpublish(t, pod2)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
	for _, gone := range []string{stage, dir} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("after the last Unpublish: Lstat of %s: got error %v, want not exist", gone, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(m.driver.FilesDir("vol-1"), "a")); string(text) != "text" {
		t.Errorf("file in the volume after unstaging: got %q, error %v; want \"text\"", text, err)
	}
}

// TestRequests checks that podd sends the same requests as the kubelet.
func TestRequests(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME", "SINGLE_NODE_MULTI_WRITER", "VOLUME_MOUNT_GROUP")
	v := newVolume(pod1)
	v.CSIVolume.DriverSpec = newDriverSpec(func(s *storage.CSIDriverSpec) { s.PodInfoOnMount = ptr(true) })
	v.CSIVolume.Tokens = `{"vault":{}}`
	v.CSIVolume.ReadOnly = true
	p := m.publish(t, v)
	if p.MustSetGroup {
		t.Error("driver with VOLUME_MOUNT_GROUP: got Group true, want false")
	}
	stage := m.pathsFor(v).stagingPath
	for method, want := range map[string]string{
		"NodeStageVolume": `{
 "publishContext": {
  "lun": "7"
 },
 "secrets": {
  "key": "stage-secret"
 },
 "stagingTargetPath": "STAGE",
 "volumeCapability": {
  "accessMode": {
   "mode": "SINGLE_NODE_MULTI_WRITER"
  },
  "mount": {
   "fsType": "ext4",
   "mountFlags": [
    "noatime"
   ],
   "volumeMountGroup": "2000"
  }
 },
 "volumeContext": {
  "pool": "fast"
 },
 "volumeId": "vol-1"
}`,
		"NodePublishVolume": `{
 "publishContext": {
  "lun": "7"
 },
 "readonly": true,
 "secrets": {
  "key": "publish-secret"
 },
 "stagingTargetPath": "STAGE",
 "targetPath": "ROOT/pods/pod-1/volumes/kubernetes.io~csi/pv-1/mount",
 "volumeCapability": {
  "accessMode": {
   "mode": "SINGLE_NODE_MULTI_WRITER"
  },
  "mount": {
   "fsType": "ext4",
   "mountFlags": [
    "noatime"
   ],
   "volumeMountGroup": "2000"
  }
 },
 "volumeContext": {
  "csi.storage.k8s.io/ephemeral": "false",
  "csi.storage.k8s.io/pod.name": "db",
  "csi.storage.k8s.io/pod.namespace": "shop",
  "csi.storage.k8s.io/pod.uid": "pod-1",
  "csi.storage.k8s.io/serviceAccount.name": "clerk",
  "csi.storage.k8s.io/serviceAccount.tokens": "{\"vault\":{}}",
  "pool": "fast"
 },
 "volumeId": "vol-1"
}`,
	} {
		got := strings.ReplaceAll(m.lastRequest(t, method), strings.ReplaceAll(stage, m.root, "ROOT"), "STAGE")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request of %s (-want +got):\n%s", method, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(p.Path, "a"), nil, 0o600); err == nil {
		t.Error("writing to a read-only volume: got no error, want one")
	}
	m.unpublish(t, pod1)
	m.waitInUse(t)
}

// TestInline checks that an inline volume is published without being staged, with the kubelet's
// handle.
func TestInline(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	v.CSIVolume = &refs.CSIVolume{Driver: driver, Attributes: map[string]string{"a": "b"}, DriverSpec: newDriverSpec(func(s *storage.CSIDriverSpec) { s.PodInfoOnMount = ptr(true) })}
	m.publish(t, v)
	if got := v.id().Handle; len(got) != 68 || !strings.HasPrefix(got, "csi-") {
		t.Errorf("handle: got %q, want csi- and a SHA-256 hash", got)
	}
	text := m.lastRequest(t, "NodePublishVolume")
	if !strings.Contains(text, `"csi.storage.k8s.io/ephemeral": "true"`) || strings.Contains(text, "stagingTargetPath") {
		t.Errorf("NodePublishVolume request: got %s, want an ephemeral volume without a staging path", text)
	}
	m.waitInUse(t)
	m.unpublish(t, pod1)
	m.checkCalls(t, "NodePublishVolume "+v.id().Handle, "NodeUnpublishVolume "+v.id().Handle)
	v.CSIVolume.DriverSpec = nil
	if _, err := m.Publish(t.Context(), v); err == nil || !strings.Contains(err.Error(), `volume mode "Ephemeral" not supported by driver`) {
		t.Errorf("without a CSIDriver object: got error %v, want one about the volume mode", err)
	}
}

// TestBlock checks that a block device is published at the kubelet's path, for two pods.
func TestBlock(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	a, b := newVolume(pod1), newVolume(pod2)
	a.CSIVolume.Block, b.CSIVolume.Block = true, true
	var got [2]PublishResult
	for i, v := range []Volume{a, b, a} {
		p := m.publish(t, v)
		got[i%2] = p
	}
	devices := filepath.Join(m.root, "plugins/kubernetes.io/csi/volumeDevices")
	if got[0].Path != filepath.Join(devices, "publish/pv-1/pod-1") || got[0].MustSetGroup {
		t.Errorf("Publish for pod-1: got %+v, want the kubelet's path and Group false", got[0])
	}
	if info, err := os.Stat(got[1].Path); err != nil || info.Size() != 1<<20 {
		t.Errorf("device of pod-2: got %v, error %v; want a size of 1 MiB", info, err)
	}
	if target, err := os.Readlink(filepath.Join(m.root, "pods/pod-1/volumeDevices/kubernetes.io~csi/pv-1")); target != got[0].Path {
		t.Errorf("link in the directory of pod-1: got target %q, error %v; want %q", target, err, got[0].Path)
	}
	if text := m.lastRequest(t, "NodePublishVolume"); !strings.Contains(text, `"block": {}`) {
		t.Errorf("NodePublishVolume request: got %s, want a block capability", text)
	}
	m.unpublish(t, pod1)
	m.waitInUse(t, "vol-1")
	m.unpublish(t, pod2)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
	for _, dir := range []string{"publish", "staging", "."} {
		if left, err := safepath.Names(filepath.Join(devices, dir)); err != nil || dir != "." && len(left) > 0 || dir == "." && len(left) > 2 {
			t.Errorf("after the last Unpublish: directory %s: got %q, error %v; want no files of the volume", dir, left, err)
		}
	}
}

// TestWithoutStaging checks that NodeStageVolume is not called if the driver does not support
// staging.
func TestWithoutStaging(t *testing.T) {
	m := newTestNode(t, Options{})
	m.publish(t, newVolume(pod1))
	m.waitInUse(t, "vol-1")
	m.unpublish(t, pod1)
	m.waitInUse(t)
	m.checkCalls(t, "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1")
}
