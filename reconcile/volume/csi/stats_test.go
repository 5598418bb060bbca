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

// TestStats checks statistics and conditions of volumes, and that missing statistics are
// omitted and logged once.
func TestStats(t *testing.T) {
	m := newMachine(t, Options{}, "STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "VOLUME_CONDITION")
	device := volumeOf(one)
	device.CSI.Block, device.CSI.Handle, device.CSI.Volume, device.Name = true, "vol-2", "pv-2", "disk"
	for _, v := range []Volume{volumeOf(one), device} {
		m.publish(t, v)
	}
	must(t, m.driver.Set("abnormal", "yes"))
	got, err := m.Stats(t.Context(), one)
	must(t, err)
	want := Stats{Amount{1 << 30, 1 << 20, 1<<30 - 1<<20}, Amount{1000, 10, 990}, &Condition{true, "as it was told"}}
	if diff := cmp.Diff(map[string]Stats{"data": want, "disk": want}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	must(t, m.driver.Set("NodeGetVolumeStats", "once Internal no answer"))
	if got, err := m.Stats(t.Context(), one); err != nil || len(got) != 1 {
		t.Errorf("when one of two fails: %v, %v", got, err)
	}
	must(t, m.driver.Set("NodeGetVolumeStats", "Internal no answer"))
	for range 3 {
		if got, err := m.Stats(t.Context(), one); err != nil || len(got) > 0 {
			t.Errorf("when both fail: %v, %v", got, err)
		}
	}
	if n := strings.Count(m.logged.String(), "getting the statistics of a volume failed"); n != 2 {
		t.Errorf("failures of two volumes were logged %d times, want 2", n)
	}
	must(t, m.driver.Stop())
	if got, err := m.Stats(t.Context(), one); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestStatsSideBySide checks that a slow driver does not delay the statistics of others.
func TestStatsSideBySide(t *testing.T) {
	m := newMachine(t, Options{}, "GET_VOLUME_STATS")
	other := *m.driver
	other.Name, other.Dir = "other.csi.example.com", other.Dir+"2"
	must(t, os.MkdirAll(other.Dir, 0o750))
	must(t, other.Start())
	t.Cleanup(func() { _ = other.Stop() })
	m.until(t, "both drivers are registered", func() bool { all, _ := m.Registered(); return len(all) == 2 })
	m.publish(t, volumeOf(one))
	second := with(volumeOf(one), func(c *refs.CSI) { c.Driver, c.Volume = other.Name, "pv-2" })
	second.Name = "other"
	m.publish(t, second)
	must(t, m.driver.Set("NodeGetVolumeStats", "hang"))
	told := make(chan map[string]Stats)
	go func() {
		all, err := m.Stats(context.Background(), one)
		if err != nil {
			t.Error(err)
		}
		told <- all
	}()
	m.until(t, "the other is asked", func() bool {
		all, err := other.Calls()
		must(t, err)
		return slices.ContainsFunc(all, func(c csidriver.Call) bool { return c.Method == "NodeGetVolumeStats" })
	})
	must(t, m.driver.Set("NodeGetVolumeStats", ""))
	if all := <-told; len(all) != 2 {
		t.Errorf("got %v", all)
	}
}
