package cri

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ContainerUsages returns the resource usage of all containers that belong to the given instances,
// by container ID.
func (c *Client) ContainerUsages(ctx context.Context, instances []string) (map[string]runtime.Usage, error) {
	usages := map[string]runtime.Usage{}
	for _, instance := range instances {
		if err := c.addUsages(ctx, instance, usages); err != nil {
			return nil, err
		}
	}
	return usages, nil
}

// addUsages adds the resource usage of the containers of one instance to usages.
func (c *Client) addUsages(ctx context.Context, instance string, usages map[string]runtime.Usage) error {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainerStats, &api.ListContainerStatsRequest{
		Filter: &api.ContainerStatsFilter{LabelSelector: map[string]string{runtime.LabelInstance: instance}},
	})
	if err != nil {
		return err
	}
	for _, s := range r.GetStats() {
		u := runtime.Usage{
			PodUID: types.UID(s.GetAttributes().GetLabels()[runtime.LabelPodUID]),
			At:     timeOf(s.GetCpu().GetTimestamp()), CPUNanoseconds: s.GetCpu().GetUsageCoreNanoSeconds().GetValue(),
			MemoryBytes: s.GetMemory().GetUsageBytes().GetValue(), WorkingSetBytes: s.GetMemory().GetWorkingSetBytes().GetValue(),
			RSSBytes: s.GetMemory().GetRssBytes().GetValue(),
		}
		if layer := s.GetWritableLayer(); layer.GetUsedBytes() != nil {
			u.WritableLayer, u.WritableLayerAt = &filesystems([]*api.FilesystemUsage{layer})[0], timeOf(layer.GetTimestamp())
		}
		usages[s.GetAttributes().GetId()] = u
	}
	return nil
}
