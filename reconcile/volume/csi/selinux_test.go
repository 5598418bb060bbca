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

// labeled returns a volume that pods with other labels must not use.
func labeled(pod types.UID, label string) Volume {
	v := newVolume(pod)
	v.SELinux = selinux.Mount{Context: label, IsShared: true}
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
		t.Errorf("%s: want the flag noatime and the label %q, got %s", method, label, request)
	}
}

// TestSELinux checks that the label is in the requests to the driver and in the data files, and that two
// pods with different labels cannot use a volume at the same time.
func TestSELinux(t *testing.T) {
	for _, can := range [][]string{{"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"}, {"EXPAND_VOLUME"}} {
		m := newTestNode(t, Options{}, can...)
		v := labeled(pod1, label)
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
				t.Errorf("%s: got %v, %v, want the label", found[0], f, err)
			}
		}
		m.restartPodd(t, Options{})
		for _, other := range []string{otherLabel, ""} {
			_, err := m.Publish(t.Context(), labeled(pod2, other))
			step, _ := errors.AsType[*StepError](err)
			if _, is := errors.AsType[*selinux.Error](err); !is || step == nil || step.Step != "MountVolume.MountDevice" || !strings.Contains(err.Error(), label) {
				t.Errorf("publishing with the label %q: got %v, want a conflict with %q", other, err, label)
			}
		}
		plain := newVolume("pod-3") // with a label that does not matter
		m.publish(t, plain)
		m.unpublish(t, "pod-3")
		m.unpublish(t, pod1)
		m.publish(t, labeled(pod2, otherLabel))
		m.checkFlags(t, "NodePublishVolume", otherLabel)
		if slices.Contains(can, "STAGE_UNSTAGE_VOLUME") {
			m.checkFlags(t, "NodeStageVolume", otherLabel)
		}
		m.unpublish(t, pod2)
		m.waitInUse(t)
		m.checkNoOverlap(t)
	}
}

// TestSELinux_FirstPod checks two pods with different labels that have both recorded their use of the
// volume, while the volume is still staged with the label of a removed pod: one of them gets the volume.
func TestSELinux_FirstPod(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, labeled("pod-0", ""))
	for _, v := range []Volume{labeled(pod1, label), labeled(pod2, otherLabel)} {
		if _, err := m.Publish(t.Context(), v); err == nil {
			t.Errorf("publishing with the label %q: got no error, want a conflict", v.SELinux.Context)
		}
	}
	m.unpublish(t, "pod-0")
	m.publish(t, labeled(pod2, otherLabel))
	if _, err := m.Publish(t.Context(), labeled(pod1, label)); err == nil || !strings.Contains(err.Error(), otherLabel) {
		t.Errorf("publishing for the other pod: got %v, want a conflict with %q", err, otherLabel)
	}
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1",
		"NodeUnstageVolume vol-1", "NodeStageVolume vol-1", "NodePublishVolume vol-1")
}

// TestSELinux_LostFacts checks that podd restores the label of a staged volume from a published volume.
func TestSELinux_LostFacts(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, labeled(pod1, label))
	m.killPodd()
	must(t, os.Remove(filepath.Join(m.mountPaths(VolumeID{driver, "vol-1"}, "", "").stageDataDir, dataFile)))
	m.startPodd(t, Options{})
	m.waitRegistered(t)
	m.publish(t, labeled(pod2, label))
	if _, err := m.Publish(t.Context(), labeled("pod-3", otherLabel)); err == nil || !strings.Contains(err.Error(), label) {
		t.Errorf("got %v, want a conflict with %q", err, label)
	}
}
