package runonce

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
)

// A container is a container of a runPod together with its last exit.
type container struct {
	spec *v1.Container
	kind plan.Kind
	path string     // field path of spec in the pod
	exit *plan.Exit // the last exit; may be nil
	// willRestart reports whether the container will restart after exit.
	willRestart bool
}

// containers returns the containers in the order in which they start.
func (p *runPod) containers() []container {
	var members []container
	spec := &p.Desired.Object.Spec
	add := func(list string, cs []v1.Container, init bool) {
		for i := range cs {
			m := container{spec: &cs[i], kind: plan.ContainerKind(&cs[i], init), path: fmt.Sprintf("spec.%s[%d]", list, i)}
			if p.Report != nil {
				if e, ok := p.Report.LastExits[cs[i].Name]; ok {
					m.exit = &e
					m.willRestart = (m.kind != plan.KindInit || e.Code != 0) && manifest.RestartsAfter(spec, m.spec, e.Code)
				}
			}
			members = append(members, m)
		}
	}
	add("initContainers", spec.InitContainers, true)
	add("containers", spec.Containers, false)
	return members
}

// crashCount returns the number of times that the container has exited. It returns 0 if the last
// exit was a success and the container will not restart.
func (c *container) crashCount() int {
	switch {
	case c.exit == nil:
		return 0
	case c.exit.Code == 0 && !c.willRestart:
		return 0
	}
	return int(c.exit.Attempt) + 1
}

// failedContainers returns the containers that made a pod fail. It omits sidecars, because podd
// stops sidecars when the pod terminates.
func (p *runPod) failedContainers() []container {
	if !p.hasFinished() || !p.Report.Finished.Failed {
		return nil
	}
	var out []container
	for _, m := range p.containers() {
		if m.kind != plan.KindSidecar && m.exit != nil && m.exit.Code != 0 {
			out = append(out, m)
		}
	}
	return out
}

// poddExitCode returns the exit code with which podd reports a failed container. The parameter exit
// is the exit code of the container. The result is the low eight bits of exit or, if these bits are
// 0, exitCodeSeveralFailed.
func poddExitCode(exit int32) int {
	if c := int(exit) & 0xff; c != 0 {
		return c
	}
	return exitCodeSeveralFailed
}

// fieldPosition returns the position of a field in the manifest of a pod.
func fieldPosition(p *manifest.Pod, field string) string {
	o := p.Origin
	o.Line = int(o.Position(field).Line)
	return o.String()
}
