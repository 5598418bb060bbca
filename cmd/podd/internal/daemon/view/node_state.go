package view

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/eviction/pressure"
)

// nodeFacts are the parts of a node's status that neither the runtime nor the router
// reports. They are immutable.
type nodeFacts struct {
	Pressure *pressure.Conditions // nil before the first observation
	Images   []v1.ContainerImage
	Config   *v1.NodeCondition // nil without dynamic configuration
}

// NodeProblems are the problems of the node that the router does not report. They are
// immutable.
type NodeProblems struct {
	// Cluster is the problem that keeps podd from being a node of the cluster, or "".
	Cluster string
	// NodeName is the problem of a changed hostname. DNS is the problem of a DNS configuration that
	// cannot be read. Pressure is the problem of a node that is short of a resource. Config is the problem
	// of a configuration that cannot be used. All may be nil.
	NodeName, DNS, Pressure, Config *manifest.Problem
	// RejectedPods are the problems of pods that the API server has rejected.
	RejectedPods []manifest.Problem
	// UnlimitedPods are the problems of pods whose storage limits podd does not enforce: their disk usage
	// cannot be measured, or they are critical.
	UnlimitedPods []manifest.Problem
}

// list returns all problems in the order in which podd shows them. The parameter initial contains
// the problems that podd found when it started.
func (p NodeProblems) list(initial []manifest.Problem) (problems []manifest.Problem) {
	for _, problem := range []*manifest.Problem{p.Config, p.NodeName, p.DNS, p.Pressure} {
		if problem != nil {
			problems = append(problems, *problem)
		}
	}
	problems = append(problems, initial...)
	if p.Cluster != "" {
		problems = append(problems, manifest.Problem{Severity: manifest.Error, Message: p.Cluster})
	}
	return slices.Concat(problems, p.RejectedPods, p.UnlimitedPods)
}

// A NodeState contains the state of the node that a Publisher shows in addition to the
// router's changes. It is safe for concurrent use.
type NodeState struct {
	changed chan struct{} // capacity 1

	mu       sync.Mutex // guards the following fields
	problems NodeProblems
	facts    *nodeFacts // nil before the first check of the node; never modified
}

// NewNodeState returns a NodeState with the problems that were found before the first
// Publish.
func NewNodeState(problems NodeProblems) *NodeState {
	return &NodeState{changed: make(chan struct{}, 1), problems: problems}
}

// Changed returns a channel that receives a value after a change. The next Publish shows the
// change. If the receiver is slow, several changes send only one value.
func (s *NodeState) Changed() <-chan struct{} { return s.changed }

// SetClusterProblem sets NodeProblems.Cluster.
func (s *NodeState) SetClusterProblem(text string) {
	s.update(func() { s.problems.Cluster = text })
}

// SetNodeNameProblem sets NodeProblems.NodeName.
func (s *NodeState) SetNodeNameProblem(p *manifest.Problem) {
	s.update(func() { s.problems.NodeName = p })
}

// SetDNSProblem sets NodeProblems.DNS.
func (s *NodeState) SetDNSProblem(p *manifest.Problem) {
	s.update(func() { s.problems.DNS = p })
}

// SetRejectedPods sets NodeProblems.RejectedPods.
func (s *NodeState) SetRejectedPods(problems []manifest.Problem) {
	s.update(func() { s.problems.RejectedPods = problems })
}

// SetUnlimitedPods sets NodeProblems.UnlimitedPods.
func (s *NodeState) SetUnlimitedPods(problems []manifest.Problem) {
	s.update(func() { s.problems.UnlimitedPods = problems })
}

// SetImages sets nodeFacts.Images.
func (s *NodeState) SetImages(images []v1.ContainerImage) {
	s.updateFacts(func(f *nodeFacts) { f.Images = images })
}

// SetPressure sets nodeFacts.Pressure to c and NodeProblems.Pressure to p. p is nil if the node is not
// under pressure.
func (s *NodeState) SetPressure(c pressure.Conditions, p *manifest.Problem) {
	s.updateFacts(func(f *nodeFacts) { f.Pressure, s.problems.Pressure = &c, p })
}

// SetConfig sets nodeFacts.Config to c and NodeProblems.Config to p. p is nil if the assigned
// configuration is in use.
func (s *NodeState) SetConfig(c v1.NodeCondition, p *manifest.Problem) {
	s.updateFacts(func(f *nodeFacts) { f.Config, s.problems.Config = &c, p })
}

// updateFacts replaces the facts by a copy that set has changed.
func (s *NodeState) updateFacts(set func(*nodeFacts)) {
	s.update(func() {
		next := nodeFacts{}
		if s.facts != nil {
			next = *s.facts
		}
		set(&next)
		s.facts = &next
	})
}

// update calls set with mu held and notifies the receiver of Changed.
func (s *NodeState) update(set func()) {
	s.mu.Lock()
	set()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // a change is already pending
	}
}

// get returns the current state, which is zero for a nil NodeState.
func (s *NodeState) get() (NodeProblems, *nodeFacts) {
	if s == nil {
		return NodeProblems{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems, s.facts
}
