package cri

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// WritableLayers is how many bytes each container of a pod of this instance has
// written to its own file system, by name; of a name's attempts the newest. A
// runtime measures them now and then: the answer may be some seconds old. told
// is false where the runtime leaves one out.
func (c *Client) WritableLayers(ctx context.Context, instance string, uid types.UID) (layers map[string]int64, told bool, err error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.ListContainerStats, &api.ListContainerStatsRequest{
		Filter: &api.ContainerStatsFilter{LabelSelector: map[string]string{
			runtime.LabelInstance: instance, runtime.LabelPodUID: string(uid),
		}},
	})
	if err != nil {
		return nil, false, err
	}
	layers, told = map[string]int64{}, true
	attempts := map[string]uint32{}
	for _, s := range r.GetStats() {
		m := s.GetAttributes().GetMetadata()
		if n, ok := attempts[m.GetName()]; ok && n > m.GetAttempt() {
			continue
		}
		attempts[m.GetName()] = m.GetAttempt()
		delete(layers, m.GetName())
		if used := s.GetWritableLayer().GetUsedBytes(); used != nil {
			layers[m.GetName()] = int64(min(used.GetValue(), 1<<62))
		} else {
			told = false
		}
	}
	return layers, told, nil
}
