package csi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	storage "k8s.io/api/storage/v1"

	"podd/manifest"
	"podd/manifest/refs"
)

// withCSI returns a copy of v in which change has modified a copy of the CSI parameters.
func withCSI(v Volume, change func(*refs.CSIVolume)) Volume {
	c := *v.CSIVolume
	change(&c)
	v.CSIVolume = &c
	return v
}

// TestTwoPersistentVolumes checks that a volume to which two PersistentVolumes refer is in use until
// both PersistentVolumes are unstaged.
func TestTwoPersistentVolumes(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	a := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Block = true })
	b := withCSI(newVolume(pod2), func(c *refs.CSIVolume) { c.Block, c.Volume = true, "pv-2" })
	for _, v := range []Volume{a, b} {
		m.publish(t, v)
	}
	isUnstaged := func(v Volume) bool {
		_, err := os.Lstat(m.pathsFor(v).stageDataDir)
		return os.IsNotExist(err)
	}
	m.unpublish(t, pod1)
	m.waitFor(t, "pv-1 is unstaged", func() bool { return strings.Contains(m.log.String(), "volume unstaged because no pod uses it") })
	m.waitInUse(t, "vol-1")
	m.unpublish(t, pod2)
	m.waitInUse(t)
	m.waitFor(t, "the data directories of both PersistentVolumes are removed", func() bool { return isUnstaged(a) && isUnstaged(b) })
}

// TestStageLost checks that a volume stays in use if staging it again fails.
func TestStageLost(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, newVolume(pod1))
	must(t, unix.Unmount(m.pathsFor(newVolume(pod1)).stagingPath, 0))
	must(t, m.driver.SetBehavior("NodeStageVolume", "Internal no disk"))
	if _, err := m.Publish(t.Context(), newVolume(pod2)); err == nil {
		t.Error("Publish after staging failed: got no error, want one")
	}
	m.unpublish(t, pod2)
	if all, _ := m.VolumesInUse(); len(all) != 1 {
		t.Errorf("InUse while pod-1 uses the volume: got %v, want 1 volume", all)
	}
	m.unpublish(t, pod1)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestUnknownFiles checks that unknown files in the directories prevent neither the start of podd
// nor the removal of volumes.
func TestUnknownFiles(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.killPodd()
	drivers := filepath.Join(m.root, "plugins/kubernetes.io/csi")
	must(t, os.MkdirAll(filepath.Join(drivers, driver, "dir", dataFile), 0o750))
	must(t, os.MkdirAll(filepath.Join(drivers, driver, "link"), 0o750))
	must(t, os.Symlink("/etc/passwd", filepath.Join(drivers, driver, "link", dataFile)))
	must(t, os.MkdirAll(filepath.Join(m.root, "pods/x/volumes", PodPluginDir, "dir", dataFile), 0o750))
	for _, file := range []string{filepath.Join(drivers, "file"), filepath.Join(drivers, driver, "file"), filepath.Join(m.root, "pods/x/volumes", PodPluginDir, "file")} {
		must(t, os.WriteFile(file, nil, 0o600))
	}
	m.startPodd(t, Options{})
	m.waitRegistered(t)
	m.publish(t, newVolume(pod1))
	must(t, os.WriteFile(filepath.Join(m.pathsFor(newVolume(pod1)).stageDataDir, "lock"), nil, 0o600))
	m.unpublish(t, pod1)
	m.waitInUse(t)
	m.unpublish(t, "x")
	if n := strings.Count(m.log.String(), "volume ignored because its data file is unreadable"); n != 2 {
		t.Errorf("unreadable files were logged %d times, want 2", n)
	}
}

// TestCorrectedHandle checks that a device can be published after its handle was corrected.
func TestCorrectedHandle(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	wrong := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Block, c.Handle = true, "vol-0" })
	must(t, m.driver.SetBehavior("NodeStageVolume", "once NotFound no such volume"))
	if _, err := m.Publish(t.Context(), wrong); err == nil {
		t.Error("Publish with an unknown handle: got no error, want one")
	}
	m.unpublish(t, pod1)
	m.waitFor(t, "the data directory of the device is removed", func() bool { _, err := os.Lstat(m.pathsFor(wrong).dataDir); return os.IsNotExist(err) })
	m.publish(t, withCSI(newVolume(pod2), func(c *refs.CSIVolume) { c.Block = true }))
	m.unpublish(t, pod2)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestLostFacts checks that a volume whose facts were removed is not published again after
// its pod was removed.
func TestLostFacts(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := withCSI(newVolume(pod1), func(c *refs.CSIVolume) {
		c.DriverSpec = newDriverSpec(func(s *storage.CSIDriverSpec) { s.RequiresRepublish = ptr(true) })
	})
	m.publish(t, v)
	p := m.pathsFor(v)
	must(t, unix.Unmount(p.target, 0))
	must(t, os.Remove(filepath.Join(p.dataDir, dataFile)))
	m.unpublish(t, pod1)
	if _, is := m.publishedVolume(p.target); is {
		t.Error("after Unpublish: got the volume recorded as published, want it removed")
	}
	m.waitInUse(t)
}

// TestLostStageFacts checks that a published volume is in use, and is unstaged later, if the data
// file of the staged volume is lost.
func TestLostStageFacts(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"lost":       os.Remove,
		"unreadable": func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
	} {
		for _, restarts := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restarts: %v", name, restarts), func(t *testing.T) {
				m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
				v := newVolume(pod1)
				m.publish(t, v)
				must(t, damage(filepath.Join(m.pathsFor(v).stageDataDir, dataFile)))
				if restarts {
					m.restartPodd(t, Options{})
				}
				if all, _ := m.VolumesInUse(); len(all) != 1 || all[0] != v.id() {
					t.Errorf("InUse: got %v, want only %v", all, v.id())
				}
				m.unpublish(t, pod1)
				m.waitInUse(t)
				m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
			})
		}
	}
}

// TestUnwritableStageFacts checks that the data file of a published volume is not removed until the
// data file of the staged volume is restored.
func TestUnwritableStageFacts(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := newVolume(pod1)
	m.publish(t, v)
	p := m.pathsFor(v)
	must(t, os.Remove(filepath.Join(p.stageDataDir, dataFile)))
	must(t, os.Mkdir(filepath.Join(p.stageDataDir, dataFile), 0o750)) // a directory cannot be replaced with a file
	if err := m.Unpublish(t.Context(), pod1); err == nil || !strings.Contains(err.Error(), "pv-1") || !strings.Contains(err.Error(), p.stageDataDir) {
		t.Errorf("Unpublish: got error %v, want one with the volume and %s", err, p.stageDataDir)
	}
	m.restartPodd(t, Options{})
	m.waitInUse(t, "vol-1")
	must(t, os.Remove(filepath.Join(p.stageDataDir, dataFile)))
	m.unpublish(t, pod1)
	m.waitInUse(t)
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestUnknownMount checks the effect of a mount in a pod directory that has no valid data file. It
// prevents only the unstaging of volumes that may be mounted at its path. podd logs this each time
// the data file becomes invalid.
func TestUnknownMount(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	second := withCSI(newVolume(pod2), func(c *refs.CSIVolume) { c.Handle, c.Volume = "vol-2", "pv-2" })
	m.publish(t, newVolume(pod1))
	m.publish(t, newVolume(pod2))
	m.publish(t, second)
	must(t, os.WriteFile(filepath.Join(m.pathsFor(newVolume(pod1)).dataDir, dataFile), nil, 0o600))
	m.unpublish(t, pod2)
	m.waitInUse(t, "vol-1")
	m.waitFor(t, "the log contains pod-1 and pv-1", func() bool {
		return strings.Contains(m.log.String(), "pod-1") && strings.Contains(m.log.String(), "pv-1")
	})
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeStageVolume vol-2", "NodePublishVolume vol-2",
		"NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-2", "NodeUnstageVolume vol-2")
	must(t, unix.Unmount(m.pathsFor(newVolume(pod1)).target, 0))
	m.unpublish(t, pod1)
	m.waitInUse(t)
	before := strings.Count(m.log.String(), "a pod may use it")
	m.publish(t, newVolume(pod1))
	must(t, os.WriteFile(filepath.Join(m.pathsFor(newVolume(pod1)).dataDir, dataFile), nil, 0o600))
	m.wakeRun()
	m.waitFor(t, "the log contains the message again", func() bool { return strings.Count(m.log.String(), "a pod may use it") > before })
}

// TestUnknownMount_TwoPersistentVolumes checks that a volume to which two PersistentVolumes refer is
// not unstaged while a mount of either PersistentVolume has no valid data file.
func TestUnknownMount_TwoPersistentVolumes(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	other := withCSI(newVolume(pod2), func(c *refs.CSIVolume) { c.Volume = "pv-2" })
	m.publish(t, newVolume(pod1))
	m.publish(t, other)
	must(t, os.WriteFile(filepath.Join(m.pathsFor(other).dataDir, dataFile), nil, 0o600))
	m.unpublish(t, pod1)
	m.waitFor(t, "the log contains pod-2", func() bool { return strings.Contains(m.log.String(), "pod-2") })
	m.waitInUse(t, "vol-1")
	m.checkCalls(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1")
}

// TestLongHandle checks that a handle that is too long for a data file is rejected.
func TestLongHandle(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	long := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Handle = strings.Repeat("h", 1<<20) })
	if _, err := m.Publish(t.Context(), long); err == nil || len(err.Error()) > 1000 {
		t.Errorf("Publish with a handle of 1 MiB: got error %.1000v, want one of at most 1000 bytes", err)
	}
	m.waitInUse(t)
	m.checkCalls(t)
	longest := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Handle = strings.Repeat("\x01", manifest.MaxVolumeHandle) })
	must(t, facts{keyDriver: driver, keyHandle: longest.Handle}.save(m.pathsFor(longest).stageDataDir))
	if f, err := readFacts(m.pathsFor(longest).stageDataDir); err != nil || f[keyHandle] != longest.Handle {
		t.Errorf("data file with a handle of %d bytes: got a handle of %d bytes (error %v), want the whole handle", len(longest.Handle), len(f[keyHandle]), err)
	}
}
