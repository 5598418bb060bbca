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

// TestLife checks that a volume is staged once, published for each pod, and unstaged after
// the last one, and that the files on disk are those of a kubelet.
func TestLife(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	got := m.publish(t, v)
	dir := filepath.Join(m.root, "pods/pod-1/volumes/kubernetes.io~csi/pv-1")
	if want := (Published{filepath.Join(dir, "mount"), true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	m.inUse(t, "vol-1")
	must(t, os.WriteFile(filepath.Join(got.Path, "a"), []byte("text"), 0o600))
	again := m.publish(t, v)
	other := m.publish(t, volumeOf(two))
	if text, err := os.ReadFile(filepath.Join(other.Path, "a")); string(text) != "text" || again != got {
		t.Errorf("%q, %v, %+v", text, err, again)
	}
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1")
	stage := filepath.Dir(m.pathsFor(v).staging)
	if len(filepath.Base(stage)) != 64 || filepath.Dir(stage) != filepath.Join(m.root, "plugins/kubernetes.io/csi", driver) {
		t.Errorf("staged in %s", stage)
	}
	f, err := load(dir)
	must(t, err)
	for key, want := range map[string]string{
		"specVolID": "pv-1", "volumeHandle": "vol-1", "driverName": driver, "nodeName": "node1", "volumeLifecycleMode": "Persistent",
		"attachmentID": attachmentName(Use{driver, "vol-1"}, "node1"),
	} {
		if f[key] != want {
			t.Errorf("%s is %q, not %q", key, f[key], want)
		}
	}
	m.unpublish(t, one)
	m.unpublish(t, one)
	m.inUse(t, "vol-1")
	m.unpublish(t, two)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
	for _, gone := range []string{stage, dir} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(m.driver.Files("vol-1"), "a")); string(text) != "text" {
		t.Errorf("the files are gone: %v", err)
	}
}

// TestRequests checks that requests are those of the kubelet.
func TestRequests(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME", "SINGLE_NODE_MULTI_WRITER", "VOLUME_MOUNT_GROUP")
	v := volumeOf(one)
	v.CSI.DriverSpec = wishes(func(s *storage.CSIDriverSpec) { s.PodInfoOnMount = ptr(true) })
	v.CSI.Tokens = `{"vault":{}}`
	v.CSI.ReadOnly = true
	p := m.publish(t, v)
	if p.Group {
		t.Error("the driver gives the files to the group, and podd would, too")
	}
	stage := m.pathsFor(v).staging
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
		got := strings.ReplaceAll(m.request(t, method), strings.ReplaceAll(stage, m.root, "ROOT"), "STAGE")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -want +got\n%s", method, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(p.Path, "a"), nil, 0o600); err == nil {
		t.Error("a read-only volume was written to")
	}
	m.unpublish(t, one)
	m.inUse(t)
}

// TestInline checks that an inline volume is only published, with the kubelet's handle.
func TestInline(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	v.CSI = &refs.CSI{Driver: driver, Attributes: map[string]string{"a": "b"}, DriverSpec: wishes(func(s *storage.CSIDriverSpec) { s.PodInfoOnMount = ptr(true) })}
	m.publish(t, v)
	if got := v.id().Handle; len(got) != 68 || !strings.HasPrefix(got, "csi-") {
		t.Errorf("the handle is %q", got)
	}
	text := m.request(t, "NodePublishVolume")
	if !strings.Contains(text, `"csi.storage.k8s.io/ephemeral": "true"`) || strings.Contains(text, "stagingTargetPath") {
		t.Error(text)
	}
	m.inUse(t)
	m.unpublish(t, one)
	m.done(t, "NodePublishVolume "+v.id().Handle, "NodeUnpublishVolume "+v.id().Handle)
	v.CSI.DriverSpec = nil
	if _, err := m.Publish(t.Context(), v); err == nil || !strings.Contains(err.Error(), `volume mode "Ephemeral" not supported by driver`) {
		t.Error(err)
	}
}

// TestBlock checks that a block device is published as a file at the kubelet's path.
func TestBlock(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	a, b := volumeOf(one), volumeOf(two)
	a.CSI.Block, b.CSI.Block = true, true
	var got [2]Published
	for i, v := range []Volume{a, b, a} {
		p := m.publish(t, v)
		got[i%2] = p
	}
	devices := filepath.Join(m.root, "plugins/kubernetes.io/csi/volumeDevices")
	if got[0].Path != filepath.Join(devices, "publish/pv-1/pod-1") || got[0].Group {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(got[1].Path); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
	if to, err := os.Readlink(filepath.Join(m.root, "pods/pod-1/volumeDevices/kubernetes.io~csi/pv-1")); to != got[0].Path {
		t.Errorf("%q, %v", to, err)
	}
	if text := m.request(t, "NodePublishVolume"); !strings.Contains(text, `"block": {}`) {
		t.Error(text)
	}
	m.unpublish(t, one)
	m.inUse(t, "vol-1")
	m.unpublish(t, two)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
	for _, dir := range []string{"publish", "staging", "."} {
		if left, err := safepath.Names(filepath.Join(devices, dir)); err != nil || dir != "." && len(left) > 0 || dir == "." && len(left) > 2 {
			t.Errorf("%s has %q, %v", dir, left, err)
		}
	}
}

// TestWithoutStaging checks that a driver without staging is not called to stage.
func TestWithoutStaging(t *testing.T) {
	m := newMachine(t, Options{})
	m.publish(t, volumeOf(one))
	m.inUse(t, "vol-1")
	m.unpublish(t, one)
	m.inUse(t)
	m.done(t, "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1")
}
