package csi

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/manifest/refs"
	"podd/runtime/runtimetest/csidriver"
)

// TestStats checks statistics of volumes, and that missing statistics are
// omitted and logged once.
func TestStats(t *testing.T) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS")
	device := newVolume(pod1)
	device.CSIVolume.Block, device.CSIVolume.Handle, device.CSIVolume.Volume, device.Name = true, "vol-2", "pv-2", "disk"
	for _, v := range []Volume{newVolume(pod1), device} {
		m.publish(t, v)
	}
	got, err := m.Stats(t.Context(), pod1)
	must(t, err)
	for name, s := range got {
		if s.Took <= 0 {
			t.Errorf("volume %s: got duration %s, want a positive one", name, s.Took)
		}
		s.Took = 0
		got[name] = s
	}
	want := Stats{Bytes: Amount{1 << 30, 1 << 20, 1<<30 - 1<<20}, Inodes: Amount{1000, 10, 990}, Driver: driver}
	if diff := cmp.Diff(map[string]Stats{"data": want, "disk": want}, got); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", "once Internal no answer"))
	if got, err := m.Stats(t.Context(), pod1); err != nil || len(got) != 1 {
		t.Errorf("Stats when one of two calls fails: got %v, error %v; want 1 volume", got, err)
	}
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", "Internal no answer"))
	for range 3 {
		if got, err := m.Stats(t.Context(), pod1); err != nil || len(got) > 0 {
			t.Errorf("Stats when both calls fail: got %v, error %v; want no volumes", got, err)
		}
	}
	if n := strings.Count(m.log.String(), "getting the statistics of a volume failed"); n != 2 {
		t.Errorf("failures of two volumes were logged %d times, want 2", n)
	}
	must(t, m.driver.Stop())
	if got, err := m.Stats(t.Context(), pod1); err != nil || len(got) > 0 {
		t.Errorf("Stats without a driver: got %v, error %v; want no volumes", got, err)
	}
}

// TestStats_SlowDriver checks that a slow driver does not delay the calls to another driver.
func TestStats_SlowDriver(t *testing.T) {
	m := newTestNode(t, Options{}, "GET_VOLUME_STATS")
	other := *m.driver
	other.Name, other.Dir = "other.csi.example.com", other.Dir+"2"
	must(t, os.MkdirAll(other.Dir, 0o750))
	must(t, other.Start())
	t.Cleanup(func() { _ = other.Stop() })
	m.waitFor(t, "both drivers are registered", func() bool { all, _ := m.Registered(); return len(all) == 2 })
	m.publish(t, newVolume(pod1))
	second := withCSI(newVolume(pod1), func(c *refs.CSIVolume) { c.Driver, c.Volume = other.Name, "pv-2" })
	second.Name = "other"
	m.publish(t, second)
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", "hang"))
	result := make(chan map[string]Stats)
	go func() {
		all, err := m.Stats(context.Background(), pod1)
		if err != nil {
			t.Error(err)
		}
		result <- all
	}()
	m.waitFor(t, "NodeGetVolumeStats of the other driver is called", func() bool {
		all, err := other.Calls()
		must(t, err)
		return slices.ContainsFunc(all, func(c csidriver.Call) bool { return c.Method == "NodeGetVolumeStats" })
	})
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", ""))
	if all := <-result; len(all) != 2 {
		t.Errorf("Stats: got %v, want 2 volumes", all)
	}
}
