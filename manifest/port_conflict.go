package manifest

import "fmt"

// FindHostPortConflicts returns an error Problem for each pod that uses a host port of a pod before
// it in the list. Ports of init containers that are not sidecars are ignored. canQueue reports whether
// two pods can run one after the other, so that they do not conflict; nil means never.
func FindHostPortConflicts(pods []*Pod, canQueue func(a, b *Pod) bool) []Problem {
	type reservation struct {
		pod  *Pod
		port PortReservation
	}
	var problems []Problem
	reserved := map[int32][]reservation{}
	for _, p := range pods {
		ports := ListPortReservations(p)
		for _, port := range ports {
			for _, other := range reserved[port.Number] {
				if port.ConflictsWith(other.port) && (canQueue == nil || !canQueue(p, other.pod)) {
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
