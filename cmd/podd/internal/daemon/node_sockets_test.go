package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/view"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/device"
	"podd/reconcile/device/plugin"
	"podd/reconcile/device/plugin/plugintest"
	"podd/reconcile/plugins"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
)

// startNodeSockets serves the registration of plugins below root until the test ends.
func startNodeSockets(t *testing.T, root string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	drivers, err := csi.New(csi.Options{Root: root, NodeName: "node1", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	devices, err := device.Open(filepath.Join(root, "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{}
	cfg.RootDir, cfg.DisablePodsAPI = root, true
	p := &parts{
		processState: processState{cfg: cfg, log: log}, telemetry: telemetry{metrics: newMetrics(render.Node{}, time.Now(), "", false)},
		inputs: inputs{csi: drivers}, core: core{devices: devices, view: view.NewPublisher(view.Options{})},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { p.serveNodeSockets(ctx) })
	t.Cleanup(func() { cancel(); served.Wait() })
}

// startDiscoveredPlugin starts a plugin that waits until podd discovers its socket in
// plugins_registry.
func startDiscoveredPlugin(t *testing.T, root, kind, name string) *plugintest.Plugin {
	t.Helper()
	p := &plugintest.Plugin{Dir: filepath.Join(root, plugins.DirName), Resource: name, WaitsForDiscovery: true, Type: kind}
	if err := os.MkdirAll(p.Dir, 0o750); err != nil {
		t.Fatal(err)
	}
	p.SetDevices("one")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// untilNotified waits until podd has reported the result of the registration to a plugin, and returns
// the result.
func untilNotified(t *testing.T, p *plugintest.Plugin) *registration.RegistrationStatus {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); p.Status() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("plugin %s was not notified within 5m", p.Resource)
		}
	}
	return p.Status()
}

// TestServeNodeSockets_PluginsDuringRun checks that podd registers CSI drivers while a "podd run
// --runonce" serves the device plugins of the root directory. During the run, podd must neither register
// device plugins nor report a failure to them. The test holds the lock that the run would hold.
func TestServeNodeSockets_PluginsDuringRun(t *testing.T) {
	root, err := os.MkdirTemp("", "podd") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	release, err := plugin.LockDir(t.Context(), rootdir.DevicePluginsPath(root), func() { t.Error("LockDir waited for the lock, but no process holds it") })
	if err != nil {
		t.Fatal(err)
	}
	gpu := startDiscoveredPlugin(t, root, registration.DevicePlugin, "example.com/gpu")
	startNodeSockets(t, root)
	// podd reports a failure to this plugin, because it is not a CSI driver. The report shows that podd
	// serves CSI drivers.
	untilNotified(t, startDiscoveredPlugin(t, root, registration.CSIPlugin, "csi.example.com"))
	if got := gpu.Status(); got != nil {
		t.Errorf("during the run: got status %v of the device plugin, want none", got)
	}
	release()
	if got := untilNotified(t, gpu); !got.GetPluginRegistered() {
		t.Errorf("after the run: got status %v of the device plugin, want registered", got)
	}
}
