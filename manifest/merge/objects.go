package merge

import "podd/manifest"

// Objects returns the objects of several files of one source. If two objects have the same kind
// and key, the first object is used and the other object becomes an error Problem.
func Objects(list ...manifest.Objects) (manifest.Objects, []manifest.Problem) {
	result := manifest.Objects{}
	var problems []manifest.Problem
	for _, o := range list {
		for ref, origin := range o.Origins {
			if firstOrigin, isDuplicate := result.Origins[ref]; isDuplicate {
				problems = append(problems, manifest.Problem{
					Severity: manifest.Error, Path: origin.Path, Position: origin.Position(""), CausesRefusal: true,
					Message: ref.String() + " is also defined at " + firstOrigin.String() + ", which takes precedence; remove one",
				})
				continue
			}
			result.Copy(ref, &o)
		}
	}
	manifest.SortProblems(problems)
	return result, problems
}
