package main

import (
	"cmp"
	"slices"

	"podd/manifest"
	"podd/reconcile/render"
)

// advisor tells of what is valid and has not all of its effect on this node.
type advisor struct {
	node       render.Node
	resolvConf string                     // where its DNS is read
	dns        func() (render.DNS, error) // what it is now
}

// of is what it says of a set, for the pods in the order of their names, and what
// is told of it without being a problem. The node's DNS is read for every set anew,
// as it is for every sandbox.
func (a *advisor) of(set *manifest.Set) (all, passing []manifest.Problem) {
	if a == nil || set == nil {
		return nil, nil
	}
	if now, err := a.dns(); err != nil {
		all = append(all, manifest.Problem{Severity: manifest.Error, Path: a.resolvConf, Message: err.Error() + "; no pod starts until it can be read"})
	} else {
		a.node.DNS = now
	}
	for _, p := range set.Pods {
		for _, advice := range render.AdviseDNS(p, a.node) {
			list := &all
			if advice.Passing {
				list = &passing
			}
			*list = append(*list, manifest.Problem{
				Severity: manifest.Warning, Pod: p.Key, Path: p.Origin.Path, Position: p.Origin.Position(advice.Field),
				Field: advice.Field, Message: advice.Message,
			})
		}
	}
	slices.SortFunc(all, func(p, q manifest.Problem) int {
		return cmp.Or(cmp.Compare(p.Pod.String(), q.Pod.String()), cmp.Compare(p.Field, q.Field))
	})
	for _, advice := range render.AdviseNode(a.node.DNS) {
		all = append(all, manifest.Problem{Severity: manifest.Warning, Path: a.resolvConf, Field: advice.Field, Message: advice.Message})
	}
	return all, passing
}
