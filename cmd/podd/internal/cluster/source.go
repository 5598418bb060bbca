package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/server"
)

// Source is a source.Source of the pods bound to the node. It emits nothing before the
// pods and the Node were listed, because absence means nothing until then.
type Source struct {
	c     *Cluster
	bound boundPods
	last  manifest.Batch
	// objects is the channel of the objects in last; it changes with them.
	objects <-chan struct{}
}

// Source returns the source of the pods of the cluster. Its Run must run concurrently
// with Cluster.Run.
func (c *Cluster) Source() *Source {
	return &Source{c: c, bound: boundPods{node: c.o.Node, source: server.ClusterSource}}
}

// Name implements package source's Source.
func (s *Source) Name() string { return server.ClusterSource }

// Kind implements package source's Source.
func (s *Source) Kind() string { return manifest.KindAPI }

// Run implements package source's Source.
func (s *Source) Run(ctx context.Context, emit func(manifest.Batch)) error {
	of, err := readOrigin(s.c.o.Origin)
	switch {
	case errors.Is(err, errBroken): // pods of an intact cluster must not wait for it
		s.c.o.Log.Warn("should the cluster have been lost meanwhile, the pods that it lacks end", "err", err)
	case err != nil:
		return err
	}
	s.bound.origin = of
	for {
		pods, otherPods := s.c.pods.get()
		nodes, otherNodes := s.c.nodes.get()
		objects, otherObjects := s.c.objects.get()
		if pods.lists > 0 && nodes.lists > 0 {
			s.bound.update(pods, time.Now())
			for _, n := range nodes.items {
				if !s.bound.isOtherCluster && s.bound.origin.Node == "" {
					s.bound.origin.Node = n.UID // the Node was created after the list
				}
			}
			s.remember(&of)
			if b := s.batch(nodes, objects, otherObjects == s.objects); b.Version != s.last.Version {
				s.last, s.objects = b, otherObjects
				known, _ := s.c.deletions.get()
				s.c.deletions.set(endings(b, known))
				emit(b)
			}
		}
		select {
		case <-otherPods:
		case <-otherNodes:
		case <-otherObjects:
		case <-ctx.Done():
			return nil
		}
	}
}

// remember stores the origin, before pods may start.
func (s *Source) remember(kept *origin) {
	if s.bound.origin == *kept {
		return
	}
	if err := s.bound.origin.write(s.c.o.Origin); err != nil {
		s.c.o.Log.Warn("if the cluster is lost meanwhile, its pods may end with the next start of podd", "err", err)
	}
	*kept = s.bound.origin // a change is stored again
}

// batch returns the current batch, or the last one if nothing has changed. same reports
// that the objects have not changed.
func (s *Source) batch(nodes snapshot[*v1.Node], objects manifest.Objects, same bool) manifest.Batch {
	b := manifest.Batch{Pods: s.bound.list(), Objects: objects, Complete: !s.bound.isOtherCluster, Node: s.last.Node, Version: s.last.Version}
	for _, n := range nodes.items {
		if b.Node == nil || !maps.Equal(n.Labels, b.Node.Labels) || !equality.Semantic.DeepEqual(n.Spec.Taints, b.Node.Taints) {
			b.Node = &manifest.Node{Labels: n.Labels, Taints: n.Spec.Taints}
		}
	}
	if s.bound.isOtherCluster {
		b.Problems = append(b.Problems, s.strange())
	}
	if s.last.Version > 0 && same && b.Node == s.last.Node && b.Complete == s.last.Complete && slices.Equal(b.Pods, s.last.Pods) && slices.Equal(b.Problems, s.last.Problems) {
		return s.last
	}
	b.Version++
	return b
}

func (s *Source) strange() manifest.Problem {
	return manifest.Problem{Severity: manifest.Error, Path: server.ClusterSource, Message: fmt.Sprintf(
		"the cluster is not the one that pods here are from: it has neither the Service default/kubernetes nor the node %s of then, though the kubeconfig trusts the same authority; "+
			"pods that it does not know run on; if they are to end, remove %s and start podd again", s.c.o.Node, s.c.o.Origin)}
}

// endings maps deleted pods to the first batch that contains them as deleted; known is
// the result for the previous batch.
func endings(b manifest.Batch, known map[types.UID]uint64) map[types.UID]uint64 {
	all := map[types.UID]uint64{}
	for _, p := range b.Pods {
		if p.Deletion != nil {
			all[p.UID] = cmp.Or(known[p.UID], b.Version)
		}
	}
	return all
}
