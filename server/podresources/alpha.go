package podresources

import (
	"context"

	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// alphaServer serves version v1alpha1 of the API, which older exporters use. This version contains
// neither sidecars nor NUMA nodes.
type alphaServer struct {
	source Source
	v1alpha1.UnsafePodResourcesListerServer
}

// List implements v1alpha1.PodResourcesListerServer.
func (a *alphaServer) List(context.Context, *v1alpha1.ListPodResourcesRequest) (*v1alpha1.ListPodResourcesResponse, error) {
	r := &v1alpha1.ListPodResourcesResponse{}
	for _, p := range a.source.Pods() {
		pod := &v1alpha1.PodResources{Name: p.Name, Namespace: p.Namespace}
		for _, c := range p.Containers {
			if c.IsSidecar {
				continue
			}
			container := &v1alpha1.ContainerResources{Name: c.Name}
			for _, d := range c.Devices {
				container.Devices = append(container.Devices, &v1alpha1.ContainerDevices{ResourceName: d.Resource, DeviceIds: []string{d.ID}})
			}
			pod.Containers = append(pod.Containers, container)
		}
		r.PodResources = append(r.PodResources, pod)
	}
	return r, nil
}
