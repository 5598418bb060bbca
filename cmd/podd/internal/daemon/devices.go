package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/device/plugin"
	"podd/reconcile/plugins"
	"podd/server"
	"podd/server/podresources"
)

// openDeviceManager returns the Manager of the devices of this node. If the file of device
// allocations cannot be read, the Manager has no allocations, and openDeviceManager returns a
// problem.
func openDeviceManager(root string, log *slog.Logger) (*device.Manager, []manifest.Problem) {
	file := rootdir.DevicesPath(root)
	devices, err := device.Open(file)
	if err == nil {
		kubeletFile := filepath.Join(rootdir.DevicePluginsPath(root), device.KubeletFile)
		if err := devices.ImportKubelet(kubeletFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("the node may show old numbers of devices until the device plugins register", "err", err)
		}
		return devices, nil
	}
	log.Error("reading the stored device allocations failed; using the device allocations in the annotations of containers instead", "err", err)
	return devices, []manifest.Problem{{Severity: manifest.Warning, Message: fmt.Sprintf(
		"%v; containers keep their devices, because podd reads the allocations from the annotations of the containers instead; when podd next allocates a device or a device plugin registers, podd renames this file to %s and writes a new one; this warning disappears when podd restarts",
		err, filepath.Base(file)+device.UnreadableSuffix)}}
}

// newPluginServer returns the server of the registration of device plugins and CSI drivers.
func (p *parts) newPluginServer() *wiring.PluginServer {
	return wiring.NewPluginServer(wiring.PluginOptions{
		Root: p.cfg.RootDir, Manager: p.devices, OtherPlugins: map[string]plugins.Handler{registration.CSIPlugin: p.csi},
		OnRegistered: p.metrics.RecordPluginRegistration, OnAllocate: p.metrics.RecordDeviceAllocation, Log: p.log,
	})
}

// serveDevicePlugins serves the registration of device plugins. It waits while a "podd run --runonce"
// serves the registration in the same root directory.
func (p *parts) serveDevicePlugins(ctx context.Context, s *wiring.PluginServer) error {
	release, err := plugin.LockDir(ctx, rootdir.DevicePluginsPath(p.cfg.RootDir), func() {
		p.log.Warn("a podd run --runonce uses the device plugins of this root directory; pods that request devices wait until it has exited")
	})
	if err != nil {
		return err
	}
	defer release()
	return s.ServeDevicePlugins(ctx)
}

// servePodResources serves the pod resources API.
func (p *parts) servePodResources(ctx context.Context) error {
	ln, err := server.ListenRoot(ctx, filepath.Join(p.cfg.RootDir, "pod-resources", "kubelet.sock"), p.log)
	if err != nil {
		return err
	}
	s := &podresources.Server{Source: &resourceSource{p.view.Latest, p.devices}, OnRequest: p.metrics.RecordPodResourcesRequest}
	return s.Serve(ctx, ln)
}

// resourceSource implements podresources.Source.
type resourceSource struct {
	state   server.Viewer
	devices *device.Manager
}

// Pods implements podresources.Source.
func (s *resourceSource) Pods() []podresources.Pod {
	var pods []podresources.Pod
	for _, p := range s.state.View().Pods {
		if !manifest.IsTerminal(p.Pod.Status.Phase) {
			pods = append(pods, s.newPod(p.Pod))
		}
	}
	return pods
}

// newPod returns the containers of a pod and their devices.
func (s *resourceSource) newPod(p *v1.Pod) podresources.Pod {
	pod := podresources.Pod{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; manifest.IsSidecar(c) {
			sidecar := s.newContainer(pod.NamespacedName, p.UID, c.Name)
			sidecar.IsSidecar = true
			pod.Containers = append(pod.Containers, sidecar)
		}
	}
	for i := range p.Spec.Containers {
		pod.Containers = append(pod.Containers, s.newContainer(pod.NamespacedName, p.UID, p.Spec.Containers[i].Name))
	}
	return pod
}

// newContainer returns the devices that are allocated to a container.
func (s *resourceSource) newContainer(key types.NamespacedName, uid types.UID, name string) podresources.Container {
	c := podresources.Container{Name: name}
	for _, g := range s.devices.Grants(key, uid, name) {
		for _, id := range g.IDs {
			c.Devices = append(c.Devices, podresources.Device{Resource: g.Resource, ID: id, NUMANodes: g.NUMA[id]})
		}
	}
	return c
}

// Allocatable implements podresources.Source.
func (s *resourceSource) Allocatable() []podresources.Device {
	var allocatable []podresources.Device
	healthy := s.devices.HealthyDevices()
	for _, resource := range slices.Sorted(maps.Keys(healthy)) {
		for _, d := range healthy[resource] {
			allocatable = append(allocatable, podresources.Device{Resource: resource, ID: d.ID, NUMANodes: d.NUMA})
		}
	}
	return allocatable
}
