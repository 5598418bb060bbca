package main

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/device/plugin"
	"podd/reconcile/plugins"
	"podd/server"
	"podd/server/podresources"
)

// openDevices is the ledger of a root directory.
func openDevices(root string, log *slog.Logger) *device.Ledger {
	ledger, err := device.Open(filepath.Join(root, "devices.json"))
	if err != nil {
		log.Error("what device plugins want their containers to have is asked anew", "err", err)
	}
	return ledger
}

// serveDevices has device plugins register, and tells who has their devices, until
// ctx is done. Where that is not possible pods without devices run all the same.
func (d *podd) serveDevices(ctx context.Context) {
	var all sync.WaitGroup
	for what, serve := range map[string]func(context.Context) error{
		"device plugins cannot register":   d.servePlugins,
		"the pods' devices cannot be seen": d.servePodResources,
	} {
		all.Go(func() {
			if err := serve(ctx); err != nil && ctx.Err() == nil {
				d.log.Error(what+"; podd goes on without, restart it when the cause is gone", "err", err)
			}
		})
	}
	all.Wait()
}

func (d *podd) servePlugins(ctx context.Context) error {
	dir := filepath.Join(d.cfg.RootDir, "device-plugins")
	if err := plugin.Prepare(dir); err != nil {
		return err
	}
	ln, err := server.ListenRoot(ctx, filepath.Join(dir, plugin.Socket))
	if err != nil {
		return err
	}
	s := &plugin.Server{Dir: dir, Ledger: d.devices, Log: d.log, Taken: d.metrics.PluginRegistered}
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before it is waited: Serve may fail
	watch.Go(func() {
		if err := d.watchPlugins(ctx, s); err != nil {
			d.log.Error("plugins that wait to be found are not", "err", err)
		}
	})
	return s.Serve(ctx, ln)
}

// watchPlugins has those register that wait to be found.
func (d *podd) watchPlugins(ctx context.Context, devices *plugin.Server) error {
	kinds := map[string]plugins.Kind{registration.DevicePlugin: devices.Kind()}
	if d.csi != nil {
		kinds[registration.CSIPlugin] = d.csi
	}
	w := &plugins.Watcher{Dir: filepath.Join(d.cfg.RootDir, plugins.Dir), Kinds: kinds, Log: d.log}
	return w.Run(ctx)
}

func (d *podd) servePodResources(ctx context.Context) error {
	ln, err := server.ListenRoot(ctx, filepath.Join(d.cfg.RootDir, "pod-resources", "kubelet.sock"))
	if err != nil {
		return err
	}
	s := &podresources.Server{Source: &resourceSource{d.view.latest, d.devices}, Asked: d.metrics.ResourcesAsked}
	return s.Serve(ctx, ln)
}

// resourceSource is what podresources tells.
type resourceSource struct {
	state   server.Viewer
	devices *device.Ledger
}

// Pods implements podresources.Source.
func (s *resourceSource) Pods() []podresources.Pod {
	var all []podresources.Pod
	for _, p := range s.state.View().Pods {
		if p.Pod.Status.Phase != v1.PodSucceeded && p.Pod.Status.Phase != v1.PodFailed {
			all = append(all, s.pod(p.Pod))
		}
	}
	return all
}

func (s *resourceSource) pod(p *v1.Pod) podresources.Pod {
	pod := podresources.Pod{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; manifest.IsSidecar(c) {
			side := s.container(pod.NamespacedName, p.UID, c.Name)
			side.Sidecar = true
			pod.Containers = append(pod.Containers, side)
		}
	}
	for i := range p.Spec.Containers {
		pod.Containers = append(pod.Containers, s.container(pod.NamespacedName, p.UID, p.Spec.Containers[i].Name))
	}
	return pod
}

func (s *resourceSource) container(key types.NamespacedName, uid types.UID, name string) podresources.Container {
	c := podresources.Container{Name: name}
	for _, g := range s.devices.Of(key, uid, name) {
		for _, id := range g.IDs {
			c.Devices = append(c.Devices, podresources.Device{Resource: g.Resource, ID: id, NUMA: g.NUMA[id]})
		}
	}
	return c
}

// Allocatable implements podresources.Source.
func (s *resourceSource) Allocatable() []podresources.Device {
	var all []podresources.Device
	healthy := s.devices.Healthy()
	for _, resource := range slices.Sorted(maps.Keys(healthy)) {
		for _, d := range healthy[resource] {
			all = append(all, podresources.Device{Resource: resource, ID: d.ID, NUMA: d.NUMA})
		}
	}
	return all
}
