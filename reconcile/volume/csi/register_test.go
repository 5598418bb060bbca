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

// TestRegistered checks that a driver registers, unregisters and registers again.
func TestRegistered(t *testing.T) {
	m := newMachine(t, Options{})
	must(t, m.driver.Stop())
	m.until(t, "it is gone", func() bool { all, _ := m.Registered(); return len(all) == 0 })
	m.driver.NodeID, m.driver.MaxVolumes, m.driver.Topology = "n-7", 3, map[string]string{"example.com/zone": "a"}
	m.driver.Versions = []string{"0.3.0", "1.5.0", "2.0.0", "junk"}
	_, changed := m.Registered()
	must(t, m.driver.Set("NodeGetInfo", "Unavailable starting"))
	must(t, m.driver.Start())
	m.until(t, "it is asked again", func() bool { all, err := m.driver.Calls(); must(t, err); return len(all) > 8 })
	must(t, m.driver.Set("NodeGetInfo", ""))
	<-changed
	all, _ := m.Registered()
	if len(all) != 1 || all[0].NodeID != "n-7" || all[0].MaxVolumes != 3 || !maps.Equal(all[0].Topology, m.driver.Topology) {
		t.Errorf("%+v", all)
	}
	// made anew before podd has seen that it went
	must(t, m.driver.Stop())
	m.driver.NodeID = "n-8"
	must(t, m.driver.Start())
	m.until(t, "the new one is registered", func() bool { all, _ := m.Registered(); return len(all) == 1 && all[0].NodeID == "n-8" })
}

// TestRefused checks that unsupported drivers are rejected with a reason.
func TestRefused(t *testing.T) {
	m := newMachine(t, Options{})
	for _, c := range []struct {
		plugin plugins.Plugin
		says   string
	}{
		{plugins.Plugin{Name: "../x", Versions: []string{"1.0.0"}}, "is not the name of a CSI driver"},
		{plugins.Plugin{Name: strings.Repeat("x", 64), Versions: []string{"1.0.0"}}, "is not the name of a CSI driver"},
		{plugins.Plugin{Name: DevicesDir, Versions: []string{"1.0.0"}}, "is not the name of a CSI driver"},
		{plugins.Plugin{Name: "y", Versions: []string{"2.0.0", ""}}, "podd supports 1.x"},
		{plugins.Plugin{Name: driver, Versions: []string{"1.0.0"}}, "another driver " + driver + " is registered"},
	} {
		c.plugin.Endpoint = m.driver.Endpoint()
		if _, err := m.Register(t.Context(), c.plugin); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.plugin, err)
		}
	}
	newer, err := m.Register(t.Context(), plugins.Plugin{Name: driver, Endpoint: m.driver.Endpoint(), Versions: []string{"1.1.0"}})
	must(t, err)
	newer.Unregister()
	if all, _ := m.Registered(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	odd := &csidriver.Driver{Dir: filepath.Join(filepath.Dir(m.root), "o"), Name: "odd.example.com", Registry: filepath.Join(m.root, plugins.Dir), NodeID: strings.Repeat("n", 300)}
	must(t, os.MkdirAll(odd.Dir, 0o750))
	must(t, odd.Start())
	defer func() { must(t, odd.Stop()) }()
	m.until(t, "it is refused", func() bool { return m.logged.has("has 300 characters; it must have 1 to 256") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Register(ctx, plugins.Plugin{Name: "gone.example.com", Endpoint: "/nothing", Versions: []string{"1.0.0"}}); err == nil {
		t.Error("a driver that is not there is registered")
	}
}
