package manifest

import "fmt"

// Conflicts returns an error Problem for each pod that uses a host port of an earlier pod.
// Ports of init containers that are not sidecars are ignored.
func Conflicts(pods []*Pod) []Problem {
	type holding struct {
		pod   *Pod
		claim HostClaim
	}
	var problems []Problem
	taken := map[int32][]holding{}
	for _, p := range pods {
		mine := HostClaims(p)
		for _, c := range mine {
			for _, other := range taken[c.Number] {
				if c.Meets(other.claim) {
					problems = append(problems, portConflict(p, c, other.pod, other.claim))
					break
				}
			}
		}
		for _, c := range mine {
			taken[c.Number] = append(taken[c.Number], holding{p, c})
		}
	}
	return problems
}

// portConflict returns the Problem of a pod whose port another pod has.
func portConflict(p *Pod, c HostClaim, other *Pod, held HostClaim) Problem {
	there := other.Origin
	there.Line = int(there.Position(held.Field).Line)
	return Problem{
		Severity: Error, Path: p.Origin.Path, Position: p.Origin.Position(c.Field), Pod: p.Key, Field: c.Field,
		Message: fmt.Sprintf("%d is already used by %s (%s)", c.Number, other.Short(), there),
	}
}
