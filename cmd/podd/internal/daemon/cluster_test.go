package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/device/plugin"
)

// TestIsNewHost checks that a host stays new while podd has only served device plugins, and is not new
// after a sync of the Node, with recorded devices, or if a kubelet has run.
func TestIsNewHost(t *testing.T) {
	for _, c := range []struct {
		name, file string // file is created in the root directory
		want       bool
	}{
		{"a socket of device plugins", "device-plugins/kubelet.sock", true},
		{"synced Node", "node-synced", false},
		{"recorded devices", "devices.json", false},
		{"a kubelet", "cpu_manager_state", false},
		{"a kubelet's devices", "device-plugins/kubelet_internal_checkpoint", false},
	} {
		root := t.TempDir()
		release, err := plugin.LockDir(t.Context(), rootdir.DevicePluginsPath(root), func() {})
		if err != nil {
			t.Fatal(err)
		}
		release()
		if !isNewHost(root) {
			t.Errorf("%s: got no new host before, although there is only the lock file; want a new host", c.name)
		}
		if err := os.WriteFile(filepath.Join(root, c.file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := isNewHost(root); got != c.want {
			t.Errorf("%s: new host: got %t, want %t", c.name, got, c.want)
		}
	}
}
