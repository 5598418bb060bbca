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
	resolvConf string // where its DNS was read
}

// of is what it says of a set, for the pods in the order of their names.
func (a *advisor) of(set *manifest.Set) []manifest.Problem {
	if a == nil || set == nil {
		return nil
	}
	var all []manifest.Problem
	for _, p := range set.Pods {
		for _, advice := range render.AdviseDNS(p, a.node) {
			all = append(all, manifest.Problem{
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
	return all
}
