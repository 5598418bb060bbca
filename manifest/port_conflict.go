package manifest

import "fmt"

// FindHostPortConflicts returns an error Problem for each pod that uses a host port of a pod before
// it in the list, if at least one of the two runs forever. Other pods with the same host port do not
// conflict, because admission runs them one after the other. Ports of init containers that are not
// sidecars are ignored.
func FindHostPortConflicts(pods []*Pod) []Problem {
	type reservation struct {
		pod  *Pod
		port PortReservation
	}
	var problems []Problem
	reserved := map[int32][]reservation{}
	for _, p := range pods {
		ports, runsForever := ListPortReservations(p), RunsForever(&p.Object.Spec)
		for _, port := range ports {
			for _, other := range reserved[port.Number] {
				if port.ConflictsWith(other.port) && (runsForever || RunsForever(&other.pod.Object.Spec)) {
					problems = append(problems, newPortConflict(p, port, other.pod, other.port))
					break
				}
			}
		}
		for _, port := range ports {
			reserved[port.Number] = append(reserved[port.Number], reservation{p, port})
		}
	}
	return problems
}

// newPortConflict returns an error Problem of p. The Problem reports that the host port in the
// parameter port conflicts with otherPort, a host port of the pod in the parameter other.
func newPortConflict(p *Pod, port PortReservation, other *Pod, otherPort PortReservation) Problem {
	place := other.Origin
	place.Line = int(place.Position(otherPort.FieldPath).Line)
	return Problem{
		Severity: Error, Path: p.Origin.Path, Position: p.Origin.Position(port.FieldPath), Pod: p.Key, FieldPath: port.FieldPath,
		Message: fmt.Sprintf("%d is already used by %s (%s)", port.Number, other.ManifestKey(), place),
	}
}
