package view

import (
	"cmp"

	"podd/manifest"
	"podd/manifest/order"
	"podd/reconcile/render"
)

// An Advisor reports settings that are valid but do not take full effect on this node.
type Advisor struct {
	node       render.Node
	resolvConf string                     // path of the node's resolv.conf
	readDNS    func() (render.DNS, error) // reads the file resolvConf
}

// NewAdvisor returns an Advisor for a node. dns reads the file resolvConf.
func NewAdvisor(node render.Node, resolvConf string, dns func() (render.DNS, error)) *Advisor {
	return &Advisor{node, resolvConf, dns}
}

// warnings returns the warnings about a set. problems contains the warnings that podd shows: first
// the warnings about pods, ordered by pod name, and then those about the node. eventOnly contains the
// warnings that podd only records as events. Each call reads the DNS configuration of the node,
// because a new sandbox gets the current configuration.
func (a *Advisor) warnings(set *manifest.Set) (problems, eventOnly []manifest.Problem) {
	if a == nil || set == nil {
		return nil, nil
	}
	if dns, err := a.readDNS(); err == nil { // node.DNSWatcher reports the error
		a.node.DNS = dns
	}
	for _, p := range set.Pods {
		for _, advice := range render.AdviseDNS(p, a.node) {
			list := &problems
			if advice.EventOnly {
				list = &eventOnly
			}
			*list = append(*list, manifest.Problem{
				Severity: manifest.Warning, Pod: p.Key, Path: p.Origin.Path, Position: p.Origin.Position(advice.Field),
				FieldPath: advice.Field, Message: advice.Message,
			})
		}
	}
	order.Slice(problems, func(p, q manifest.Problem) int {
		return cmp.Or(cmp.Compare(p.Pod.String(), q.Pod.String()), cmp.Compare(p.FieldPath, q.FieldPath))
	})
	for _, advice := range render.AdviseNodeDNS(a.node.DNS) {
		problems = append(problems, manifest.Problem{Severity: manifest.Warning, Path: a.resolvConf, FieldPath: advice.Field, Message: advice.Message})
	}
	return problems, eventOnly
}
