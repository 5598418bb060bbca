package csi

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/volume/selinux"
)

const label, otherLabel = "system_u:object_r:container_file_t:s0:c1,c2", "system_u:object_r:container_file_t:s0:c3,c4"

// newLabeledVolume returns a volume with the SELinux label of a pod. Pods with other labels must not use the
// volume.
func newLabeledVolume(pod types.UID, label string) Volume {
	v := newVolume(pod)
	v.SELinux = selinux.Mount{Context: label, NeedsSameContext: true}
	return v
}

// checkFlags checks the mount flags of the newest request of a method.
func (m *testNode) checkFlags(t *testing.T, method, label string) {
	t.Helper()
	request := m.lastRequest(t, method)
	hasLabel := strings.Contains(request, `"context=\"`+label+`\""`)
	if label == "" {
		hasLabel = !strings.Contains(request, "context=")
	}
	if !strings.Contains(request, `"noatime"`) || !hasLabel {
		t.Errorf("request of %s: got %s, want the flag noatime and the label %q", method, request, label)
	}
}

// TestSELinux checks that the label is in the requests to the driver and in the data files, and that two
// pods with different labels cannot use a volume at the same time.
func TestSELinux(t *testing.T) {
	for _, can := range [][]string{{"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"}, {"EXPAND_VOLUME"}} {
		m := newTestNode(t, Options{}, can...)
		v := newLabeledVolume(pod1, label)
		v.MustExpand = true
		m.publish(t, v)
		m.checkFlags(t, "NodePublishVolume", label)
		m.checkFlags(t, "NodeExpandVolume", "")
		if slices.Contains(can, "STAGE_UNSTAGE_VOLUME") {
			m.checkFlags(t, "NodeStageVolume", label)
		}
		for _, pattern := range []string{"plugins/kubernetes.io/csi/*/*", "pods/*/volumes/" + PodPluginDir + "/*"} {
			found, err := filepath.Glob(filepath.Join(m.root, pattern, dataFile))
			must(t, err)
			if len(found) != 1 {
				t.Fatalf("%s: got %q, want one data file", pattern, found)
			}
			if f, err := readFacts(filepath.Dir(found[0])); err != nil || f["seLinuxMountContext"] != label {
				t.Errorf("%s: got %v (error %v), want the label %q", found[0], f, err, label)
			}
		}
		m.restartPodd(t, Options{})
		for _, other := range []string{otherLabel, ""} {
			_, err := m.Publish(t.Context(), newLabeledVolume(pod2, other))
			step, _ := errors.AsType[*StepError](err)
			if _, is := errors.AsType[*selinux.Error](err); !is || step == nil || step.Step != "MountVolume.MountDevice" || !strings.Contains(err.Error(), label) {
				t.Errorf("publishing with the label %q: got error %v, want a conflict with %q", other, err, label)
			}
		}
		plain := newVolume("pod-3") // with a label that does not matter
		m.publish(t, plain)
		m.unpublish(t, "pod-3")
		m.unpublish(t, pod1)
		m.publish(t, newLabeledVolume(pod2, otherLabel))
		m.checkFlags(t, "NodePublishVolume", otherLabel)
		if slices.Contains(can, "STAGE_UNSTAGE_VOLUME") {
			m.checkFlags(t, "NodeStageVolume", otherLabel)
		}
		m.unpublish(t, pod2)
		m.waitInUse(t)
		m.checkNoOverlap(t)
	}
}

// TestSELinux_FirstPod checks two pods with different labels. Both have recorded that they use a
// volume that is still staged with the label of a removed pod. Only the first of them that
// publishes the volume afterwards gets it.
func TestSELinux_FirstPod(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newLabeledVolume("pod-0", ""))
	for _, v := range []Volume{newLabeledVolume(pod1, label), newLabeledVolume(pod2, otherLabel)} {
		if _, err := m.Publish(t.Context(), v); err == nil {
			t.Errorf("publishing with the label %q: got no error, want a conflict with the label of the removed pod", v.SELinux.Context)
		}
	}
	m.unpublish(t, "pod-0")
	m.publish(t, newLabeledVolume(pod2, otherLabel))
	if _, err := m.Publish(t.Context(), newLabeledVolume(pod1, label)); err == nil || !strings.Contains(err.Error(), otherLabel) {
		t.Errorf("publishing for pod-1 after pod-2: got error %v, want a conflict with %q", err, otherLabel)
	}
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1",
		"NodeUnstageVolume vol-1", "NodeStageVolume vol-1", "NodePublishVolume vol-1")
}

// TestSELinux_LostFacts checks that podd restores the label of a staged volume from a published volume.
func TestSELinux_LostFacts(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newLabeledVolume(pod1, label))
	m.killPodd()
	must(t, os.Remove(filepath.Join(m.mountPaths(VolumeID{driver, "vol-1"}, "", "").stageDataDir, dataFile)))
	m.startPodd(t, Options{})
	m.waitRegistered(t)
	m.publish(t, newLabeledVolume(pod2, label))
	if _, err := m.Publish(t.Context(), newLabeledVolume("pod-3", otherLabel)); err == nil || !strings.Contains(err.Error(), label) {
		t.Errorf("publishing with another label: got error %v, want a conflict with %q", err, label)
	}
}

// changeFacts changes the data files of the staged and published volumes while podd is stopped.
func (m *testNode) changeFacts(t *testing.T, change func(facts)) {
	t.Helper()
	for _, pattern := range []string{"plugins/kubernetes.io/csi/*/*", "pods/*/volumes/" + PodPluginDir + "/*"} {
		dirs, err := filepath.Glob(filepath.Join(m.root, pattern, dataFile))
		must(t, err)
		for _, path := range dirs {
			f, err := readFacts(filepath.Dir(path))
			must(t, err)
			change(f)
			must(t, f.save(filepath.Dir(path)))
		}
	}
}

// removePoddKeys changes facts to those that a kubelet would have recorded.
func removePoddKeys(f facts) {
	maps.DeleteFunc(f, func(key, _ string) bool { return strings.HasPrefix(key, "podd.") })
}

// TestSELinux_Reboot checks that a volume that pods used during an earlier boot does not block pods with
// a label. The first of them gets the volume, and the others after this pod was removed. These others have
// the same label and must not block each other.
func TestSELinux_Reboot(t *testing.T) {
	for name, c := range map[string]struct {
		before []types.UID // pods that used the volume before the reboot
		change func(facts) // of the facts before the reboot
	}{
		"mounts of podd":                   {[]types.UID{pod1, pod2, "pod-3"}, func(f facts) { f[keyState] = "earlier-boot" + mountedSuffix }},
		"podd and a driver without mounts": {[]types.UID{pod1, pod2, "pod-3"}, func(f facts) { f[keyState] = "earlier-boot" }},
		"calls without a result":           {[]types.UID{pod1, pod2, "pod-3"}, func(f facts) { f[keyState] = begunPrefix + "earlier-boot" }},
		"kubelet":                          {[]types.UID{pod1, pod2, "pod-3"}, removePoddKeys},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
			for _, pod := range c.before {
				m.publish(t, newLabeledVolume(pod, ""))
			}
			done, err := m.driver.Changes()
			must(t, err)
			m.killPodd()
			mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(m.root))
			must(t, err)
			for _, mount := range mounts {
				must(t, unix.Unmount(mount.Mountpoint, 0))
			}
			m.changeFacts(t, c.change)
			m.startPodd(t, Options{})
			m.waitRegistered(t)
			m.publish(t, newLabeledVolume(pod1, label))
			m.checkCalls(t, append(done, "NodeStageVolume vol-1", "NodePublishVolume vol-1")...)
			for _, pod := range []types.UID{pod2, "pod-3"} {
				if _, err := m.Publish(t.Context(), newLabeledVolume(pod, otherLabel)); err == nil || !strings.Contains(err.Error(), label) {
					t.Errorf("publishing for %s with another label: got error %v, want a conflict with %q", pod, err, label)
				}
			}
			m.unpublish(t, pod1)
			m.publish(t, newLabeledVolume(pod2, otherLabel))
			m.checkFlags(t, "NodeStageVolume", otherLabel)
			m.publish(t, newLabeledVolume("pod-3", otherLabel))
		})
	}
}

// TestSELinux_Kubelet checks that a volume that a kubelet published for a pod stays mounted with the label
// that the kubelet chose. It prevents other labels even before podd publishes it again.
func TestSELinux_Kubelet(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newLabeledVolume(pod1, otherLabel))
	m.killPodd()
	m.changeFacts(t, removePoddKeys)
	m.startPodd(t, Options{})
	m.waitRegistered(t)
	if _, err := m.Publish(t.Context(), newLabeledVolume(pod2, label)); err == nil || !strings.Contains(err.Error(), otherLabel) {
		t.Errorf("publishing for another pod first: got error %v, want a conflict with %q", err, otherLabel)
	}
	p := m.publish(t, newLabeledVolume(pod1, label))
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeStageVolume vol-1", "NodePublishVolume vol-1")
	for _, method := range []string{"NodeStageVolume", "NodePublishVolume"} {
		m.checkFlags(t, method, otherLabel)
	}
	if v, _ := m.publishedVolume(p.Path); v.SELinux.Context != otherLabel {
		t.Errorf("label of the published volume: got %q, want %q", v.SELinux.Context, otherLabel)
	}
	if _, err := m.Publish(t.Context(), newLabeledVolume(pod2, label)); err == nil || !strings.Contains(err.Error(), otherLabel) {
		t.Errorf("publishing for another pod: got error %v, want a conflict with %q", err, otherLabel)
	}
}

// TestSELinux_UnknownMount checks that a mount in a pod directory with a damaged data file does not prevent
// the first stage of a volume with a label. Until the mount is removed, podd does not stage the volume with
// another label.
func TestSELinux_UnknownMount(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	dir := filepath.Join(m.podsDir(), "pod-0", "volumes", PodPluginDir, "pv-1")
	target := filepath.Join(dir, targetName)
	must(t, os.MkdirAll(target, 0o750))
	must(t, os.WriteFile(filepath.Join(dir, dataFile), []byte("{"), 0o600))
	must(t, unix.Mount(t.TempDir(), target, "", unix.MS_BIND, ""))
	m.publish(t, newLabeledVolume(pod1, label))
	m.unpublish(t, pod1)
	_, err := m.Publish(t.Context(), newLabeledVolume(pod2, otherLabel))
	if err == nil || !strings.Contains(err.Error(), "unmount it") || !strings.Contains(err.Error(), target) {
		t.Errorf("publishing with another label: got error %v, want one that names the mount %s", err, target)
	}
	must(t, unix.Unmount(target, 0))
	m.publish(t, newLabeledVolume(pod2, otherLabel))
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1",
		"NodeUnstageVolume vol-1", "NodeStageVolume vol-1", "NodePublishVolume vol-1")
}
