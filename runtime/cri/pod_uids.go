package cri

import (
	"context"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// PodUIDs returns the UIDs of all pods that have a sandbox or a container in the runtime. The result
// includes the pods of other programs, and pods that only have containers left.
func (c *Client) PodUIDs(ctx context.Context) (sets.Set[types.UID], error) {
	var l listing
	if err := c.list(ctx, &l, nil); err != nil {
		return nil, err
	}
	uids := sets.New[types.UID]()
	for i := range l.sandboxes {
		var s api.PodSandbox
		if err := proto.Unmarshal(l.sandboxes[i].raw, &s); err != nil {
			return nil, err
		}
		uids.Insert(types.UID(s.GetMetadata().GetUid()))
	}
	for i := range l.containers {
		var m api.Container
		if err := proto.Unmarshal(l.containers[i].raw, &m); err != nil {
			return nil, err
		}
		uids.Insert(types.UID(m.GetLabels()[runtime.LabelPodUID]))
	}
	return uids, nil
}
