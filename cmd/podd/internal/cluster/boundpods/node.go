package boundpods

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/manifest"
)

// hasUnmatchedPod reports whether b contains a pod that the last batch does not contain and that the
// labels of the Node in b do not match.
func (s *Source) hasUnmatchedPod(b manifest.Batch) bool {
	if b.Node == nil {
		return false
	}
	lastUIDs := map[types.UID]bool{}
	for _, p := range s.lastBatch.Pods {
		lastUIDs[p.UID] = true
	}
	for _, p := range b.Pods {
		if !lastUIDs[p.UID] && !manifest.MatchesNode(p.Object, s.o.NodeName, b.Node.Labels) {
			return true
		}
	}
	return false
}

// fetchNode reads the Node from the API server. A pod that does not match the Node fails
// permanently, and the watch of the Node may be later than the watch of the pods. Therefore podd
// reads the Node before it decides, as in the kubelet (pkg/kubelet/lifecycle/predicate.go). If the
// request fails, the watched Node applies.
func (s *Source) fetchNode(ctx context.Context) {
	api := s.o.Client()
	if api == nil {
		return
	}
	var n v1.Node
	if err := api.Do(ctx, api.Core.Get().Resource("nodes").Name(s.o.NodeName), &n); err != nil {
		if ctx.Err() != nil {
			return
		}
		s.o.Log.Warn("reading the Node failed; podd uses the labels from its last watch to decide whether new pods may run on this node", "err", err)
		return
	}
	s.fetchedNode = apiserver.DropUnusedFields(&n)
}

// newestNode returns the newer of the Node that fetchNode has read and the watched Node.
func (s *Source) newestNode(watchedNode *v1.Node) *v1.Node {
	fetched := s.fetchedNode
	if fetched == nil || fetched.UID != watchedNode.UID {
		return watchedNode
	}
	order, err := resourceversion.CompareResourceVersion(fetched.ResourceVersion, watchedNode.ResourceVersion)
	if err != nil || order <= 0 {
		return watchedNode
	}
	return fetched
}
