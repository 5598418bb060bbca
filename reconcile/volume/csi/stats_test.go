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

// untilNoTimeout calls test with a new node until no call has exceeded statsTimeout, because this happens
// on a busy host. If it has happened, stats returns false, and test must return.
func untilNoTimeout(t *testing.T, test func(stats func(*testNode) (all map[string]Stats, ok bool))) {
	t.Helper()
	for range 20 {
		hasTimedOut := false
		test(func(m *testNode) (map[string]Stats, bool) {
			all, err := m.Stats(context.Background(), pod1)
			if err != nil {
				t.Errorf("Stats: %v", err)
			}
			hasTimedOut = strings.Contains(m.log.String(), "getting the statistics of a CSI driver's volumes timed out")
			return all, !hasTimedOut
		})
		if !hasTimedOut {
			return
		}
	}
	t.Error("got a timeout in each of 20 attempts, want an attempt without one")
}

// TestStats checks statistics of volumes, and that missing statistics are
// omitted and logged once.
func TestStats(t *testing.T) {
	untilNoTimeout(t, func(stats func(*testNode) (map[string]Stats, bool)) { testStats(t, stats) })
}

func testStats(t *testing.T, stats func(*testNode) (map[string]Stats, bool)) {
	m := newTestNode(t, Options{}, "STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS")
	device := newVolume(pod1)
	device.CSIVolume.Block, device.CSIVolume.Handle, device.CSIVolume.Volume, device.Name = true, "vol-2", "pv-2", "disk"
	for _, v := range []Volume{newVolume(pod1), device} {
		m.publish(t, v)
	}
	got, ok := stats(m)
	if !ok {
		return
	}
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
	if got, ok = stats(m); !ok {
		return
	}
	if len(got) != 1 {
		t.Errorf("Stats when one of two calls fails: got %v, want 1 volume", got)
	}
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", "Internal no answer"))
	for range 3 {
		if got, ok = stats(m); !ok {
			return
		}
		if len(got) > 0 {
			t.Errorf("Stats when both calls fail: got %v, want no volumes", got)
		}
	}
	if n := strings.Count(m.log.String(), "getting the statistics of a volume failed"); n != 2 {
		t.Errorf("failures of two volumes were logged %d times, want 2", n)
	}
	must(t, m.driver.Stop())
	if got, ok = stats(m); ok && len(got) > 0 {
		t.Errorf("Stats without a driver: got %v, want no volumes", got)
	}
}

// TestStats_SlowDriver checks that a slow driver does not delay the calls to another driver.
func TestStats_SlowDriver(t *testing.T) {
	untilNoTimeout(t, func(stats func(*testNode) (map[string]Stats, bool)) { testStatsSlowDriver(t, stats) })
}

func testStatsSlowDriver(t *testing.T, stats func(*testNode) (map[string]Stats, bool)) {
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
	type result struct {
		all map[string]Stats
		ok  bool
	}
	ended := make(chan result, 1)
	go func() {
		all, ok := stats(m)
		ended <- result{all, ok}
	}()
	m.waitFor(t, "NodeGetVolumeStats of the other driver is called", func() bool {
		all, err := other.Calls()
		must(t, err)
		return slices.ContainsFunc(all, func(c csidriver.Call) bool { return c.Method == "NodeGetVolumeStats" }) || len(ended) > 0
	})
	must(t, m.driver.SetBehavior("NodeGetVolumeStats", ""))
	if r := <-ended; r.ok && len(r.all) != 2 {
		t.Errorf("Stats: got %v, want 2 volumes", r.all)
	}
}
