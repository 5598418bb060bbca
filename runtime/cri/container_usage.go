package cri

import (
	"context"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// ContainerUsages is what the runtime says that the containers of an instance
// use, by id.
func (c *Client) ContainerUsages(ctx context.Context, instance string) (map[string]runtime.Usage, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainerStats, &api.ListContainerStatsRequest{
		Filter: &api.ContainerStatsFilter{LabelSelector: map[string]string{runtime.LabelInstance: instance}},
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]runtime.Usage, len(r.GetStats()))
	for _, s := range r.GetStats() {
		u := runtime.Usage{
			At: moment(s.GetCpu().GetTimestamp()), CPU: s.GetCpu().GetUsageCoreNanoSeconds().GetValue(),
			Memory: s.GetMemory().GetUsageBytes().GetValue(), WorkingSet: s.GetMemory().GetWorkingSetBytes().GetValue(),
			RSS: s.GetMemory().GetRssBytes().GetValue(),
		}
		if layer := s.GetWritableLayer(); layer.GetUsedBytes() != nil {
			u.Layer, u.LayerAt = &filesystems([]*api.FilesystemUsage{layer})[0], moment(layer.GetTimestamp())
		}
		all[s.GetAttributes().GetId()] = u
	}
	return all, nil
}
