package podrunner

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"podd/cmd/podd/internal/rootdir"
	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/device/plugin"
)

// RequestsDevices reports whether a pod in the set requests devices of a device plugin.
func RequestsDevices(s *manifest.Set) bool {
	for _, p := range s.Pods {
		for name, n := range manifest.PodRequests(p.Object) {
			if manifest.IsExtendedResource(name) && n.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// LockDevicePlugins waits until no other run uses the device plugins of a root directory, and prevents
// other runs and daemons from using them until release is called. If it must wait, it calls onWait
// once. It returns an error if a daemon uses the root directory, or if another node agent serves its
// device plugins, because the plugins are registered with that program.
func LockDevicePlugins(ctx context.Context, root string, onWait func()) (release func(), err error) {
	id, _, err := reconcile.ReadInstanceIDs(root)
	if err != nil {
		return nil, err
	}
	if id != "" {
		pid, err := reconcile.FindInstanceProcess(id)
		if err != nil {
			return nil, fmt.Errorf("checking whether a podd serves the device plugins of %s: %w", root, err)
		}
		if pid != 0 {
			return nil, fmt.Errorf("the pods request devices, but the device plugins of root directory %s are registered with the podd with PID %d; run the pods from a manifest of that podd, or stop that podd", root, pid)
		}
	}
	dir := rootdir.DevicePluginsPath(root)
	if release, err = plugin.LockDir(ctx, dir, onWait); err != nil {
		return nil, err
	}
	if err := checkNotServed(ctx, dir); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkNotServed returns an error if another program serves the registration of device plugins in the
// locked directory dir. That program is not podd, because podd would have locked the directory.
func checkNotServed(ctx context.Context, dir string) error {
	socket := filepath.Join(dir, plugin.SocketName)
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil // there is no socket, or the program that created it has exited
	}
	conn.Close()
	return fmt.Errorf("the pods request devices, but the device plugins are registered with another node agent, such as a kubelet, which serves %s; stop that agent, or use another --root-dir", socket)
}
