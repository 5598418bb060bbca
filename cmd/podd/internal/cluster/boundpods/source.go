package boundpods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
	"podd/server"
)

// Source is a source.Source of the pods bound to the node. It emits nothing before the pods and the
// Node were listed, because until then podd does not know which pods exist.
type Source struct {
	o         *Options
	bound     boundPods
	lastBatch manifest.Batch
	// objectsChanged is the channel that Options.Objects returned together with lastBatch.Objects. It
	// identifies the version of the objects.
	objectsChanged <-chan struct{}
	fetchedNode    *v1.Node // the last result of fetchNode; nil if there is none
}

// Options configures a Source. All fields are required.
type Options struct {
	NodeName   string // name of the Node
	OriginFile string // path of the file that stores which cluster has bound the pods
	// Client returns the client of the current connection, or nil before the first connection.
	Client func() *apiserver.Client
	// Pods contains the pods bound to the node, including mirror pods. Nodes contains the Node if it
	// exists.
	Pods  *apiserver.Store[*v1.Pod]
	Nodes *apiserver.Store[*v1.Node]
	// Objects returns the objects that the pods refer to, and a channel that is closed when they change.
	// It returns the same channel as long as the objects do not change.
	Objects func() (manifest.Objects, <-chan struct{})
	// Deletions is set by the Source. It maps the UID of each pod that is being deleted to the version of
	// the first batch that contained the deletion.
	Deletions *watchable.Value[map[types.UID]uint64]
	Log       *slog.Logger
}

// New returns a Source. Run must be called once.
func New(o Options) *Source {
	return &Source{o: &o, bound: boundPods{node: o.NodeName, source: server.ClusterSource}}
}

// Name implements package source's Source.
func (s *Source) Name() string { return server.ClusterSource }

// Kind implements package source's Source.
func (s *Source) Kind() string { return manifest.KindAPI }

// Run implements package source's Source.
func (s *Source) Run(ctx context.Context, emit func(manifest.Batch)) error {
	storedOrigin, err := apiserver.ReadOrigin(s.o.OriginFile)
	switch {
	case errors.Is(err, apiserver.ErrInvalidOrigin): // not a reason to stop, because pods must start despite this error
		s.o.Log.Warn("reading the stored cluster identity failed; if the API server has lost its data since podd last ran, podd deletes the pods that the API server does not list", "err", err)
	case err != nil:
		return err
	}
	s.bound.origin = storedOrigin
	for {
		pods, podsChanged := s.o.Pods.Get()
		nodes, nodesChanged := s.o.Nodes.Get()
		objects, objectsChanged := s.o.Objects()
		if pods.ListCount > 0 && nodes.ListCount > 0 {
			s.bound.update(pods, time.Now())
			for _, n := range nodes.Items {
				if !s.bound.isOtherCluster && s.bound.origin.NodeUID == "" {
					s.bound.origin.NodeUID = n.UID // the origin had no Node UID if the Node was created after the list
				}
			}
			s.storeOrigin(&storedOrigin)
			b := s.batch(nodes, objects, objectsChanged == s.objectsChanged)
			if s.hasUnmatchedPod(b) {
				s.fetchNode(ctx)
				b = s.batch(nodes, objects, objectsChanged == s.objectsChanged)
			}
			if b.Version != s.lastBatch.Version {
				s.lastBatch, s.objectsChanged = b, objectsChanged
				previous, _ := s.o.Deletions.Get()
				s.o.Deletions.Set(deletionVersions(b, previous))
				emit(b)
			}
		}
		select {
		case <-podsChanged:
		case <-nodesChanged:
		case <-objectsChanged:
		case <-ctx.Done():
			return nil
		}
	}
}

// storeOrigin writes the origin of the pods to the file if the origin differs from *stored, and
// sets *stored. The caller must call storeOrigin before it emits pods, so that a later podd process
// knows the origin of the pods that have started. If the file cannot be written, storeOrigin logs a
// warning.
func (s *Source) storeOrigin(stored *apiserver.Origin) {
	if s.bound.origin == *stored {
		return
	}
	if err := s.bound.origin.Write(s.o.OriginFile); err != nil {
		s.o.Log.Warn("storing the cluster identity failed; if the API server loses its data before the next start of podd, podd will then delete the pods that the API server does not list", "err", err)
	}
	*stored = s.bound.origin // also after a failure, so that podd retries only when the origin changes
}

// batch returns the current batch, or the last batch if nothing has changed. sameObjects is set
// if objects are the objects of the last batch.
func (s *Source) batch(nodes apiserver.Snapshot[*v1.Node], objects manifest.Objects, sameObjects bool) manifest.Batch {
	b := manifest.Batch{Pods: s.bound.desiredPods(), Objects: objects, IsComplete: !s.bound.isOtherCluster, Node: s.lastBatch.Node, Version: s.lastBatch.Version}
	for _, n := range nodes.Items {
		n = s.newestNode(n)
		if b.Node == nil || !maps.Equal(n.Labels, b.Node.Labels) || !equality.Semantic.DeepEqual(n.Spec.Taints, b.Node.Taints) {
			b.Node = &manifest.Node{Labels: n.Labels, Taints: n.Spec.Taints}
		}
	}
	if s.bound.isOtherCluster {
		b.Problems = append(b.Problems, s.otherClusterProblem())
	}
	if s.lastBatch.Version > 0 && sameObjects && b.Node == s.lastBatch.Node && b.IsComplete == s.lastBatch.IsComplete && slices.Equal(b.Pods, s.lastBatch.Pods) && slices.Equal(b.Problems, s.lastBatch.Problems) {
		return s.lastBatch
	}
	b.Version++
	return b
}

// otherClusterProblem returns the Problem for users if the API server is not the API server of
// the cluster that has bound the pods.
func (s *Source) otherClusterProblem() manifest.Problem {
	return manifest.Problem{Severity: manifest.Error, Path: server.ClusterSource, Message: fmt.Sprintf(
		"the API server has lost its data or belongs to another cluster: the UIDs of the Service default/kubernetes and of node %s have changed, although the kubeconfig trusts the same CA; "+
			"pods that the API server does not list keep running; to delete these pods, remove %s and restart podd", s.o.NodeName, s.o.OriginFile)}
}

// deletionVersions returns the version of a batch for each pod that is being deleted, by the UID of
// the pod. The batch is the first batch that contains the deletion. The parameter previous is the
// result for the previous batch.
func deletionVersions(b manifest.Batch, previous map[types.UID]uint64) map[types.UID]uint64 {
	all := map[types.UID]uint64{}
	for _, p := range b.Pods {
		if p.Deletion != nil {
			all[p.UID] = cmp.Or(previous[p.UID], b.Version)
		}
	}
	return all
}
