package once

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
)

// member is one container of a pod.
type member struct {
	spec *v1.Container
	kind plan.Kind
	path string     // field path of spec
	exit *plan.Exit // its newest; nil: it has not exited
	// again says that it is started again after exit.
	again bool
}

// members are in the order in which they start.
func (p *Pod) members() []member {
	var all []member
	spec := &p.Wanted.Spec.Spec
	add := func(list string, cs []v1.Container, init bool) {
		for i := range cs {
			m := member{spec: &cs[i], kind: plan.KindOf(&cs[i], init), path: fmt.Sprintf("spec.%s[%d]", list, i)}
			if p.Report != nil {
				if e, ok := p.Report.Last[cs[i].Name]; ok {
					m.exit = &e
					m.again = (m.kind != plan.Init || e.Code != 0) && manifest.RestartsAfter(spec, m.spec, e.Code)
				}
			}
			all = append(all, m)
		}
	}
	add("initContainers", spec.InitContainers, true)
	add("containers", spec.Containers, false)
	return all
}

// crashes is how often it ended in a way that was not wanted.
func (m *member) crashes() int {
	switch {
	case m.exit == nil:
		return 0
	case m.exit.Code == 0 && !m.again:
		return 0
	}
	return int(m.exit.Attempt) + 1
}

// failing are the containers by which an ended pod failed. Sidecars are killed
// in the end and do not count.
func (p *Pod) failing() []member {
	if !p.ended() || !p.Report.Finished.Failed {
		return nil
	}
	var out []member
	for _, m := range p.members() {
		if m.kind != plan.Sidecar && m.exit != nil && m.exit.Code != 0 {
			out = append(out, m)
		}
	}
	return out
}

// code makes an exit code of a container's, which may be any number.
func code(exit int32) int {
	if c := int(exit) & 0xff; c != 0 {
		return c
	}
	return CodeSeveral
}

// position is where the user wrote a field of the pod.
func position(p *manifest.Pod, field string) string {
	o := p.Origin
	o.Line = int(o.Position(field).Line)
	return o.String()
}
