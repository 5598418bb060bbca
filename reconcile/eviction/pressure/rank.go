package pressure

import (
	"cmp"

	"podd/manifest/order"

	v1 "k8s.io/api/core/v1"
)

// Rank returns the candidates in the order in which they are evicted because of signal. Protected
// pods are omitted. First come the pods with unknown usage, then those that use more than they
// request, then the others. Within each group, pods with a lower priority come first. Of pods with
// the same priority, those with the larger usage above their requests come first. If inodes are short,
// those that have too many files to count all of them come before these.
//
// Pods request no processes, so because of pid.available, pods are ranked by priority first, as by a
// kubelet. Of pods with the same priority, those with unknown usage come first, then those with the
// most processes.
func Rank(candidates []Candidate, signal Signal, l Layout) []Candidate {
	var rankedCandidates []rankedCandidate
	for _, c := range candidates {
		if !IsProtected(c.Pod) {
			rankedCandidates = append(rankedCandidates, newRankedCandidate(c, signal, l))
		}
	}
	compare := compareRanked
	if signal.Resource() == ResourcePIDs {
		compare = compareByPriority
	}
	order.Stable(rankedCandidates, compare)
	out := make([]Candidate, 0, len(rankedCandidates))
	for _, r := range rankedCandidates {
		out = append(out, r.Candidate)
	}
	return out
}

// rankedCandidate is a Candidate with the values by which it is ranked.
type rankedCandidate struct {
	Candidate
	group    int
	priority int32
	excess   int64 // usage minus request
	// isLowerBound reports whether excess is a number of files that may be larger.
	isLowerBound bool
}

// The groups of ranked pods, in the order of their eviction.
const (
	groupUnknown = iota
	groupExceeding
	groupWithinRequests
)

func newRankedCandidate(c Candidate, signal Signal, l Layout) rankedCandidate {
	r := rankedCandidate{Candidate: c, group: groupUnknown}
	if c.Pod.Spec.Priority != nil {
		r.priority = *c.Pod.Spec.Priority
	}
	if c.Usage != nil {
		var usage int64
		usage, r.isLowerBound = l.usageFor(signal, c.Usage)
		r.excess = usage - requestFor(signal, c.Pod)
		r.group = groupWithinRequests
		if r.excess > 0 {
			r.group = groupExceeding
		}
	}
	return r
}

// compareRanked compares by the rules of Rank. The name of the pod decides between equal pods, so
// that the order does not depend on the order of the candidates.
func compareRanked(a, b rankedCandidate) int {
	return cmp.Or(
		cmp.Compare(a.group, b.group),
		cmp.Compare(a.priority, b.priority),
		compareTrueFirst(a.isLowerBound, b.isLowerBound),
		cmp.Compare(b.excess, a.excess),
		cmp.Compare(podName(a.Pod), podName(b.Pod)),
	)
}

// compareByPriority compares by priority first, and by the other rules of Rank for equal priorities.
func compareByPriority(a, b rankedCandidate) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), compareRanked(a, b))
}

// compareTrueFirst compares a and b so that true is first.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func podName(p *v1.Pod) string { return p.Namespace + "/" + p.Name }
