package manifest

import "fmt"

// Conflicts are the host ports that several of the pods want, an error Problem
// for each pod behind the first. Init containers that end count for nothing.
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
					problems = append(problems, takenBy(p, c, other.pod, other.claim))
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

// takenBy is the problem of a pod whose claim another one has.
func takenBy(p *Pod, c HostClaim, other *Pod, held HostClaim) Problem {
	there := other.Origin
	there.Line = int(there.Position(held.Field).Line)
	return Problem{
		Severity: Error, Path: p.Origin.Path, Position: p.Origin.Position(c.Field), Pod: p.Key, Field: c.Field,
		Message: fmt.Sprintf("%d is taken by %s (%s)", c.Number, other.Short(), there),
	}
}
