package csi

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/reconcile/plugins"
	"podd/runtime/runtimetest/csidriver"
)

// TestRegister checks that a driver registers, unregisters and registers again.
func TestRegister(t *testing.T) {
	m := newTestNode(t, Options{})
	must(t, m.driver.Stop())
	m.waitFor(t, "the driver is unregistered", func() bool { all, _ := m.Registered(); return len(all) == 0 })
	m.driver.NodeID, m.driver.MaxVolumes, m.driver.Topology = "n-7", 3, map[string]string{"example.com/zone": "a"}
	m.driver.Versions = []string{"0.3.0", "1.5.0", "2.0.0", "junk"}
	_, changed := m.Registered()
	must(t, m.driver.SetBehavior("NodeGetInfo", "Unavailable starting"))
	must(t, m.driver.Start())
	m.waitFor(t, "NodeGetInfo is retried", func() bool { all, err := m.driver.Calls(); must(t, err); return len(all) > 8 })
	must(t, m.driver.SetBehavior("NodeGetInfo", ""))
	<-changed
	all, _ := m.Registered()
	if len(all) != 1 || all[0].NodeID != "n-7" || all[0].MaxVolumes != 3 || !maps.Equal(all[0].Topology, m.driver.Topology) {
		t.Errorf("Registered: got %+v, want a driver with node ID n-7, 3 volumes and topology %v", all, m.driver.Topology)
	}
	// The driver starts again before podd has noticed that it stopped.
	must(t, m.driver.Stop())
	m.driver.NodeID = "n-8"
	must(t, m.driver.Start())
	m.waitFor(t, "the restarted driver is registered", func() bool { all, _ := m.Registered(); return len(all) == 1 && all[0].NodeID == "n-8" })
}

// TestRegister_Rejects checks that unsupported drivers are rejected with a reason.
func TestRegister_Rejects(t *testing.T) {
	m := newTestNode(t, Options{})
	for _, c := range []struct {
		plugin  plugins.Plugin
		wantErr string
	}{
		{plugins.Plugin{Name: "../x", Versions: []string{"1.0.0"}}, "is not a valid name of a CSI driver"},
		{plugins.Plugin{Name: strings.Repeat("x", 64), Versions: []string{"1.0.0"}}, "is not a valid name of a CSI driver"},
		{plugins.Plugin{Name: DevicesDir, Versions: []string{"1.0.0"}}, "is not a valid name of a CSI driver"},
		{plugins.Plugin{Name: "y", Versions: []string{"2.0.0", ""}}, "podd supports 1.x"},
		{plugins.Plugin{Name: driver, Versions: []string{"1.0.0"}}, "another driver " + driver + " is registered"},
	} {
		c.plugin.Endpoint = m.driver.Endpoint()
		if _, err := m.Register(t.Context(), c.plugin); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("Register of %+v: got error %v, want %q", c.plugin, err, c.wantErr)
		}
	}
	newer, err := m.Register(t.Context(), plugins.Plugin{Name: driver, Endpoint: m.driver.Endpoint(), Versions: []string{"1.1.0"}})
	must(t, err)
	newer.Unregister()
	if all, _ := m.Registered(); len(all) > 0 {
		t.Errorf("Registered after Unregister: got %+v, want none", all)
	}
	invalid := &csidriver.Driver{Dir: filepath.Join(filepath.Dir(m.root), "o"), Name: "odd.example.com", Registry: filepath.Join(m.root, plugins.DirName), NodeID: strings.Repeat("n", 300)}
	must(t, os.MkdirAll(invalid.Dir, 0o750))
	must(t, invalid.Start())
	defer func() { must(t, invalid.Stop()) }()
	m.waitFor(t, "the driver with the long node ID is rejected", func() bool { return strings.Contains(m.log.String(), "has 300 characters; it must have 1 to 256") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Register(ctx, plugins.Plugin{Name: "gone.example.com", Endpoint: "/nothing", Versions: []string{"1.0.0"}}); err == nil {
		t.Error("Register of a driver without a socket: got no error, want one")
	}
}

// TestUpdateMaxVolumes checks that a changed maximum number of volumes is stored, and that failures and
// other changes of the response are not.
func TestUpdateMaxVolumes(t *testing.T) {
	m := newTestNode(t, Options{})
	update := func(name string) error { return m.UpdateMaxVolumes(t.Context(), name) }
	check := func(when string, changed <-chan struct{}, wantChange bool, want int64) {
		t.Helper()
		isChanged := false
		select {
		case <-changed:
			isChanged = true
		default:
		}
		if all, _ := m.Registered(); isChanged != wantChange || len(all) != 1 || all[0].MaxVolumes != want {
			t.Errorf("%s: got a change %t, drivers %+v; want a change %t, a driver with %d volumes", when, isChanged, all, wantChange, want)
		}
	}
	_, changed := m.Registered()
	must(t, update(driver))
	must(t, update("other.example.com"))
	check("same response", changed, false, 0)
	must(t, m.driver.SetMaxVolumes(3))
	must(t, update(driver))
	check("3 volumes", changed, true, 3)
	_, changed = m.Registered()
	must(t, m.driver.SetMaxVolumes(4))
	must(t, m.driver.SetBehavior("NodeGetInfo", "Internal broken"))
	if err := update(driver); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("failed call: got error %v, want the driver's error", err)
	}
	check("failed call", changed, false, 3)
	must(t, m.driver.SetBehavior("NodeGetInfo", ""))
	must(t, m.driver.SetMaxVolumes(-1))
	must(t, update(driver))
	check("negative number, which means no limit", changed, true, 0)
}
