package cri

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// LayerUsage is the disk usage of the writable layers of one pod.
type LayerUsage struct {
	// Bytes contains the usage by container name. If a container has several attempts, only
	// the newest attempt is included.
	Bytes map[string]int64
	// Partial reports whether Bytes is incomplete, because the runtime did not report the
	// layer of a container.
	Partial bool
}

// WritableLayers returns the disk usage of the writable layers of the pods in uids, by pod UID. It
// omits a pod if none of its containers belongs to one of the given instances. Runtimes measure the
// layers periodically, so the result may be some seconds old. If uids contains several pods,
// WritableLayers lists all containers of each instance, because one request per pod would take too
// long on a slow runtime.
func (c *Client) WritableLayers(ctx context.Context, instances []string, uids []types.UID) (map[types.UID]LayerUsage, error) {
	var filters []map[string]string
	for _, instance := range instances {
		filters = append(filters, map[string]string{runtime.LabelInstance: instance})
	}
	if len(uids) == 1 {
		filters = []map[string]string{{runtime.LabelPodUID: string(uids[0])}}
	}
	layers := layersByPod{}
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
				layers.add(uid, s)
			}
		}
	}
	return layers.usageByPod(), nil
}

// layersByPod contains the statistics of the newest attempt of each container, by pod UID
// and container name.
type layersByPod map[types.UID]map[string]*api.ContainerStats

// add adds the statistics of a container of the pod with this UID, unless l contains a newer
// attempt of the container.
func (l layersByPod) add(uid types.UID, s *api.ContainerStats) {
	if l[uid] == nil {
		l[uid] = map[string]*api.ContainerStats{}
	}
	m := s.GetAttributes().GetMetadata()
	if previous := l[uid][m.GetName()]; previous == nil || previous.GetAttributes().GetMetadata().GetAttempt() <= m.GetAttempt() {
		l[uid][m.GetName()] = s
	}
}

// usageByPod returns the disk usage of the writable layers of each pod.
func (l layersByPod) usageByPod() map[types.UID]LayerUsage {
	usages := map[types.UID]LayerUsage{}
	for uid, containers := range l {
		usage := LayerUsage{Bytes: map[string]int64{}}
		for name, s := range containers {
			if used := s.GetWritableLayer().GetUsedBytes(); used != nil {
				usage.Bytes[name] = int64(min(used.GetValue(), 1<<62))
			} else {
				usage.Partial = true
			}
		}
		usages[uid] = usage
	}
	return usages
}
