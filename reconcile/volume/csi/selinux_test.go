package csi

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
