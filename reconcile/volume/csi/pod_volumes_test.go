package csi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	storage "k8s.io/api/storage/v1"

	"podd/manifest/refs"
)

// with is a volume of pod uid of which something is otherwise.
func with(v Volume, change func(*refs.CSI)) Volume {
	c := *v.CSI
	change(&c)
	v.CSI = &c
	return v
}

// TestTwoNames checks that a volume of two PersistentVolumes is in use until both are
// unstaged.
func TestTwoNames(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	a := with(volumeOf(one), func(c *refs.CSI) { c.Block = true })
	b := with(volumeOf(two), func(c *refs.CSI) { c.Block, c.Volume = true, "pv-2" })
	for _, v := range []Volume{a, b} {
		m.publish(t, v)
	}
	gone := func(v Volume) func() bool {
		return func() bool { _, err := os.Lstat(m.pathsFor(v).stageData); return os.IsNotExist(err) }
	}
	m.unpublish(t, one)
	m.until(t, "the one is unstaged", func() bool { return m.logged.has("volume unstaged because no pod uses it") })
	m.inUse(t, "vol-1")
	m.unpublish(t, two)
	m.inUse(t)
	m.until(t, "all is gone", func() bool { return gone(a)() && gone(b)() })
}

// TestStageLost checks that a volume stays in use if staging it again fails.
func TestStageLost(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.publish(t, volumeOf(one))
	must(t, unix.Unmount(m.pathsFor(volumeOf(one)).staging, 0))
	must(t, m.driver.Set("NodeStageVolume", "Internal no disk"))
	if _, err := m.Publish(t.Context(), volumeOf(two)); err == nil {
		t.Error("it was published without being staged")
	}
	m.unpublish(t, two)
	if all, _ := m.InUse(); len(all) != 1 {
		t.Errorf("a pod has the volume, and in use are %v", all)
	}
	m.unpublish(t, one)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestStrange checks that unknown files in the directories prevent neither the start of
// podd nor the removal of volumes.
func TestStrange(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	m.stop()
	drivers := filepath.Join(m.root, "plugins/kubernetes.io/csi")
	must(t, os.MkdirAll(filepath.Join(drivers, driver, "dir", dataFile), 0o750))
	must(t, os.MkdirAll(filepath.Join(drivers, driver, "link"), 0o750))
	must(t, os.Symlink("/etc/passwd", filepath.Join(drivers, driver, "link", dataFile)))
	must(t, os.MkdirAll(filepath.Join(m.root, "pods/x/volumes", podPlugin, "dir", dataFile), 0o750))
	for _, file := range []string{filepath.Join(drivers, "file"), filepath.Join(drivers, driver, "file"), filepath.Join(m.root, "pods/x/volumes", podPlugin, "file")} {
		must(t, os.WriteFile(file, nil, 0o600))
	}
	m.begin(t, Options{})
	m.registered(t)
	m.publish(t, volumeOf(one))
	must(t, os.WriteFile(filepath.Join(m.pathsFor(volumeOf(one)).stageData, "lock"), nil, 0o600))
	m.unpublish(t, one)
	m.inUse(t)
	m.unpublish(t, "x")
	if n := strings.Count(m.logged.String(), "volume ignored because its data file is unreadable"); n != 2 {
		t.Errorf("unreadable files were logged %d times, want 2", n)
	}
}

// TestMendedHandle checks that a device can be published after its handle was corrected.
func TestMendedHandle(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	wrong := with(volumeOf(one), func(c *refs.CSI) { c.Block, c.Handle = true, "vol-0" })
	must(t, m.driver.Set("NodeStageVolume", "once NotFound no such volume"))
	if _, err := m.Publish(t.Context(), wrong); err == nil {
		t.Error("what is not there was published")
	}
	m.unpublish(t, one)
	m.until(t, "it is forgotten", func() bool { _, err := os.Lstat(m.pathsFor(wrong).data); return os.IsNotExist(err) })
	m.publish(t, with(volumeOf(two), func(c *refs.CSI) { c.Block = true }))
	m.unpublish(t, two)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestLostFacts checks that a volume whose facts were removed is not published again after
// its pod was removed.
func TestLostFacts(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := with(volumeOf(one), func(c *refs.CSI) {
		c.DriverSpec = wishes(func(s *storage.CSIDriverSpec) { s.RequiresRepublish = ptr(true) })
	})
	m.publish(t, v)
	p := m.pathsFor(v)
	must(t, unix.Unmount(p.target, 0))
	must(t, os.Remove(filepath.Join(p.data, dataFile)))
	m.unpublish(t, one)
	if _, is := m.publishedVolume(p.target); is {
		t.Error("it is still wanted")
	}
	m.inUse(t)
}

// TestLostStageFacts checks that a published volume is in use and later unstaged if the
// facts of its staging are lost.
func TestLostStageFacts(t *testing.T) {
	for name, lose := range map[string]func(string) error{
		"lost":       os.Remove,
		"unreadable": func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
	} {
		for _, restarts := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restarts: %v", name, restarts), func(t *testing.T) {
				m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
				v := volumeOf(one)
				m.publish(t, v)
				must(t, lose(filepath.Join(m.pathsFor(v).stageData, dataFile)))
				if restarts {
					m.restart(t, Options{})
				}
				if all, _ := m.InUse(); len(all) != 1 || all[0] != v.id() {
					t.Errorf("in use are %v", all)
				}
				m.unpublish(t, one)
				m.inUse(t)
				m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
			})
		}
	}
}

// TestUnwritableStageFacts checks that the facts of a published volume are kept until
// those of its staging are restored.
func TestUnwritableStageFacts(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	v := volumeOf(one)
	m.publish(t, v)
	p := m.pathsFor(v)
	must(t, os.Remove(filepath.Join(p.stageData, dataFile)))
	must(t, os.Mkdir(filepath.Join(p.stageData, dataFile), 0o750)) // a file cannot take its place
	if err := m.Unpublish(t.Context(), one); err == nil || !strings.Contains(err.Error(), "pv-1") || !strings.Contains(err.Error(), p.stageData) {
		t.Errorf("got %v", err)
	}
	m.restart(t, Options{})
	m.inUse(t, "vol-1")
	must(t, os.Remove(filepath.Join(p.stageData, dataFile)))
	m.unpublish(t, one)
	m.inUse(t)
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-1", "NodeUnstageVolume vol-1")
}

// TestUnknownUser checks that a mount without facts in a pod prevents only the unstaging of
// volumes that may be mounted there, and that this is logged whenever it begins.
func TestUnknownUser(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	second := with(volumeOf(two), func(c *refs.CSI) { c.Handle, c.Volume = "vol-2", "pv-2" })
	m.publish(t, volumeOf(one))
	m.publish(t, volumeOf(two))
	m.publish(t, second)
	must(t, os.WriteFile(filepath.Join(m.pathsFor(volumeOf(one)).data, dataFile), nil, 0o600))
	m.unpublish(t, two)
	m.inUse(t, "vol-1")
	m.until(t, "podd names the pod", func() bool { return m.logged.has("pod-1") && m.logged.has("pv-1") })
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeStageVolume vol-2", "NodePublishVolume vol-2",
		"NodeUnpublishVolume vol-1", "NodeUnpublishVolume vol-2", "NodeUnstageVolume vol-2")
	must(t, unix.Unmount(m.pathsFor(volumeOf(one)).target, 0))
	m.unpublish(t, one)
	m.inUse(t)
	told := strings.Count(m.logged.String(), "a pod may use it")
	m.publish(t, volumeOf(one))
	must(t, os.WriteFile(filepath.Join(m.pathsFor(volumeOf(one)).data, dataFile), nil, 0o600))
	m.wakeRun()
	m.until(t, "podd tells it again", func() bool { return strings.Count(m.logged.String(), "a pod may use it") > told })
}

// TestSecondName checks that an unknown mount of either name may be a volume of two
// PersistentVolumes.
func TestSecondName(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	other := with(volumeOf(two), func(c *refs.CSI) { c.Volume = "pv-2" })
	m.publish(t, volumeOf(one))
	m.publish(t, other)
	must(t, os.WriteFile(filepath.Join(m.pathsFor(other).data, dataFile), nil, 0o600))
	m.unpublish(t, one)
	m.until(t, "podd names the pod", func() bool { return m.logged.has("pod-2") })
	m.inUse(t, "vol-1")
	m.done(t, "NodeStageVolume vol-1", "NodePublishVolume vol-1", "NodePublishVolume vol-1", "NodeUnpublishVolume vol-1")
}

// TestLongHandle checks that a handle that is too long for a data file is rejected.
func TestLongHandle(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME")
	long := with(volumeOf(one), func(c *refs.CSI) { c.Handle = strings.Repeat("h", 1<<20) })
	if _, err := m.Publish(t.Context(), long); err == nil || len(err.Error()) > 1000 {
		t.Errorf("%.1000v", err)
	}
	m.inUse(t)
	m.done(t)
	most := with(volumeOf(one), func(c *refs.CSI) { c.Handle = strings.Repeat("\x01", refs.MaxHandleLength) })
	must(t, facts{keyDriver: driver, keyHandle: most.Handle}.save(m.pathsFor(most).stageData))
	if f, err := load(m.pathsFor(most).stageData); err != nil || f[keyHandle] != most.Handle {
		t.Error(err)
	}
}
