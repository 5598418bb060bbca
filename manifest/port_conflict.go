package manifest

import "fmt"

// FindHostPortConflicts returns an error Problem for each pod that uses a host port of an earlier pod
// in the list. Two pods conflict only if at least one of them runs forever, because otherwise
// admission runs them one after the other. FindHostPortConflicts ignores the ports of init containers
// that are not sidecars.
func FindHostPortConflicts(pods []*Pod) []Problem {
	type reservation struct {
		pod  *Pod
		port PortReservation
	}
	var problems []Problem
	reservationsByPort := map[int32][]reservation{}
	for _, p := range pods {
		ports, runsForever := ListPortReservations(p), RunsForever(&p.Object.Spec)
		for _, port := range ports {
			for _, earlier := range reservationsByPort[port.Number] {
				if port.ConflictsWith(earlier.port) && (runsForever || RunsForever(&earlier.pod.Object.Spec)) {
					problems = append(problems, newPortConflict(p, port, earlier.pod, earlier.port))
					break
				}
			}
		}
		for _, port := range ports {
			reservationsByPort[port.Number] = append(reservationsByPort[port.Number], reservation{p, port})
		}
	}
	return problems
}

// newPortConflict returns an error Problem of p: its host port conflicts with otherPort, a host port
// of otherPod.
func newPortConflict(p *Pod, port PortReservation, otherPod *Pod, otherPort PortReservation) Problem {
	location := otherPod.Origin
	location.Line = int(location.Position(otherPort.FieldPath).Line)
	return Problem{
		Severity: Error, Path: p.Origin.Path, Position: p.Origin.Position(port.FieldPath), Pod: p.Key, FieldPath: port.FieldPath,
		Message: fmt.Sprintf("%d is already used by %s (%s); change one of the ports", port.Number, otherPod.ManifestKey(), location),
	}
}
