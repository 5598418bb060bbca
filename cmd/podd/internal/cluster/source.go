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
)

// SourceName is where users are told that pods of the cluster are from.
const SourceName = "the cluster"

// Source is the Source of package source that has the pods bound to the node. It emits
// nothing before the cluster told of them and of the Node, for without that absence
// means nothing.
type Source struct {
	c     *Cluster
	bound boundPods
	last  manifest.Batch
	// objects is told of by a channel: what was in last is known by it.
	objects <-chan struct{}
}

// Source is what the cluster wants to run here. Its Run is to be called beside the
// Cluster's.
func (c *Cluster) Source() *Source {
	return &Source{c: c, bound: boundPods{node: c.o.Node, source: SourceName}}
}

// Name implements package source's Source.
func (s *Source) Name() string { return SourceName }

// Kind implements package source's Source.
func (s *Source) Kind() string { return manifest.KindAPI }

// Run implements package source's Source.
func (s *Source) Run(ctx context.Context, emit func(manifest.Batch)) error {
	of, err := recall(s.c.o.Origin)
	switch {
	case errors.Is(err, errBroken): // pods of a good cluster are not to wait for it
		s.c.o.Log.Warn("should the cluster have been lost meanwhile, the pods that it lacks end", "err", err)
	case err != nil:
		return err
	}
	s.bound.origin = of
	for {
		pods, otherPods := s.c.pods.get()
		nodes, otherNodes := s.c.nodes.get()
		objects, otherObjects := s.c.objects.get()
		if pods.anew > 0 && nodes.anew > 0 {
			s.bound.take(pods, time.Now())
			for _, n := range nodes.items {
				if !s.bound.strange && s.bound.origin.Node == "" {
					s.bound.origin.Node = n.UID // it was made since the list
				}
			}
			s.remember(&of)
			if b := s.batch(nodes, objects, otherObjects == s.objects); b.Version != s.last.Version {
				s.last, s.objects = b, otherObjects
				known, _ := s.c.ending.get()
				s.c.ending.set(endings(b, known))
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

// remember keeps the origin across lives of podd, before there may be pods.
func (s *Source) remember(kept *origin) {
	if s.bound.origin == *kept {
		return
	}
	if err := s.bound.origin.remember(s.c.o.Origin); err != nil {
		s.c.o.Log.Warn("if the cluster is lost meanwhile, its pods may end with the next start of podd", "err", err)
	}
	*kept = s.bound.origin // it is tried again when it is another
}

// batch is what to run by now: the last one where that says all, with the same
// objects.
func (s *Source) batch(nodes sighting[*v1.Node], objects manifest.Objects, same bool) manifest.Batch {
	b := manifest.Batch{Pods: s.bound.list(), Objects: objects, Complete: !s.bound.strange, Node: s.last.Node, Version: s.last.Version}
	for _, n := range nodes.items {
		if b.Node == nil || !maps.Equal(n.Labels, b.Node.Labels) || !equality.Semantic.DeepEqual(n.Spec.Taints, b.Node.Taints) {
			b.Node = &manifest.Node{Labels: n.Labels, Taints: n.Spec.Taints}
		}
	}
	if s.bound.strange {
		b.Problems = append(b.Problems, s.strange())
	}
	if s.last.Version > 0 && same && b.Node == s.last.Node && b.Complete == s.last.Complete && slices.Equal(b.Pods, s.last.Pods) && slices.Equal(b.Problems, s.last.Problems) {
		return s.last
	}
	b.Version++
	return b
}

func (s *Source) strange() manifest.Problem {
	return manifest.Problem{Severity: manifest.Error, Path: SourceName, Message: fmt.Sprintf(
		"the cluster is not the one that pods here are from: it has neither the Service default/kubernetes nor the node %s of then, though the kubeconfig trusts the same authority; "+
			"pods that it does not know run on; if they are to end, remove %s and start podd again", s.c.o.Node, s.c.o.Origin)}
}

// endings are the batches, by Version, since which the ends of pods are known;
// known has those of earlier ones.
func endings(b manifest.Batch, known map[types.UID]uint64) map[types.UID]uint64 {
	all := map[types.UID]uint64{}
	for _, p := range b.Pods {
		if p.Deletion != nil {
			all[p.UID] = cmp.Or(known[p.UID], b.Version)
		}
	}
	return all
}
