package cri

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// Layers is the usage of the writable layers of a pod.
type Layers struct {
	// Bytes contains the usage by container. If a name has several attempts, the newest
	// counts.
	Bytes map[string]int64
	// Partial is set if the runtime did not report the layer of a container.
	Partial bool
}

// WritableLayers returns the writable layers of those of the pods that have containers of
// these instances. Runtimes measure periodically, so the result may be some seconds old. For
// several pods it lists all containers of each instance, because a request for each pod
// would take too long on a slow runtime.
func (c *Client) WritableLayers(ctx context.Context, instances []string, uids []types.UID) (map[types.UID]Layers, error) {
	var filters []map[string]string
	for _, instance := range instances {
		filters = append(filters, map[string]string{runtime.LabelInstance: instance})
	}
	if len(uids) == 1 {
		filters = []map[string]string{{runtime.LabelPodUID: string(uids[0])}}
	}
	all := layersByPod{}
	for _, filter := range filters {
		r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainerStats, &api.ListContainerStatsRequest{
			Filter: &api.ContainerStatsFilter{LabelSelector: filter},
		})
		if err != nil {
			return nil, err
		}
		for _, s := range r.GetStats() {
			labels := s.GetAttributes().GetLabels()
			if uid := types.UID(labels[runtime.LabelPodUID]); slices.Contains(instances, labels[runtime.LabelInstance]) && slices.Contains(uids, uid) {
				all.add(uid, s)
			}
		}
	}
	return all.layers(), nil
}

// layersByPod contains the statistics of the newest attempt of each container.
type layersByPod map[types.UID]map[string]*api.ContainerStats

func (l layersByPod) add(uid types.UID, s *api.ContainerStats) {
	if l[uid] == nil {
		l[uid] = map[string]*api.ContainerStats{}
	}
	m := s.GetAttributes().GetMetadata()
	if other := l[uid][m.GetName()]; other == nil || other.GetAttributes().GetMetadata().GetAttempt() <= m.GetAttempt() {
		l[uid][m.GetName()] = s
	}
}

func (l layersByPod) layers() map[types.UID]Layers {
	all := map[types.UID]Layers{}
	for uid, containers := range l {
		of := Layers{Bytes: map[string]int64{}}
		for name, s := range containers {
			if used := s.GetWritableLayer().GetUsedBytes(); used != nil {
				of.Bytes[name] = int64(min(used.GetValue(), 1<<62))
			} else {
				of.Partial = true
			}
		}
		all[uid] = of
	}
	return all
}
